"""Translation from the command line, and the numbers that are told of it."""

import json
import math
from collections import Counter

import pytest

from quoin.cli import main
from quoin.errors import UserError
from quoin.metrics import bleu, exact_match
from quoin.runs import Run
from quoin.runs.kinds import translation as translation_run
from quoin.runs.kinds.translation import TrainedTranslator

SMALL = ["--num-pairs", "200", "--epochs", "2", "--hidden-dim", "16", "--embed-dim", "8", "--num-threads", "1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    assert main(["train", "translate-dates", *SMALL, "--runs", str(place), "--json"]) == 0
    return place / "translate-dates-1"


def by_hand(said, right):
    """BLEU of one sentence from its formula, over words."""
    ours, theirs = said.split(), right.split()
    total = 0.0
    for n in range(1, 5):
        grams = [Counter(tuple(side[i : i + n]) for i in range(len(side) - n + 1)) for side in (ours, theirs)]
        total += math.log(sum((grams[0] & grams[1]).values()) / sum(grams[0].values())) / 4
    return 100 * min(1.0, math.exp(1 - len(theirs) / len(ours))) * math.exp(total)


def test_bleu_is_its_formula():
    pytest.importorskip("sacrebleu")
    right = "the quick brown fox jumps over the lazy dog today"
    for said in (
        right,
        "the quick brown fox jumps over a dog",
        "the quick brown fox jumps over the lazy lazy dog again today",
    ):
        assert bleu([said], [right]) == pytest.approx(by_hand(said, right))
        letters = [" ".join(each.replace(" ", "")) for each in (said, right)]
        assert bleu([said.replace(" ", "")], [right.replace(" ", "")], tokens="characters") == pytest.approx(
            by_hand(*letters)
        )
    assert exact_match(["a", "b", "c"], ["a", "x", "c"]) == pytest.approx(2 / 3)
    for call in (bleu, exact_match):
        with pytest.raises(UserError, match="got 1 and 0"):
            call(["a"], [])


def test_a_run_tells_what_is_right_and_where_it_looked(run):
    metrics = json.loads((run / "result.json").read_text())["metrics"]
    assert {"test_loss", "test_exact_match", "test_bleu", "validation_exact_match", "train_exact_match"} <= set(metrics)
    assert 0 <= metrics["test_exact_match"] <= 1
    assert metrics["test_loss"] < math.log(12)  # below a uniform guess of the characters
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Exact match by source length" in page
    assert "Attention weights" in page


def test_it_translates_lines(run, tmp_path, capsys):
    opened = Run.open(run).trained
    assert isinstance(opened, TrainedTranslator)
    lines = ["3 March 2005", "12/24/1999", "the 1st of May 1987", "7.6.21"]
    found = opened.predict(lines)
    assert [opened.predict([line])[0] for line in lines] == found  # as alone, so in company
    said = [each.text for each in found]
    assert len(opened.predict(lines, num_beams=3)) == 4
    (tmp_path / "dates.txt").write_text("\n".join(lines) + "\n")
    capsys.readouterr()
    assert main(["predict", str(run), str(tmp_path / "dates.txt")]) == 0
    assert capsys.readouterr().out.splitlines() == said
    assert main(["predict", str(run), str(tmp_path / "dates.txt"), "--out", str(tmp_path / "iso.txt")]) == 0
    assert (tmp_path / "iso.txt").read_text().splitlines() == said


def test_a_translation_without_an_end_is_told(run, tmp_path, capsys, monkeypatch):
    (tmp_path / "dates.txt").write_text("3 March 2005\n4 March 2005\n")
    monkeypatch.setattr(translation_run, "longest", lambda data_info: 1)  # no ISO date is that short
    assert not any(each.ended for each in Run.open(run).predict(["3 March 2005"]))
    capsys.readouterr()
    assert main(["predict", str(run), str(tmp_path / "dates.txt")]) == 0
    assert "note: 2 of 2 translations, the first in line 1, had no EOS" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"3 March 2005\n\n4 March 2005\n", "line 2, got an empty one"),
        ("3 März 2005\n".encode(), "line 1, '3 März 2005'"),
        (b"\xff\xfe", "UTF-8"),
        (b"", "the file is empty"),
    ],
)
def test_bad_lines_are_told(run, tmp_path, capsys, text, words):
    (tmp_path / "bad.txt").write_bytes(text)
    assert main(["predict", str(run), str(tmp_path / "bad.txt")]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--num-beams", "0"], "--num-beams must be at least 1"),
        (["--data", "digits"], "pairs of sentences"),
        (["--num-pairs", "3"], "--num-pairs must be at least 10"),
        (["--cell", "rnn"], "--cell"),
        (["--hidden-dim", "0"], "--hidden-dim must be at least 1"),
    ],
)
def test_bad_flags_are_told(tmp_path, capsys, flags, words):
    assert main(["train", "translate-dates", *flags, "--runs", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "flags", [["--cell", "lstm", "--num-layers", "2", "--dropout", "0.1", "--num-beams", "2"], ["--no-attention"]]
)
def test_other_ways_to_translate(tmp_path, flags):
    words = [
        "train",
        "translate-dates",
        *SMALL,
        *flags,
        "--max-steps",
        "4",
        "--micro-batch-size",
        "20",
        "--runs",
        str(tmp_path),
        "--json",
    ]
    assert main(words) == 0
    assert isinstance(Run.open(tmp_path / "translate-dates-1").trained, TrainedTranslator)


def test_sentences_of_a_file_in_words(tmp_path):
    numbers = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    rows = [f"{numbers[a]} and {numbers[b]}\t{a} {b}" for a in range(10) for b in range(10)]
    (tmp_path / "pairs.tsv").write_text("\n".join(rows))
    words = ["--data", f"tsv:{tmp_path / 'pairs.tsv'}", "--source-tokenizer", "word", "--target-tokenizer", "word"]
    assert main(["train", "translate-dates", *SMALL, *words, "--runs", str(tmp_path), "--json"]) == 0
    (tmp_path / "pairs.tsv").unlink()  # a run needs its pairs no more
    assert len(Run.open(tmp_path / "translate-dates-1").predict(["six and seven"])) == 1
