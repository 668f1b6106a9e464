"""Every command where a path leads elsewhere than it should, or where its output goes nowhere: one line, no traceback.

And every message on a name that is not known: short, whatever there is to choose from.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from commands import tried
from quoin.cli.commands import COMMANDS
from quoin.errors import UserError, did_you_mean

PATHS = {  # the words of every command that takes a path, for each place of one
    "list": [],
    "fetch": [("{}",)],
    "lr": [("mlp", "--data", "csv:{}")],
    "plan": [("mlp", "--data", "csv:{}")],
    "cache": [],
    "lab": [("./{}", "--no-open")],
    "new": [("{}",), ("{}/mine.py",)],
    "runs": [("--runs", "{}"), ("rm", "{}", "--yes")],
    "train": [("{}.py",), ("./{}",)]
    + [
        ("mlp", "--data", f"{form}:{{}}")
        for form in ("csv", "tsv", "parquet", "jsonl", "npz", "images", "signals", "idx", "cifar10")
    ]
    + [("lstm-lm", "--data", f"{form}:{{}}") for form in ("text", "tokens")]
    + [("mlp", "--config", "{}", "--print-config")]
    + [("hmm", "--data", "sequences:{}"), ("sequence-classification", "--data", "texts:{}")]
    + [("translate-dates", "--data", "tsv:{}"), ("vae", "--classifier", "{}", "--max-steps", "1")],
    "sweep": [
        ("mlp", "--lr", "0.1,0.2", "--data", "csv:{}"),
        ("mlp", "--lr", "0.1,0.2", "--max-steps", "1", "--trials", "1", "--storage", "journal:{}/x"),
    ],
    "resume": [("{}",)],
    "eval": [("{}",)],
    "predict": [("{}", "rows.csv"), ("run", "{}")],
    "generate": [("{}",)],
    "compare": [("{}", "run"), ("run", "{}"), ("run", "run", "--out", "{}/x.html")],
    "inspect": [("{}",), ("run", "--out", "{}/x.html")],
    "export": [("{}", "--to", "safetensors"), ("run", "--to", "safetensors", "-o", "{}/x")],
    "import": [("{}",), ("{}", "-o", "new"), ("words.txt", "-o", "{}/x")],
    "compress": [("{}", "-o", "new"), ("words.txt", "-o", "{}/x")],
    "decompress": [("{}", "-o", "new"), ("words.txt", "-o", "{}/x")],
    "tokenize": [("{}",), ("{}", "-o", "new"), ("words.txt", "-o", "{}/x")],
    "check": [("{}",)],
    "figure": [("{}",), ("D1F1", "--out", "{}/x")],
    "map": [("{}",)],
    "bench": [("{}",)],
    "doctor": [],
}
# Where a file is expected: a folder, nothing, an empty file, text that is none of ours; what cannot be read, even by
# root.
KINDS = (
    "folder",
    ".",
    "nothing",
    "empty",
    "words.txt",
    "words.txt/inside",
    "itself",
    "x" * 300,
    "/proc/self/mem",
    "/dev/null",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run, and beside it one path of every kind."""
    root = tmp_path_factory.mktemp("places")
    np.savetxt(
        root / "rows.csv",
        np.c_[np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2],
        "%g",
        ",",
        header="a,b,label",
        comments="",
    )
    assert (
        tried("train", "mlp", "--data", f"csv:{root}/rows.csv", "--max-steps", 2, "--num-threads", 1, "--runs", root)[0]
        == 0
    )
    (root / "mlp-1").rename(root / "run")
    (root / "folder").mkdir()
    (root / "empty").touch()
    (root / "words.txt").write_text("words, words, words\n")
    (root / "itself").symlink_to("itself")
    return root


def test_every_command_is_tried():
    assert PATHS.keys() == COMMANDS.keys()
    assert {name for name, _, _ in QUICK} == {name for name, each in PATHS.items() if each}
    assert {kind for _, _, kind in QUICK} == {*KINDS}


EVERY = [(name, words, kind) for name, each in PATHS.items() for words in each for kind in KINDS]
QUICK = EVERY[::7]  # every command, and as 7 and the number of kinds have no common factor, every kind


@pytest.mark.parametrize(("command", "words", "kind"), QUICK, ids=lambda each: str(each)[:40])
def test_a_path_that_leads_elsewhere_is_one_line(command, words, kind, made, monkeypatch):
    answered_in_a_line(command, words, kind, made, monkeypatch)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("command", "words", "kind"), [each for each in EVERY if each not in QUICK], ids=lambda each: str(each)[:40]
)
def test_each_path_that_leads_elsewhere_is_one_line(command, words, kind, made, monkeypatch):
    answered_in_a_line(command, words, kind, made, monkeypatch)


def answered_in_a_line(command, words, kind, made, monkeypatch):
    monkeypatch.chdir(made)
    code, out, err = tried(command, *(word.format(kind) for word in words))
    for written in ("new", "..tokens", "words.txt.tokens", "mine.py", "folder/mine.py"):
        (made / written).unlink(missing_ok=True)
    shutil.rmtree(made / "nothing", ignore_errors=True)
    # Any bytes are what some commands take, and a folder to write into, which figures make; a map finds any word.
    if code == 0:
        fine = {"figure": ("nothing",), "map": ("nothing", "itself")}.get(command, ())
        fine = (*fine, "/dev/null") if "--config" in words else fine  # an empty file of settings
        assert kind in ("words.txt", "empty", "folder", ".", *fine), err
        return
    assert (code, out) == (2, ""), (code, out, err)
    assert len(err.splitlines()) == 1, err
    assert err.startswith("quoin: ")
    assert len(err) <= 301, err


STREAMS = {  # and whether the command ends as it would
    ">&-": True,
    "2>&-": True,
    ">&- 2>&-": True,
    "<&- >&- 2>&-": True,
    ">/dev/full": False,
    ">/dev/full 2>&1": False,
    ">/dev/full 2>&-": False,
    "1</dev/null": False,
}
SHORT = {
    "list": "",
    "map": "Z3.9 --json",
    "check": "Z3.4 --num-workers 1",
    "eval": "run",
    "train": "mlp --data csv:rows.csv --max-steps 2 --runs again",
}


# A process each; `make deep` has those that start slowly.
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize(
    "command", [name if name in ("list", "eval") else pytest.param(name, marks=pytest.mark.deep) for name in SHORT]
)
def test_output_that_goes_nowhere(command, stream, made):
    if command not in ("list", "map") and stream not in (">&-", ">/dev/full 2>&1"):
        pytest.skip("the same streams, opened in the same place")
    line = f"{sys.executable} -m quoin.cli {command} {SHORT[command]} {stream}"
    done = subprocess.run(["sh", "-c", line], cwd=made, capture_output=True, text=True)
    assert done.returncode == (0 if STREAMS[stream] else 2), done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert len(done.stderr.splitlines()) <= 1, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_into_a_closed_stream(command):
    """In one process for all of a command's imports: where its first words go."""
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m quoin.cli {command} --help >&-"], stderr=subprocess.PIPE, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


UNKNOWN = {
    "recipe": ("train", "QQQQQQQQ"),
    "data source": ("train", "mlp", "--data", "QQQQQQQQ"),
    "kind of source": ("train", "mlp", "--data", "QQQQQQQQ:x"),
    "column": ("train", "mlp", "--data", "csv:wide.csv", "--target", "QQQQQQQQ"),
    "ignored column": ("train", "mlp", "--data", "csv:wide.csv", "--ignore", "QQQQQQQQ", "--target", "c1"),
    "no target": ("train", "mlp", "--data", "csv:wide.csv"),
    "option": ("train", "mlp", "--QQQQQQQQ"),
    "option's value": ("train", "mlp", "--schedule", "QQQQQQQQ"),
    "device": ("train", "mlp", "--device", "QQQQQQQQ"),
    "command": ("QQQQQQQQ",),
    "benchmark": ("bench", "QQQQQQQQ"),
    "claim": ("check", "QQQQQQQQ"),
    "figure": ("figure", "QQQQQQQQ"),
    "figure's format": ("figure", "--format", "QQQQQQQQ"),
    "id": ("map", "QQQQQQQQ"),
    "vocabulary": ("tokenize", "words.txt", "--tokenizer", "QQQQQQQQ"),
    "sampler": ("generate", "run", "--sampler", "QQQQQQQQ"),
    "layer": ("inspect", "run", "--layer", "QQQQQQQQ"),
    "format": ("inspect", "run", "--format", "QQQQQQQQ"),
    "run": ("eval", "QQQQQQQQ"),
    "checkpoint": ("eval", "run", "--step", "77"),
}


@pytest.mark.parametrize(
    "name", ["QQQQQQQQ", "Q" * 5000, "語" * 300, "Q\nQ" * 40], ids=["short", "long", "far", "lines"]
)
@pytest.mark.parametrize("what", UNKNOWN)
def test_a_name_that_is_not_known_costs_one_short_line(what, name, made, monkeypatch):
    monkeypatch.chdir(made)
    header = ",".join(f"c{i}{'x' * (i % 60)}" for i in range(500))
    (made / "wide.csv").write_text(f"{header}\n" + f"{','.join('1' * 500)}\n" * 20)
    code, out, err = tried(*(word.replace("QQQQQQQQ", name) for word in UNKNOWN[what]))
    assert (code, out) == (2, ""), err
    assert len(err.splitlines()) == 1, err
    assert len(err) <= 301, err
    if what == "recipe":
        assert "`quoin list`" in err


@pytest.mark.parametrize("count", [1, 2, 20, 500])
@pytest.mark.parametrize("name", ["", "x", "n7", "y" * 10_000])
def test_the_hint_is_short_and_names_what_is_known(name, count):
    names = [f"n{i}{'語 ' * (i % 40)}" for i in range(count)]
    hint = did_you_mean(name, names)
    assert len(hint) <= 190
    assert "\n" not in hint
    assert any(each[:20] in hint for each in names)


def test_a_class_among_many_is_refused_shortly():
    from quoin.runs.kinds.generation import TrainedGenerator

    class Facts:
        class_names = tuple(f"class number {i}" for i in range(1000))

    class Model(torch.nn.Module):
        def sample(self, count, *, generator):
            return torch.zeros(count)

    class Run:
        path, data_info, recipe, options = Path("runs/x-1"), Facts(), None, None

        def load_model(self):
            return Model(), {}, 0

    run = TrainedGenerator(Run())  # type: ignore[arg-type]
    with pytest.raises(UserError) as caught:
        run.class_number("q" * 1000)
    assert len(str(caught.value)) <= 300


MEMORY = {
    "text": ("lstm-lm", "text:words.txt", "quoin.data.text.text_pieces", "quoin tokenize"),
    "vocabulary": ("lstm-lm", "text:words.txt", "quoin.data.corpus.fit_tokenizer", "quoin tokenize"),
    "table": ("mlp", "csv:rows.csv", "quoin.data.tables.read_columns_of", "fewer rows"),
    "pairs": ("translate-dates", "tsv:rows.csv", "quoin.data.text_columns.text_pieces", "fewer lines"),
    "model": ("mlp", "csv:rows.csv", "quoin.tasks.mlp.MLP", "fewer units"),
}


@pytest.mark.parametrize(
    "refusal",
    [MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")],
    ids=["python", "torch"],
)
@pytest.mark.parametrize("what", MEMORY)
def test_what_helps_where_memory_does_not_suffice(what, refusal, made, monkeypatch):
    recipe, data, place, helps = MEMORY[what]
    monkeypatch.chdir(made)

    def full(*given, **named):
        raise refusal

    monkeypatch.setattr(place, full)
    code, out, err = tried("train", recipe, "--data", data)
    assert (code, out) == (2, "")
    assert "not fit in memory" in err
    assert helps in err
    assert ("fewer units" in err) == (what == "model")


def test_a_background_job_goes_on_ignoring_ctrl_c():
    """As a shell asks of it; and asked to stop by SIGTERM, it still does so politely."""
    code = (
        "import signal\n"
        "from quoin.train.interrupt import Interrupt\n"
        "with Interrupt() as interrupt:\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    print(interrupt.asked)\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    print(interrupt.asked)\n"
    )
    environment = {**os.environ, "CODE": code}
    done = subprocess.run(
        ["sh", "-c", f'trap "" INT; {sys.executable} -c "$CODE"'], env=environment, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("False\nTrue\n", "")
