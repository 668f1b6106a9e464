"""CSV files: parity with numpy and pandas-like habits, and every way in which a table can be wrong."""

import csv

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quoin.data import TabularInfo, as_classes, as_regression, load
from quoin.data import read_features as read_features_of
from quoin.errors import UserError


@pytest.fixture
def put(tmp_path):
    def write(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def read(put):
    return lambda content: load(f"csv:{put(content)}")


def read_features(path, names):
    """The rows as a model takes them that was trained on numbers under these names."""
    return read_features_of(path, TabularInfo("t", "", 1, tuple(names), (len(names),), ("y",), None)).features


def refused(path, match, **options):
    with pytest.raises(UserError, match=match) as caught:
        load(f"csv:{path}", **options)
    assert len(str(caught.value).splitlines()) == 1


def test_numbers_agree_with_numpys_reader(put):
    values = np.random.default_rng(0).normal(size=(9000, 4)) * [1, 1e-20, 1e20, 1e6]  # over two blocks
    path = put("a,b,c,y\n" + "\n".join(",".join(map(repr, row)) for row in values.tolist()) + "\n")
    data, peer = load(f"csv:{path}"), np.loadtxt(path, delimiter=",", skiprows=1)
    assert np.array_equal(data.features.numpy(), peer[:, :3])
    assert np.array_equal(data.targets.numpy(), peer[:, 3])
    assert data.feature_names == ("a", "b", "c")
    assert data.target_name == "y"
    assert data.class_names is None
    assert torch.equal(read_features(path, ["c", "a"]), data.features[:, [2, 0]])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_delimiters_endings_and_a_byte_order_mark(put, delimiter, ending, bom):
    rows = [["a, or; b", "kind", "c"], ["1", "x y", "2.5"], [" -3e1", "z", "4"]]
    text = ending.join(delimiter.join(f'"{cell}"' if " o" in cell else cell for cell in row) for row in rows)
    data = load(f"csv:{put(bom + text.encode())}", target="kind")
    assert data.feature_names == ("a, or; b", "c")
    assert data.features.tolist() == [[1, 2.5], [-30, 4]]
    assert data.class_names == ("x y", "z")
    assert data.targets.tolist() == [0, 1]


def test_quoted_cells_may_hold_quotes_and_line_breaks(put, read):
    path = put('x,label\n1,"say ""a\nb"""\n2,c\nbad,c\n')
    refused(path, "line 5, column 'x'")  # lines are counted as an editor counts them
    data = read('x,label\n1,"say ""a\nb"""\n2,c\n\n')
    assert data.class_names == ("c", 'say "a\nb"')


def test_what_a_target_column_may_serve_as(read):
    whole = read("x,y\n1,10\n2,-3\n3,10.0\n")
    assert as_classes(whole).class_names == ("-3", "10")
    assert whole.targets.tolist() == [1, 0, 1]
    assert as_regression(whole).targets.tolist() == [10, -3, 10]
    real = read("x,y\n1,0.5\n2,2\n")
    assert as_regression(real).targets.tolist() == [0.5, 2]
    with pytest.raises(UserError, match="regression recipe"):
        as_classes(real)
    text = read("x,y\n1,red\n2,blue\n3,5\n")
    assert as_classes(text).class_names == ("5", "blue", "red")
    with pytest.raises(UserError, match=r"'red' \(row 1\)"):
        as_regression(text)
    many = read("x,y\n" + "".join(f"1,{i}\n" for i in range(1001)))
    assert as_regression(many).targets.tolist() == list(range(1001))
    with pytest.raises(UserError, match="regression recipe"):
        as_classes(many)
    with pytest.raises(UserError, match="two or more classes"):
        as_classes(read("x,y\n1,red\n2,red\n"))


def test_the_target_is_named_or_goes_by_a_usual_name(put):
    path = put("label,b\n1,2\n3,4\n")
    assert load(f"csv:{path}").feature_names == ("b",)
    assert load(f"csv:{path}", target="b").feature_names == ("label",)
    refused(path, "none: did you mean 'label'", target="lable")
    refused(put("a,b\n1,2\n"), "among 'a', 'b': name it with --target")
    refused(put("y,label,a\n1,2,3\n"), "both 'label' and 'y'")  # the one not taken would give the answer away
    refused(put("y\n1\n"), "feature columns")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "empty"),
        ("\n", "blank"),
        (b"\xef\xbb\xbf", "blank"),
        ("a,y\n", "rows below"),
        ("a,y\n\n\n", "rows below"),
        ("a,y\n1,2\n3\n", "expected 2 cells on line 3 .* got 1"),
        ("a,y\n1,2\n3,4,5\n", "expected 2 cells on line 3 .* got 3"),
        ("a,y\n1,2\n\n3,4\n", "line 3 .* blank"),
        ("a,y\n1,2\nred,4\n", "line 3, column 'a' .* got 'red'"),
        ("a,y\n1,2\n1_0,4\n", "line 3, column 'a' .* got '1_0'"),
        (
            'a,y\n1,2\n"1,5",4\n',
            "line 3, column 'a' .* got '1,5': write a point",
        ),  # a comma is a decimal mark only beside semicolons
        ("a;y\n1,5;2\n2,5;2\n1.5;4\n", "line 4, column 'a' .* got '1.5': .* decimal comma; use one mark"),
        ("a;y\n1.5;2\n2.5;2\n1,5;4\n", "line 4, column 'a' .* got '1,5': .* decimal point; use one mark"),
        ("a;b;y\n1.5;1.5;2,5\n2;2;3\n", "line 2, column 'y' .* got '2,5': .* decimal point; use one mark"),
        ("a;y\n1,500,000;2\n", "line 2, column 'a' .* got '1,500,000'"),
        ("a,y\n1,2\n,4\n", "line 3, column 'a' .* no value .* column: 'a' 1"),
        ("a,y\n1,2\n  ,4\n", "line 3, column 'a' .* no value .* column: 'a' 1"),
        ("a,y\n1,2\nnan,4\n", "line 3, column 'a' .* no value"),
        ("a,y\n1,2\n-inf,4\n", "line 3, column 'a' .* '-inf'"),
        ("a,y\n1,2\n1e39,4\n", "line 3, column 'a' .* '1e39'"),
        ("a,y\n1,2\n4,\n", "line 3, column 'y' .* no value"),
        ("a,y\n1,red\n4,\n", "expected a class .* line 3, column 'y' .* no value"),
        ("a,y\n1,2\n4,NaN\n", "line 3, column 'y' .* no value"),
        ("a,y\n1,red\n4,NaN\n", "line 3, column 'y' .* no value"),
        ("a,y\n1,2\n4,inf\n", "line 3, column 'y' .* 'inf'"),
        ("a,a,y\n1,2,3\n", "'a' twice"),
        (",a,y\n1,2,3\n", "column 1 .* index=False"),
        ("1,2,3\n4,5,6\n", "the first line looks like data: add a header line"),
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", "the first line looks like data: add a header line"),
        ("5,1;3,5;setosa\n4,9;3,0;setosa\n", "the first line looks like data: add a header line"),
        ("7,3,red,blue\n", "the first line looks like data: add a header line"),
        ('a,y\n1,"2\n', "well-formed"),
        ('a,y\n1,"2"3\n', "well-formed"),
        ("a,y\n1," + "x" * 200_000 + "\n", "well-formed .* field"),
        (b"a,y\n1,\x00\n", "NUL byte"),
        (b"a,y\n1,caf\xe9\n", "UTF-8"),
        ("a,y\n1,2\n".encode("utf-16"), "UTF-8"),
        (b"\x1f\x8b\x08\x00junk", "UTF-8"),
    ],
)
def test_a_wrong_table_is_told_in_one_line(put, content, match):
    refused(put(content), match)


def test_a_column_of_numbers_and_text_is_refused_and_its_text_counted(put):
    table = "size,city,y\n" + "1,Rome,0\n" * 4200 + "2,3,1\nx,Bonn,0\nz,Bonn,0\n"
    refused(
        put(table), r"line 4203, column 'size' .* got 'x' \(2 cells of the column are not numbers\): mend or drop them"
    )
    refused(put("a,y\n1,0\n2,0\nx,0\n"), "got 'x': mend or drop it$")
    with pytest.raises(UserError, match=r"line 2, column 'city' .* 'Rome' .* needs this column as numbers") as caught:
        read_features(put(table), ("city",))
    assert "--ignore" not in str(caught.value)  # a model cannot do without


@pytest.mark.parametrize("target", ["kind", "y"])
def test_decimal_commas_are_read_where_semicolons_part_the_cells(put, target):
    values = np.random.default_rng(0).normal(size=(5000, 3)).round(6)  # over two blocks
    values[0] = 7  # no mark at all on the first line
    rows = [[*map(repr, row), "ab"[i % 2]] for i, row in enumerate(values.tolist())]
    lines = ["u;v;y;kind", *(";".join(row) for row in rows)]
    point, comma = "\n".join(lines), "\n".join(lines).replace(".", ",")
    left_out = "y" if target == "kind" else "kind"
    ours = load(f"csv:{put(comma)}", target=target, ignore=[left_out])
    peer = np.loadtxt(put(point), delimiter=";", skiprows=1, usecols=(0, 1, 2))
    assert np.array_equal(ours.features.numpy(), peer[:, :2])
    if target == "y":
        assert np.array_equal(ours.targets.numpy(), peer[:, 2])
    assert torch.equal(read_features(put(comma), ("v", "u")), ours.features[:, [1, 0]])


def test_only_the_target_may_have_the_commas_and_text_with_commas_stays_text(read):
    assert read("a;y\n1;2,5\n2;3\n").targets.tolist() == [2.5, 3.0]
    assert read("a;y\n1.5;u,v\n2;3\n").class_names == ("3", "u,v")


def test_numbers_that_rise_may_name_columns(read):
    assert read("0,1,2,y\n5,6,7,0\n").feature_names == ("0", "1", "2")  # as pandas names them
    assert read("2019,2020,y\n5,6,0\n").feature_names == ("2019", "2020")


def test_a_wrong_cell_is_found_beyond_the_first_block(put):
    refused(put("a,y\n" + "1,2\n" * 5000 + "x,2\n"), "line 5002, column 'a'")
    refused(put("a,y\n" + "1,2\n" * 5000 + "1,\n"), "line 5002, column 'y'")


def test_paths_that_are_no_file(tmp_path):
    refused(tmp_path, "expected .csv files in the folder .* none")
    refused(tmp_path / "none.csv", "No such file")
    refused("a\0b", "check the path")
    refused("x" * 5000, "check the path")
    refused("~nobody-of-this-name/a.csv", "check the path")
    refused("/dev/null", "device")


def test_reading_for_prediction(put):
    path = put("note,b,a\nhello,1,2\n,3,4\n")
    assert read_features(path, ("a", "b")).tolist() == [[2, 1], [4, 3]]
    assert read_features(put("a\n1\n2\n", "one.tsv"), ("a",)).tolist() == [[1], [2]]
    for names, match in [
        (("a", "c"), "expected the column 'c' in .* 'note', 'b', 'a': add what is missing"),
        (("a", "c", "d"), "expected the columns 'c', 'd' in"),
        (("a", "B"), "expected the column 'B' in .*: 'b' and 'B' differ only in case; rename the column"),
        (("note",), "line 2, column 'note' .* 'hello'"),
    ]:
        with pytest.raises(UserError, match=match):
            read_features(path, names)
    with pytest.raises(UserError, match=r"line 3 .* blank"):
        read_features(put("a\n1\n\n2\n"), ("a",))  # to skip it would shift every later prediction
    semi = put("a;b\n1;2\n", "semi.txt")
    assert read_features(f"csv:{semi}", ("b",)).tolist() == [[2]]
    with pytest.raises(UserError, match=r"\.csv, \.tsv, \.parquet, \.jsonl or \.npz"):
        read_features(put("a\n1\n", "a.json"), ("a",))


hostile = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
pieces = st.sampled_from([*',;\t\n\r"ay1- é\0_\u2028\x1b', "2.5", "nan"])
junk = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.lists(pieces, max_size=40).map(lambda parts: ("a,y\n" + "".join(parts)).encode()),
)
labels = st.text("ab ,;'\"\n", min_size=1).map(lambda text: "k" + text)


@hostile
@given(junk)
def test_any_bytes_load_or_are_a_mistake(put, content):
    path = put(content)
    for target in (None, "a"):
        try:
            data = load(f"csv:{path}", target=target)
        except UserError as mistake:
            lines = str(mistake).splitlines()
        else:
            lines = [data.name]
            assert data.features.isfinite().all()
            assert data.targets.isfinite().all()
        assert len(lines) == 1


@hostile
@given(st.lists(st.tuples(st.floats(-(2.0**99), 2.0**99, width=32), labels), min_size=1))
def test_what_the_csv_module_writes_is_read_back(put, rows):
    path = put("")
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("x", "label"), *rows])
    data = load(f"csv:{path}")
    assert data.features[:, 0].tolist() == [value for value, _ in rows]
    assert data.class_names is not None
    assert [data.class_names[label] for label in data.targets] == [text.strip() for _, text in rows]
