"""Random words and random tables: whatever comes, the command line answers 0, 1 or 2, and never with a traceback."""

import contextlib
import csv
import dataclasses
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quoin.cli import main
from quoin.cli.commands import COMMANDS
from quoin.data import load
from quoin.errors import UserError
from quoin.options import flag_name
from quoin.runs import RunConfig, find_recipe, recipe_names

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
EXAMPLES = settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)
# Not drawn: --runs (always a scratch folder), --compile (minutes of a C++ compiler), and the sizes that only cost time.
LEFT_OUT = {"compile", "hidden_dim", "hidden_dims", "max_steps", "num_threads"}


def answer(*words: str) -> tuple[int, str]:
    """The exit code and standard error; an exception fails the test by itself."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    said = err.getvalue()
    assert code in (0, 1, 2), code
    assert "Traceback" not in said
    if code == 2:
        assert out.getvalue() == ""
        assert len(said.splitlines()) == 1, said
        assert said.startswith("quoin: ")
    return code, said


def no_nul(text: str) -> str:
    return text.replace("\0", "")  # no operating system passes one


TEXT = st.text(max_size=12).map(no_nul)
NUMBERS = st.one_of(
    st.sampled_from(
        [
            "0",
            "-0",
            "1",
            "-1",
            "1e400",
            "1e38",
            "4e38",
            "1e-320",
            "nan",
            "-inf",
            "1_0",
            "٣",
            "²",
            "0x10",
            "1.5",
            " 1",
            "1,5",
        ]
    ),
    st.integers().map(str),
    st.integers(min_value=0, max_value=300).map(str),
    st.floats().map(repr),
    st.floats(min_value=1e-6, max_value=1.0).map(repr),
    st.just("9" * 5000),
)
SOURCES = ["digits", "iris", "linear", "blobs", "diabetes", "csv:", "npz:/", "idx:."]
NAMES = st.sampled_from([*SOURCES, "auto", "cpu", "constant", "step", "float16", "0/5", "9/5"])
VALUES = st.one_of(NUMBERS, TEXT, NAMES)
HIDDEN = st.lists(st.sampled_from(["1", "2", "33", "0", "-5", "x", "", "1000000000", "9" * 30]), max_size=3)


@st.composite
def training_words(draw) -> list[str]:
    recipe = draw(st.sampled_from(recipe_names()))
    fields = [*dataclasses.fields(find_recipe(recipe).options), *dataclasses.fields(RunConfig)]
    chosen = draw(
        st.lists(st.sampled_from([each.name for each in fields if each.name not in LEFT_OUT]), max_size=4, unique=True)
    )
    words = ["train", recipe, "--json"] if draw(st.booleans()) else ["train", recipe]
    for name in chosen:
        value = draw(VALUES)
        words += [f"{flag_name(name)}={value}"] if draw(st.booleans()) else [flag_name(name), value]
    if draw(st.booleans()):
        words += ["--hidden-dims", *draw(HIDDEN)]
    if draw(st.integers(0, 9)) == 0:
        words.insert(draw(st.integers(0, len(words))), draw(TEXT))
    return words


@pytest.mark.deep
@EXAMPLES
@given(training_words())
def test_no_options_end_in_a_traceback(words):
    with tempfile.TemporaryDirectory() as runs:
        code, said = answer(*words, "--max-steps", "2", "--num-threads", "1", "--runs", runs)
        if code == 2:
            assert not list(Path(runs).iterdir()), (words, said)  # what could not begin leaves nothing


QUICK_COMMANDS = [name for name in [*COMMANDS, "", "--version"] if name not in ("train", "lr", "plan", "bench")]


@pytest.mark.deep
@EXAMPLES
@given(st.sampled_from(QUICK_COMMANDS), st.lists(st.one_of(TEXT, NUMBERS), min_size=1, max_size=3))
def test_no_words_end_in_a_traceback(command, words):
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        answer(command, *words)


# ---- tables -----------------------------------------------------------------------------------------------------

CELLS = st.one_of(
    st.integers(-3, 3).map(str),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr),
    st.sampled_from(["3e38", "-3.4e38", "1e-45", "1e39", "nan", "inf", "", " ", "1_0", "٣"]),
    st.sampled_from(['"', "$x^2$", "a\nb", "\r", "é", "😀", "x" * 300, "\ud800"]),
    TEXT,
)
PLAIN = st.one_of(st.integers(-3, 3).map(str), st.floats(-1e30, 1e30).map(repr))
GOOD_LABELS = st.sampled_from(["yes", "no", "1", "2", "$\\frac$", "<b>", "😀", "1.5", "3e38", "-3e38"])
LABELS = st.one_of(GOOD_LABELS, CELLS)
HEADERS = st.one_of(st.sampled_from(["a", "b", "x1", "label", "target", "$y$", "é", "1", ""]), TEXT)


@st.composite
def tables(draw) -> bytes:
    """CSV text: mostly even tables of numbers with a class column, sometimes anything at all; the simplest is a good
    one."""
    if draw(st.integers(0, 9)) == 9:
        return draw(st.binary(max_size=200))
    width = draw(st.integers(1, 4))
    wild = draw(st.integers(0, 2)) == 2
    header = draw(st.lists(HEADERS, min_size=width, max_size=width)) if wild else [f"x{i}" for i in range(width)]
    kinds = draw(st.lists(LABELS if wild else GOOD_LABELS, min_size=1, max_size=4))
    rows = [[*header, "label"]]
    for _ in range(draw(st.sampled_from([20, 30, 20, 30, 10, 3, 1, 0]))):
        row = draw(st.lists(CELLS if wild and draw(st.integers(0, 9)) == 0 else PLAIN, min_size=width, max_size=width))
        rows.append([*row, draw(st.sampled_from(kinds))])
    if wild and draw(st.booleans()):
        rows[-1] = rows[-1][:-1]
    text = io.StringIO()
    csv.writer(text, delimiter=draw(st.sampled_from(",,,;\t"))).writerows(rows)
    written = text.getvalue().encode("utf-8", "surrogatepass")
    return written[: draw(st.integers(0, len(written)))] if draw(st.integers(0, 9)) == 9 else written


@pytest.mark.deep
@settings(EXAMPLES, max_examples=40)  # each may be a run, a study, and three commands on it
@given(
    content=tables(),
    recipe=st.sampled_from(recipe_names()),
    target=st.one_of(st.just("label"), st.none(), TEXT),
    more=st.sampled_from([[], [], ["--folds", "2"], ["--seeds", "2"], ["--batch-size", "1"]]),
)
def test_no_table_ends_in_a_traceback(content, recipe, target, more):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "table.csv").write_bytes(content)
        runs = Path(folder) / "runs"
        words = [
            "train",
            recipe,
            "--data",
            f"csv:{folder}/table.csv",
            "--max-steps",
            "2",
            "--num-threads",
            "1",
            "--runs",
            str(runs),
            *more,
        ]
        words += [] if target is None else [f"--target={target}"]
        code, said = answer(*words)
        made = list(runs.glob("*"))
        if code == 2:
            assert not made, said
        elif code == 0:  # and what could be trained can be judged, used and set beside itself
            run = str(next(iter(made[0].glob("*-0")), made[0]))
            assert answer("eval", run)[0] == 0
            assert answer("predict", run, f"{folder}/table.csv")[0] == 0
            assert answer("compare", run, run, "--out", f"{folder}/compare.html")[0] == 0


def test_the_tables_are_neither_all_refused_nor_all_taken():
    """The strategy reaches both sides of the door: else the test above would show less than it says."""
    taken = []

    @settings(
        EXAMPLES, max_examples=300
    )  # a fraction of few examples would hang on which constants of our sources hypothesis has met
    @given(tables())
    def look(content):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "table.csv").write_bytes(content)
            try:
                taken.append(load(f"csv:{folder}/table.csv", target="label").num_rows > 10)
            except UserError:
                taken.append(False)

    look()
    assert 0.1 < sum(taken) / len(taken) < 0.9


def test_a_traceback_would_be_seen(monkeypatch):
    monkeypatch.setattr("quoin.cli.parse", lambda words: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        answer("list")
