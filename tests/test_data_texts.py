"""Texts with classes and pairs from a user's files: what is read and refused, and train, eval and predict on it."""

import csv
import json

import pytest

from commands import tried
from quoin.data import load_labeled_pairs, load_pairs, load_text, read_texts, split_pairs
from quoin.data.labeled_files import LABEL_COLUMN, TEXT_COLUMN
from quoin.errors import UserError

ROWS = [(f"{'ab' * (1 + i // 2)}{'xy'[i % 2]}", ("odd", "even")[i % 2]) for i in range(40)]


def write_csv(path, header, rows, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def test_every_form_holds_the_same_texts(tmp_path):
    """Quotes, line breaks, semicolons and long cells survive; other columns do not matter."""
    rows = [('he said "no",\nthen; left', "a"), ("x" * 200_000, "b"), ("plain", "a")]
    write_csv(tmp_path / "one.csv", ("id", "review", "sentiment"), [(i, *row) for i, row in enumerate(rows)])
    write_csv(tmp_path / "two.csv", ("Label", "Text"), [row[::-1] for row in rows], delimiter=";")
    lines = [json.dumps({"label": label, "n": 1, "text": text}) for text, label in rows]
    (tmp_path / "three.jsonl").write_text("\n\n".join(lines) + "\n")
    for name in ("one.csv", "two.csv", "three.jsonl"):
        found = load_labeled_pairs(f"{name.split('.')[1]}:{tmp_path / name}")
        assert list(zip(found.sources, found.targets)) == rows
        assert read_texts(tmp_path / name, None) == ([text for text, _ in rows], None)


def test_a_tsv_has_a_header_where_it_names_both_columns(tmp_path):
    file = tmp_path / "a.tsv"
    file.write_text('class\ttext\nc\t"quoted\nd\tplain\n')
    found = load_labeled_pairs(f"tsv:{file}")
    assert (found.sources, found.targets, found.column_names) == (('"quoted', "plain"), ("c", "d"), ("text", "class"))
    file.write_text("first\tc\nsecond\td\tcredits\n")
    found = load_labeled_pairs(f"tsv:{file}")
    assert (found.sources, found.targets, found.column_names) == (("first", "second"), ("c", "d"), (None, None))
    assert read_texts(file, None)[0] == ["first", "second"]


def test_columns_are_named_by_flags_then_by_the_run_then_by_custom(tmp_path):
    file = write_csv(tmp_path / "a.csv", ("text", "body", "label", "stars"), [("t", "b", "l", "s")])
    for text, label, wanted in ((None, None, ("t", "l")), ("body", None, ("b", "l")), ("body", "stars", ("b", "s"))):
        found = load_labeled_pairs(
            f"csv:{file}", text_column=TEXT_COLUMN._replace(name=text), target=LABEL_COLUMN._replace(preferred=label)
        )
        assert (found.sources[0], found.targets[0]) == wanted
    found = load_labeled_pairs(f"csv:{file}", text_column=TEXT_COLUMN._replace(preferred="not there"))
    assert found.sources == ("t",)


def test_pairs_of_the_only_two_columns(tmp_path):
    file = write_csv(tmp_path / "a.csv", ("en", "de"), [("one", "eins"), ("two", "zwei"), ("one", "eins")])
    pairs = load_pairs(f"csv:{file}")
    assert (pairs.sources, pairs.targets, pairs.column_names) == (("one", "two"), ("eins", "zwei"), ("en", "de"))
    (tmp_path / "b.jsonl").write_text('{"tgt": "eins", "id": 4, "src": 1}\n')
    assert load_pairs(f"jsonl:{tmp_path / 'b.jsonl'}").sources == ("1",)


def test_a_folder_for_each_class_and_its_own_splits(tmp_path):
    for number, (text, label) in enumerate(ROWS):
        split = "test" if number >= 30 else "train"
        (tmp_path / split / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / split / label / f"{number:02}.txt").write_text(text + "\n")
    pairs = load_labeled_pairs(f"texts:{tmp_path}")
    splits = split_pairs(pairs, seed=0)
    assert set(splits.test.sources) == {text for text, _ in ROWS[30:]}  # the folder's own
    assert sorted([*splits.train.sources, *splits.validation.sources]) == sorted(text for text, _ in ROWS[:30])
    assert len(splits.validation) == 3
    plain = load_labeled_pairs(f"texts:{tmp_path / 'train'}")
    assert (len(plain), plain.splits) == (30, None)
    texts, names = read_texts(tmp_path / "test", None)
    assert names is not None
    assert dict(zip(names, texts))["even/31.txt"] == ROWS[31][0]
    joined = load_text(f"text:{tmp_path / 'test'}").content.split("\n\n")
    assert sorted(joined) == sorted(text for text, _ in ROWS[30:])


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.csv", "text,label\na,x\n b,\n", "line 3, column 'label'.* its class is empty"),
        ("a.csv", "text,label\n ,x\n", "line 2, column 'text'.* its text is empty"),
        ("a.csv", "text,label\na,x,z\n", "2 cells in line 2 .* got 3"),
        ("a.csv", 'text,label\na,x\n"b,y\n', "row from line 3"),
        ("a.csv", "text,label\n", "none: add data"),
        ("a.csv", "", "is empty"),
        ("a.csv", "a,b,c\n1,2,3\n", "text or sentence .* --text-column"),
        ("a.csv", "text,review,label\n1,2,3\n", "'text' and 'review': choose with --text-column"),
        ("a.csv", "text,label,label\n1,2,3\n", "rename one"),
        ("a.csv", "te\0xt,label\n", "NUL"),
        ("a.csv", b"text,label\n\xfcber,x\n", "UTF-8"),
        ("a.jsonl", '{"text": "a", "label": 1}\n[2]\n', r"object in line 2 .* '\[2\]'"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text"\n', "object in line 2"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text": "b"}\n', "line 2, column 'label'"),
        ("a.jsonl", '{"text": {"a": 1}, "label": 1}\n', "line 1 .* write it as text"),
        ("a.jsonl", "[" * 100_000 + "\n", "object in line 1"),
    ],
)
def test_one_line_names_file_line_and_column(tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=told) as caught:
        load_labeled_pairs(f"{name.split('.')[1]}:{tmp_path / name}")
    assert "\n" not in str(caught.value)


@pytest.mark.deep
def test_train_eval_and_predict_by_command(tmp_path):
    write_csv(tmp_path / "a.csv", ("number", "body", "stars"), [(i, *row) for i, row in enumerate(ROWS)])
    small = "--embed-dim 4 --hidden-dim 4 --epochs 60 --lr 0.05 --batch-size 8 --no-baselines --num-threads 1 --json"
    columns = f"--data csv:{tmp_path / 'a.csv'} --text-column body --target stars --runs {tmp_path}"
    code, out, err = tried("train", "sequence-classification", *small.split(), *columns.split())
    assert code == 0, err
    run = json.loads(out)["run"]
    code, out, err = tried("predict", run, tmp_path / "a.csv")
    assert code == 0, err
    found = list(csv.DictReader(out.splitlines()))
    assert [row["stars"] for row in found] == [label for _, label in ROWS]
    code, out, err = tried("eval", run, "--data", f"csv:{tmp_path / 'a.csv'}", "--json")
    assert json.loads(out)["accuracy"] == 1.0, err
    for words, told in (
        (["eval", run, "--data", f"csv:{tmp_path / 'a.csv'}", "--target", "number"], "the run knows the classes"),
        (["train", "sequence-classification", "--target", "stars"], "leave it out"),
        (["train", "translate-dates", "--source-column", "body"], "leave it out"),
    ):
        code, _, err = tried(*words)
        assert (code, err.count("\n")) == (2, 1), err
        assert told in err
