"""CSV files: parity with numpy and pandas-like habits, and every way in which a table can be wrong."""

import csv
import time

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quoin.data import as_classes, as_regression, load, read_features
from quoin.errors import Mistake


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


def refused(path, match, **options):
    with pytest.raises(Mistake, match=match) as caught:
        load(f"csv:{path}", **options)
    assert len(str(caught.value).splitlines()) == 1


def test_numbers_agree_with_numpys_reader(put):
    values = np.random.default_rng(0).normal(size=(9000, 4)) * [1, 1e-20, 1e20, 1e6]  # over two blocks
    path = put("a,b,c,y\n" + "\n".join(",".join(map(repr, row)) for row in values.tolist()) + "\n")
    data, peer = load(f"csv:{path}"), np.loadtxt(path, delimiter=",", skiprows=1).astype(np.float32)
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
    with pytest.raises(Mistake, match="regression recipe"):
        as_classes(real)
    text = read("x,y\n1,red\n2,blue\n3,5\n")
    assert as_classes(text).class_names == ("5", "blue", "red")
    with pytest.raises(Mistake, match=r"'red' \(row 1\)"):
        as_regression(text)
    many = read("x,y\n" + "".join(f"1,{i}\n" for i in range(1001)))
    assert as_regression(many).targets.tolist() == list(range(1001))
    with pytest.raises(Mistake, match="regression recipe"):
        as_classes(many)
    with pytest.raises(Mistake, match="two or more classes"):
        as_classes(read("x,y\n1,red\n2,red\n"))


def test_the_target_is_named_or_goes_by_a_usual_name(put):
    path = put("label,b\n1,2\n3,4\n")
    assert load(f"csv:{path}").feature_names == ("b",)
    assert load(f"csv:{path}", target="b").feature_names == ("label",)
    refused(path, "none: choose from 'label', 'b'", target="lable")
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
        ("a;y\n1;2\n1,5;4\n", "line 3, column 'a' .* got '1,5'"),
        ("a,y\n1,2\n,4\n", "line 3, column 'a' .* empty"),
        ("a,y\n1,2\n  ,4\n", "line 3, column 'a' .* empty"),
        ("a,y\n1,2\nnan,4\n", "line 3, column 'a' .* 'nan'"),
        ("a,y\n1,2\n-inf,4\n", "line 3, column 'a' .* '-inf'"),
        ("a,y\n1,2\n1e39,4\n", "line 3, column 'a' .* '1e39'"),
        ("a,y\n1,2\n4,\n", "line 3, column 'y' .* empty"),
        ("a,y\n1,red\n4,\n", "line 3, column 'y' .* empty"),
        ("a,y\n1,2\n4,NaN\n", "line 3, column 'y' .* 'NaN'"),
        ("a,y\n1,red\n4,NaN\n", "line 3, column 'y' .* 'NaN'"),
        ("a,y\n1,2\n4,inf\n", "line 3, column 'y' .* 'inf'"),
        ("a,a,y\n1,2,3\n", "'a' twice"),
        (",a,y\n1,2,3\n", "column 1 .* index=False"),
        ("1,2,3\n4,5,6\n", "add a header"),
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


def test_a_wrong_cell_is_found_beyond_the_first_block(put):
    refused(put("a,y\n" + "1,2\n" * 5000 + "x,2\n"), "line 5002, column 'a'")
    refused(put("a,y\n" + "1,2\n" * 5000 + "1,\n"), "line 5002, column 'y'")


def test_paths_that_are_no_file(tmp_path):
    refused(tmp_path, "is a folder")
    refused(tmp_path / "none.csv", "No such file")
    refused("a\0b", "check the path")
    refused("x" * 5000, "check the path")
    refused("~nobody-of-this-name/a.csv", "check the path")
    refused("/dev/null", "device")


def test_reading_for_prediction(put):
    path = put("note,b,a\nhello,1,2\n,3,4\n")
    assert read_features(path, ("a", "b")).tolist() == [[2, 1], [4, 3]]
    assert read_features(put("a\n1\n2\n", "one.tsv"), ("a",)).tolist() == [[1], [2]]
    for names, match in [(("a", "c"), "column 'c' .* 'note', 'b', 'a'"), (("note",), "line 2, column 'note' .* 'hello'")]:
        with pytest.raises(Mistake, match=match):
            read_features(path, names)
    with pytest.raises(Mistake, match=r"line 3 .* blank"):
        read_features(put("a\n1\n\n2\n"), ("a",))  # to skip it would shift every later prediction
    with pytest.raises(Mistake, match=r"\.csv, \.tsv or \.npz"):
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
        except Mistake as mistake:
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


def test_a_large_table_is_read_in_seconds(put):
    row = ",".join(f"{value:.6f}" for value in np.random.default_rng(0).normal(size=50))
    path = put(",".join(f"c{i}" for i in range(49)) + ",y\n" + (row + "\n") * 20_000)
    start = time.perf_counter()
    assert load(f"csv:{path}").features.shape == (20_000, 49)
    assert time.perf_counter() - start < 10  # about 0.4 s on an idle core
