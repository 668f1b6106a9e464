"""Tables as people have them: categories, dates, booleans, gaps, identifiers; csv, tsv, parquet and JSON Lines."""

import json

import numpy as np
import polars
import pytest
import torch
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from quoin.data import Split, TableEncoder, load, load_like, prepare, read_features, split
from quoin.errors import UserError

ROWS = 60


@pytest.fixture
def messy():
    """Rows with a number, a category, a date, a boolean and a class."""
    rng = np.random.default_rng(0)
    return polars.DataFrame(
        {
            "age": rng.normal(40, 10, ROWS).round(2),
            "city": rng.choice(["Bonn", "Oslo", "Rome"], ROWS),
            "joined": [f"20{10 + i % 10}-0{1 + i % 9}-1{i % 10}" for i in range(ROWS)],
            "member": rng.choice(["true", "False"], ROWS),
            "label": rng.choice(["no", "yes"], ROWS),
        }
    )


def saved(frame, form, path):
    if form == "csv":
        frame.write_csv(path)
    elif form == "tsv":
        frame.write_csv(path, separator="\t")
    elif form == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_ndjson(path)
    return f"{form}:{path}"


def rows(train, validation=(), test=()):
    return Split(*(torch.tensor(list(part), dtype=torch.int64) for part in (train, validation, test)))


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "jsonl"])
def test_every_format_gives_the_same_columns(messy, tmp_path, form):
    data = load(saved(messy, form, tmp_path / "t"))
    assert [column.kind for column in data.columns] == ["number", "category", "date", "boolean"]
    assert data.columns[1].levels == ("Bonn", "Oslo", "Rome")
    peer = messy["joined"].str.to_date().dt.epoch("d").to_numpy()
    assert np.array_equal(data.features[:, 0].numpy(), messy["age"].to_numpy())
    assert np.array_equal(data.features[:, 2].numpy(), peer)
    assert np.array_equal(data.features[:, 3].numpy(), (messy["member"] == "true").to_numpy())
    assert data.class_names == ("no", "yes")
    assert [data.class_names[label] for label in data.targets] == messy["label"].to_list()


def test_typed_columns_of_parquet(tmp_path):
    frame = polars.DataFrame(
        {
            "a": polars.Series([1, 2, 3], dtype=polars.Int8),
            "b": [True, False, None],
            "c": polars.Series(["x", "y", "x"], dtype=polars.Categorical),
            "t": polars.Series(["2020-01-02T12:00:00", "1970-01-01T00:00:00", None]).str.to_datetime(),
            "y": polars.Series(["u", "v", "u"], dtype=polars.Enum(["v", "u"])),
        }
    )
    data = load(saved(frame, "parquet", tmp_path / "t"), missing="mean")
    assert [column.kind for column in data.columns] == ["number", "boolean", "category", "date"]
    expected = [[1, 1, 0, 18263.5], [2, 0, 1, 0], [3, np.nan, 0, np.nan]]
    assert np.array_equal(data.features.numpy(), expected, equal_nan=True)
    assert data.class_names == ("u", "v")
    with pytest.raises(UserError, match=r"column 'l' .* got List: leave it out with --ignore"):
        load(saved(polars.DataFrame({"l": [[1], [2]], "y": [0, 1]}), "parquet", tmp_path / "l"))


def test_features_are_those_of_scikit_learn(messy, tmp_path):
    holes = messy.with_columns(
        polars.when(polars.int_range(ROWS) % 7 == 3).then(None).otherwise(polars.col("age")).alias("age"),
        polars.when(polars.int_range(ROWS) % 11 == 5).then(None).otherwise(polars.col("city")).alias("city"),
    )
    data = load(saved(holes, "csv", tmp_path / "t"), missing="mean")
    train = torch.arange(0, ROWS, 2)
    encoder = TableEncoder.fit(data.columns, data.features, train, "mean")
    ours = encoder.transform(data.columns, data.features).numpy()
    ages = holes.select("age").to_numpy()
    filled = SimpleImputer(add_indicator=True).fit(ages[train]).transform(ages)
    cities = holes.select(polars.col("city").fill_null("")).to_numpy()
    hot = OneHotEncoder(categories=[["Bonn", "Oslo", "Rome"]], handle_unknown="ignore", sparse_output=False)
    hot = hot.fit(cities[train][cities[train] != ""][:, None]).transform(cities)
    assert encoder.feature_names == (
        *("age", "age missing", "city=Bonn", "city=Oslo", "city=Rome", "city missing", "joined", "member"),
    )
    np.testing.assert_allclose(ours[:, :2], filled, rtol=1e-12)
    assert np.array_equal(ours[:, 2:5], hot)
    assert np.array_equal(ours[:, 5], cities[:, 0] == "")


def test_no_row_outside_the_training_split_moves_what_is_learnt(messy, tmp_path):
    train = range(40)
    whole = load(saved(messy, "csv", tmp_path / "a"))
    # other rows: another city, an age far off, a gap, another date
    changed = messy[:40].vstack(
        messy[40:].with_columns(
            polars.lit(1e6).alias("age"),
            polars.lit("Aachen").alias("city"),
            polars.lit("1999-01-01").alias("joined"),
        )
    )
    changed[45, "age"] = None
    other = load(saved(changed, "csv", tmp_path / "b"), missing="mean")
    one = prepare(whole, rows(train, range(40, 50), range(50, 60)), missing="mean")
    two = prepare(other, rows(train, range(40, 50), range(50, 60)), missing="mean")
    assert one.data_info.columns == two.data_info.columns
    assert one.data_info.feature_names == two.data_info.feature_names
    for ours, theirs in zip(one.feature_scaler, two.feature_scaler):
        assert torch.equal(ours, theirs)
    assert torch.equal(one.train.features, two.train.features)
    assert not torch.equal(one.test.features, two.test.features)  # so a change of training rows would have told


def test_plain_numbers_are_features_as_they_are(tmp_path):
    frame = polars.DataFrame({"a": [1.5, 2.0, 4.0, 5.0], "b": [1, 2, 3, 5], "y": [0, 1, 0, 1]})
    data = load(saved(frame, "csv", tmp_path / "t"))
    encoder = TableEncoder.fit(data.columns, data.features, torch.arange(2))
    assert encoder.transform(data.columns, data.features) is data.features


def test_gaps_are_counted_by_column(messy, tmp_path):
    messy[3, "age"] = messy[4, "age"] = messy[2, "city"] = None
    source = saved(messy, "csv", tmp_path / "t")
    with pytest.raises(UserError, match=r"line 4, column 'city' .* by column: 'age' 2, 'city' 1\): .* --missing mean"):
        load(source)
    assert load(source, missing="mean").features.isnan().sum(0).tolist() == [2, 1, 0, 0]
    messy[5, "label"] = None
    with pytest.raises(UserError, match=r"line 7, column 'label' .* no value: fill it or drop that row"):
        load(saved(messy, "csv", tmp_path / "t"), missing="mean")


@pytest.mark.parametrize("word", ["", "NA", "NaN", "null", "N/A", " "])
def test_a_cell_may_say_that_it_has_no_value(tmp_path, word):
    path = tmp_path / "t.csv"
    path.write_text(f"a,c,y\n1,x,0\n{word},{word},1\n3,z,0\n")
    data = load(f"csv:{path}", missing="mean")
    assert data.features.isnan().tolist() == [[False, False], [True, True], [False, False]]


def test_several_targets(tmp_path):
    frame = polars.DataFrame({"a": [1.0, 2, 3], "u": [0.5, 1, 2], "v": [1, 2, 3], "c": ["x", "y", "x"]})
    source = saved(frame, "csv", tmp_path / "t")
    data = load(source, target=("v", "u"), ignore=("c",))
    assert data.targets.tolist() == [[1, 0.5], [2, 1], [3, 2]]
    assert data.target_names == ("v", "u")
    assert data.feature_names == ("a",)
    with pytest.raises(UserError, match=r"numbers as each of several targets, .* 'c' .* such as 'x'"):
        load(source, target=("v", "c"))


def test_folders_and_globs_are_one_table(messy, tmp_path):
    (tmp_path / "parts").mkdir()
    for at in range(3):
        saved(messy[at * 20 : at * 20 + 20], "csv", tmp_path / "parts" / f"{at}.csv")
    whole = load(saved(messy, "csv", tmp_path / "t"))
    for source in (f"csv:{tmp_path}/parts", f"csv:{tmp_path}/parts/*.csv"):
        data = load(source)
        assert torch.equal(data.features, whole.features)
        assert data.fingerprint == whole.fingerprint
    (tmp_path / "parts" / "2.csv").write_text(
        "age,city,joined,member,label\n1,Rome,2020-01-01,true,no\nx,Rome,2020-01-01,true,no\n"
    )
    with pytest.raises(UserError, match=r"line 3, column 'age' of '.*2\.csv'"):
        load(f"csv:{tmp_path}/parts")
    (tmp_path / "parts" / "2.csv").write_text("age,town\n1,2\n")
    with pytest.raises(UserError, match=r"same columns in every file, but '.*2\.csv' (has|lacks) '"):
        load(f"csv:{tmp_path}/parts")
    with pytest.raises(UserError, match="none: check the pattern"):
        load(f"csv:{tmp_path}/nothing*.csv")


@pytest.mark.parametrize("name", ["id", "user_id", "PassengerId", "uuid", "index"])
def test_identifiers_are_refused_with_the_flag_that_leaves_them_out(tmp_path, name):
    frame = polars.DataFrame({name: range(30), "a": [1.5, 2.5] * 15, "y": [0, 1] * 15})
    source = saved(frame, "csv", tmp_path / "t")
    with pytest.raises(UserError, match=f"identifier .* --ignore {name}"):
        load(source)
    assert load(source, ignore=[name]).feature_names == ("a",)
    # a measurement may be whole and never twice the same, and an id that repeats is no name of a row
    load(saved(frame.rename({name: "year"}), "csv", tmp_path / "t"))
    load(saved(frame.with_columns(polars.Series(name, [1, 2] * 15)), "csv", tmp_path / "t"))


def test_text_without_end_is_no_category(tmp_path):
    names = saved(polars.DataFrame({"n": [f"p{i}" for i in range(40)], "y": [0, 1] * 20}), "csv", tmp_path / "t")
    with pytest.raises(UserError, match=r"looks like an identifier or free text \(40 different values in 40 rows\)"):
        load(names)
    many = polars.DataFrame({"n": [f"p{i % 10_000}" for i in range(20_000)], "y": [0, 1] * 10_000})
    with pytest.raises(UserError, match=r"at most 100 categories, but column 'n' .* has 10000: leave it out"):
        load(saved(many, "parquet", tmp_path / "m"))


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (["2020-01-02", "1970-01-01"], [18263, 0]),
        (["2020-01-02 12:00", "1970-01-01 06:00"], [18263.5, 0.25]),
        (["2020-01-02T12:00:00Z", "1970-01-01T00:00:00Z"], [18263.5, 0]),
        (["31.12.2020", "01.02.1970"], [18627, 31]),
        (["13/01/2020", "01/02/1970"], [18274, 31]),
        (["01/13/2020", "02/01/1970"], [18274, 31]),
    ],
)
def test_dates_are_days_since_1970(tmp_path, cells, days):
    data = load(saved(polars.DataFrame({"d": cells, "y": [0, 1]}), "csv", tmp_path / "t"))
    assert data.columns[0].kind == "date"
    assert data.features[:, 0].tolist() == days


def test_a_date_that_may_be_two_is_refused(tmp_path):
    source = saved(polars.DataFrame({"d": ["01/02/2020", "03/04/2020"], "y": [0, 1]}), "csv", tmp_path / "t")
    with pytest.raises(UserError, match="'01/02/2020' may begin with the day or the month: write them as 2024-12-31"):
        load(source)


def test_new_rows_are_read_as_the_training_rows_were(messy, tmp_path):
    messy[3, "age"] = None
    data = load(saved(messy, "csv", tmp_path / "t"), missing="mean")
    ready = prepare(data, split(data, 0), missing="mean")
    info = type(ready.data_info).from_json(json.loads(json.dumps(ready.data_info.as_json())))
    new = polars.DataFrame(
        {"member": ["true", "false"], "city": ["Rome", "Kyiv"], "age": [None, 50.0], "joined": ["2020-01-02", None]}
    )
    features, remarks = read_features(saved(new, "csv", tmp_path / "new.csv").removeprefix("csv:"), info)
    by_name = dict(zip(info.feature_names, features.T.tolist()))
    mean = {column.name: column.mean for column in info.columns}
    assert by_name["age"] == [mean["age"], 50]
    assert by_name["age missing"] == [1, 0]
    assert by_name["city=Rome"] == [1, 0]
    assert by_name["city=Bonn"] == by_name["city=Oslo"] == [0, 0]
    assert by_name["joined"] == [18263, mean["joined"]]
    assert by_name["member"] == [1, 0]
    told = "\n".join(remarks)
    assert "1 of 2 rows have a level of 'city' that training did not ('Kyiv')" in told
    assert "1 of 2 rows have no 'joined', as no training row had" in told
    assert len(remarks) == 2
    like = load_like(info, saved(messy, "parquet", tmp_path / "like"))
    assert like.feature_names == info.feature_names
    scaled = ready.feature_scaler.transform(like.features)
    assert torch.equal(scaled[split(data, 0).test], ready.test.features)
    for wrong, match in [
        (new.with_columns(age=polars.lit("old")), "line 2, column 'age' .* needs this column as numbers"),
        (new.with_columns(joined=polars.lit("soon")), "expected a date on line 2, column 'joined' .* got 'soon'"),
        (new.drop("city"), "expected the column 'city'"),
    ]:
        with pytest.raises(UserError, match=match):
            read_features(saved(wrong, "csv", tmp_path / "new.csv").removeprefix("csv:"), info)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ('{"a": 1, "y": 0}\n{"a": \n', "JSON object on line 2"),
        ('{"a": 1, "y": 0}\n\n[1, 2]\n', r"JSON object on line 3 .* '\[1, 2\]'"),
        ('{"a": 1, "y": 0}\n{"a": "x", "y": 1}\n', "one type in column 'a' .* line 1 has int and line 2 str"),
        ('{"a": {"b": 1}, "y": 0}\n', "column 'a' .* got Struct"),
        ('{"a": 1, "y": 0}\n{"y": 1}\n', "line 2, column 'a' .* no value"),
        ('{"a": null, "y": 0}\n{"a": null, "y": 1}\n', "every cell is missing"),
        (b"\xff\xfe{}", "UTF-8"),
        ("", "empty"),
    ],
)
def test_wrong_json_lines_are_told_in_one_line(tmp_path, content, match):
    path = tmp_path / "t.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=match) as caught:
        load(f"jsonl:{path}")
    assert len(str(caught.value).splitlines()) == 1


def test_damaged_parquet_is_told_in_one_line(messy, tmp_path):
    saved(messy, "parquet", tmp_path / "t")
    whole = (tmp_path / "t").read_bytes()
    rng = np.random.default_rng(0)
    for at in range(60):
        damaged = bytearray(whole)
        if at % 2:
            damaged = damaged[: int(rng.integers(len(whole)))]
        else:  # sizes and offsets stand near the end
            for place in rng.integers(len(whole) - 600, len(whole), 8):
                damaged[place] = int(rng.integers(256))
        (tmp_path / "d").write_bytes(bytes(damaged))
        told = ""
        try:
            load(f"parquet:{tmp_path}/d")
        except UserError as mistake:
            told = str(mistake)
        assert len(told.splitlines()) <= 1


@pytest.mark.parametrize("quoted", [False, True])
def test_polars_and_the_careful_reader_read_alike(messy, tmp_path, quoted, monkeypatch):
    messy = messy.with_columns(
        city=polars.Series([f'{city}, "the {i % 3}"\nnew' if quoted else city for i, city in enumerate(messy["city"])])
    )
    source = saved(messy, "csv", tmp_path / "t")
    fast = load(source)
    monkeypatch.setattr("quoin.data.table_files.is_plain_csv", lambda path, delimiter: False)
    assert load(source).fingerprint == fast.fingerprint


def test_short_rows_and_blank_lines_are_not_taken_for_gaps(tmp_path):
    path = tmp_path / "t.csv"
    for content, match in [
        ("a,b,y\n1,2,0\n1,2\n", "expected 3 cells on line 3 .* got 2"),
        ("a,b,y\n1,2,0\n\n1,2,1\n", "line 3 .* blank"),
        ("a,b,y\n1,2,0\n1,2,1,5\n", "expected 3 cells on line 3 .* got 4"),
    ]:
        path.write_text(content)
        with pytest.raises(UserError, match=match):
            load(f"csv:{path}", missing="mean")
    path.write_text("a,b,y\n1,2,0\n1,,1\n\n\n")
    assert load(f"csv:{path}", missing="mean").num_rows == 2  # blank lines may close the file


def trained_on(frame, path, **options):
    """What a model knows of this table."""
    data = load(saved(frame, "csv", path), **options)
    return prepare(data, split(data, 0), missing=options.get("missing", "error")).data_info


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({"d": [20240105], "b": [True]}, "expected a date on line 2, column 'd' .* got 20240105"),
        ({"d": ["2024-01-05"], "b": [7]}, "expected a boolean on line 2, column 'b' .* got 7"),
        ({"d": ["2024-01-05", "soon"], "b": [True, False]}, "expected a date on line 3, column 'd' .* 'soon'"),
        (
            {"d": ["2024-01-05", "2024-01-06"], "b": ["true", "yes"]},
            "expected a boolean on line 3, column 'b' .* 'yes'",
        ),
    ],
)
def test_a_column_that_is_no_longer_what_it_was_is_told(tmp_path, columns, match):
    rows = {"d": [f"2024-01-{1 + i:02d}" for i in range(20)], "b": [True, False] * 10, "y": ["u", "v"] * 10}
    info = trained_on(polars.DataFrame(rows), tmp_path / "t.csv")
    polars.DataFrame(columns).write_csv(tmp_path / "new.csv")
    with pytest.raises(UserError, match=match):
        read_features(tmp_path / "new.csv", info)


@pytest.mark.parametrize(
    ("cells", "match"),
    [
        (["2024-01-01", "2024-02-30", "2024-01-03"], "expected a date on line 3, .* got '2024-02-30'"),
        (["2024-01-01T10:00:00Z", "2024-01-01T10:00:00+01:00"], "expected a date on line 3"),
    ],
)
def test_a_date_unlike_the_others_is_told(tmp_path, cells, match):
    frame = polars.DataFrame({"d": cells, "y": range(len(cells))})
    with pytest.raises(UserError, match=match):
        load(saved(frame, "csv", tmp_path / "t"))


def test_years_of_two_digits_are_no_dates(tmp_path):
    data = load(saved(polars.DataFrame({"d": ["05.06.99", "06.06.00"], "y": [0, 1]}), "csv", tmp_path / "t"))
    assert data.columns[0].kind == "category"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_whole_numbers_that_a_float_cannot_tell_apart(tmp_path, form):
    large = [2**53, 2**53 + 1, 2**53 + 2]
    with pytest.raises(UserError, match="9007199254740992 and 9007199254740993 are one there"):
        load(saved(polars.DataFrame({"a": large, "y": [0, 1, 0]}), form, tmp_path / "a"))
    assert load(saved(polars.DataFrame({"a": [1, 2, 3], "y": large}), form, tmp_path / "b")).class_names is None


def test_a_column_without_a_value_to_learn_from(tmp_path):
    frame = polars.DataFrame({"a": [1.0, 2, 3, 4], "c": [None, None, None, 1.7e9], "y": [0, 1, 0, 1]})
    data = load(saved(frame, "csv", tmp_path / "t"), missing="mean")
    with pytest.raises(UserError, match=r"values of 'c' in the training rows, .* --ignore c"):
        prepare(data, rows([0, 1], [2], [3]), missing="mean")


def test_gaps_stay_welcome_where_all_columns_are_categories(tmp_path):
    frame = polars.DataFrame({"c": ["u", "v"] * 20, "y": [0, 1] * 20})
    assert trained_on(frame, tmp_path / "t.csv", missing="mean").missing == "mean"
    assert trained_on(frame, tmp_path / "t.csv").missing == "error"


def test_a_tab_separates_whatever_else_a_tsv_holds(tmp_path):
    (tmp_path / "t.tsv").write_text("temp, C\thum, p\ty\n1\t2\t0\n3\t4\t1\n")
    assert load(f"tsv:{tmp_path}/t.tsv").feature_names == ("temp, C", "hum, p")


def test_headers_with_blanks_are_read_by_polars_too(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text('a, "b ""x""", y\n1,2,0\n3,4,1\n')
    monkeypatch.setattr("quoin.data.table_files.CsvFile.read_carefully", None)
    assert load(f"csv:{tmp_path}/t.csv").feature_names == ("a", 'b "x"')
