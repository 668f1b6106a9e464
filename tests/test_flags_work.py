"""Every flag of a command does something: with it, the command prints or writes something else.

Flags are found in the commands' parsers. A table says beside which words one is tried, and with which value where it
takes one; a new flag of these commands fails until it stands there. `train` has tests of its own: test_options_work.py
and test_settings_work.py.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from commands import tried
from made_runs import write_multirun
from quoin.cli.commands import COMMANDS
from quoin.cli.flags import Parser

pytestmark = pytest.mark.usefixtures("one_thread")

# Words that stand for what the fixture made: {text}, {words}, {images}, {lm}, {vae}, {diffusion}, {table}, {mlp},
# {csv}, {out}, {transformer}; {own} and {own_lm}, runs of recipe files of one's own, {own_file} and {own_lm_file}.
TEXT = "{lm} --max-tokens 40"
IMAGES = "{vae} -n 4 --out {out}/a.npy"
DIFFUSION = "{diffusion} -n 4 --num-steps 3 --out {out}/a.npy"
CASES: dict[str, dict[str, tuple[str, str]]] = {
    "generate": {
        "--code": ("{own_lm} --max-tokens 4", "{own_lm_file}"),
        "--trust-code": ("{own_lm} --max-tokens 4", ""),
        "--seed": (TEXT, "1"),
        "--step": (TEXT, "2"),
        "--json": (TEXT, ""),
        "--prompt": (TEXT, "the"),
        "--max-tokens": ("{lm}", "7"),
        "--temperature": (TEXT, "0.3"),
        "--top-k": (TEXT, "1"),
        "--top-p": (TEXT, "0.3"),
        "--num-beams": (TEXT, "2"),
        "--num-samples": ("{vae} --out {out}/a.npy", "3"),
        "--out": ("{vae} -n 4", "{out}/b.npy"),
        "--class": (DIFFUSION, "2"),
        "--num-steps": ("{diffusion} -n 4 --out {out}/a.npy", "3"),
        "--guidance-scale": (DIFFUSION + " --class 2", "3"),
        "--sampler": (DIFFUSION, "ddpm"),
        "--strip": ("{diffusion} -n 2 --num-steps 3 --out {out}/a.svg", ""),
        "--traverse": ("{vae} --out {out}/a.svg", ""),
    },
    "eval": {
        "--code": ("{own}", "{own_file}"),
        "--trust-code": ("{own}", ""),
        "--step": ("{mlp}", "2"),
        "--data": ("{mlp}", "csv:{csv}"),
        "--target": ("{mlp} --data csv:{csv}", "z"),
        "--json": ("{mlp}", ""),
    },
    "predict": {
        "--code": ("{own} {csv}", "{own_file}"),
        "--trust-code": ("{own} {csv}", ""),
        "--out": ("{mlp} {csv}", "{out}/a.csv"),
        "--step": ("{mlp} {csv}", "2"),
    },
    "inspect": {
        "--code": ("{own} --out {out}/a.html", "{own_file}"),
        "--trust-code": ("{own} --out {out}/a.html", ""),
        "--layer": ("{lenet} --out {out}/a.html", "features.0"),
        "--row": ("{lenet} --out {out}/a.html", "3"),
        "--text": ("{transformer} --out {out}/a.html", "law"),
        "--out": ("{lenet}", "{out}/b.html"),
        "--format": ("{lenet} --out {out}/a --format svg", "png"),
        "--step": ("{lenet} --out {out}/a.html", "2"),
        "--json": ("{lenet} --out {out}/a.html", ""),
    },
    "export": {
        "--code": ("{own} --to safetensors -o {out}/a", "{own_file}"),
        "--trust-code": ("{own} --to safetensors -o {out}/a", ""),
        "--to": ("{mlp} --to safetensors -o {out}/a", "torch"),
        "--out": ("{mlp} --to safetensors", "{out}/a"),
        "--force": ("{mlp} --to safetensors -o {exported}", ""),
        "--step": ("{mlp} --to safetensors -o {out}/a", "2"),
        "--json": ("{mlp} --to safetensors -o {out}/a", ""),
    },
    "compress": {
        "--code": ("{words} -o {out}/a.quoin --model {own_lm}", "{own_lm_file}"),
        "--trust-code": ("{words} -o {out}/a.quoin --model {own_lm}", ""),
        "--out": ("{words}", "{out}/a.quoin"),
        "--force": ("{words} -o {there}", ""),
        "--json": ("{words} -o {out}/a.quoin", ""),
        "--model": ("{words} -o {out}/a.quoin", "{lm}"),
    },
    "tokenize": {
        "--out": ("{text}", "{out}/a.tokens"),
        "--tokenizer": ("{text} -o {out}/a.tokens", "byte"),
        "--vocab-size": ("{text} -o {out}/a.tokens --tokenizer word", "20"),
        "--force": ("{text} -o {there}", ""),
        "--json": ("{text} -o {out}/a.tokens", ""),
    },
    "new": {"--from": ("mine.py", "mlp"), "--force": ("{there}.py", "")},
    "compare": {
        "--out": ("{lm} {mlp}", "{out}/b.html"),
        "--json": ("{lm} {mlp}", ""),
        "--baseline": ("{seeds} {others}", "{seeds}"),
        "--metric": ("{seeds} {others}", "test_loss"),
        "--confidence": ("{seeds} {others}", "0.5"),
        "--precision": ("{seeds} {others}", "1"),
        "--no-group": ("{seeds}/seed-0 {seeds}/seed-1", ""),
        "--csv": ("{seeds} {others}", "{out}/a.csv"),
        "--markdown": ("{seeds} {others}", "{out}/a.md"),
        "--latex": ("{seeds} {others}", "{out}/a.tex"),
    },
    "list": {"--json": ("", "")},
    "map": {"--all": ("attention", ""), "--missing": ("Z3.9", ""), "--packages": ("", ""), "--json": ("Z3.9", "")},
    "check": {"--seed": ("Z3.9 --json", "1"), "--json": ("Z3.9", "")},
    "figure": {
        "--out": ("D1F1", "{out}/b"),
        "--format": ("D1F1 --out {out}", "png"),
        "--gallery": ("D1F1 --out {out}", ""),
        "--json": ("D1F1 --out {out}", ""),
    },
}
# Tried elsewhere, or of no effect that a test could see without a clock.
ELSEWHERE = {"train", "lr", "plan", "sweep", "runs", "fetch", "resume", "decompress", "bench", "cache", "doctor", "lab"}
ELSEWHERE |= {"import"}
REFUSED_WITHOUT = ("--force", "--code", "--trust-code")
SLOW = {"check", "figure", "inspect", "map"}  # import all that there is, or draw a lot: for `make deep`
NOTHING_TO_SEE = {
    ("check", "--num-workers"): "the same claims by another number of processes",
    ("generate", "--device"): "there is one here; test_generate_goes_where_it_is_told",
}


def flags(command: str) -> Iterator[str]:
    """The flags that the command's parser knows, by their last name."""
    parser = Parser(command, "")
    COMMANDS[command][1](parser, [])
    for action in parser._actions:
        if action.option_strings and not isinstance(action, argparse._HelpAction):
            yield action.option_strings[-1]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, str]:
    """Small runs and files, one of each kind that a command takes."""
    folder = tmp_path_factory.mktemp("made")
    draw = numpy.random.default_rng(0)
    words = (
        "the",
        "model",
        "of",
        "a",
        "law",
        "is",
        "drawn",
        "from",
        "data",
        "and",
        "so",
        "are",
        "these",
        "words",
        "again",
    )
    (folder / "text.txt").write_text("\n".join(" ".join(draw.choice(words, 9)) for _ in range(80)))
    (folder / "words.txt").write_text(" ".join(draw.choice(words, 40)))
    numpy.savez(folder / "images.npz", features=draw.integers(0, 17, (90, 8, 8)) / 16, targets=numpy.arange(90) % 3)
    rows = (f"{x:.3f},{b},{y},{z}" for x, (b, y, z) in zip(draw.random(60), draw.integers(0, 2, (60, 3))))
    (folder / "table.csv").write_text("\n".join(["a,b,y,z", *rows]))

    def trained(recipe: str, source: str, *more: object) -> str:
        asked = (
            recipe,
            "--data",
            source,
            "--max-steps",
            3,
            "--checkpoint-every",
            1,
            "--num-threads",
            1,
            "--runs",
            folder,
            "--json",
        )
        code, out, err = tried("train", *asked, *more)
        assert code == 0, err
        return json.loads(out)["run"]

    images = f"npz:{folder / 'images.npz'}"
    found = {
        "lenet": trained("lenet", images, "--lr", 0.3),
        "mlp": trained("mlp", f"csv:{folder / 'table.csv'}", "--target", "y", "--ignore", "z", "--lr", 0.1),
    }
    for name, recipe in {"own": "mlp", "own_lm": "rnn-lm"}.items():
        found[f"{name}_file"] = str(folder / f"{name}.py")
        assert tried("new", found[f"{name}_file"], "--from", recipe)[0] == 0
    small = ("--hidden-dim", 16, "--embed-dim", 16, "--batch-size", 4, "--lr", 0.1, "--warmup-ratio", 0)
    found["own"] = trained(found["own_file"], f"csv:{folder / 'table.csv'}", "--target", "y", "--ignore", "z")
    found["lm"] = trained("rnn-lm", f"text:{folder / 'text.txt'}", *small)
    tiny = ("--embed-dim", 16, "--num-layers", 1, "--num-heads", 2, "--context-length", 16, "--batch-size", 4)
    found["transformer"] = trained("transformer-lm", f"text:{folder / 'text.txt'}", *tiny)
    found["own_lm"] = trained(found["own_lm_file"], f"text:{folder / 'text.txt'}", *small)
    judged = ("--classifier", found["lenet"], "--num-samples", 20)
    found["vae"] = trained("vae", images, *judged, "--num-importance-samples", 5)
    found["diffusion"] = trained("diffusion-digits", images, *judged)
    for name, low in (("seeds", 0.5), ("others", 0.6)):
        values = [{"test_accuracy": low + i / 100, "test_loss": 1 - low - i / 50} for i in range(3)]
        found[name] = str(write_multirun(folder / name, values))
    names = {"text": "text.txt", "words": "words.txt", "csv": "table.csv"}
    return found | {key: str(folder / name) for key, name in names.items()}


def test_every_flag_has_a_case():
    known = {(command, flag) for command in COMMANDS if command not in ELSEWHERE for flag in flags(command)}
    assert known == {(command, flag) for command, each in CASES.items() for flag in each} | NOTHING_TO_SEE.keys()


def test_generate_goes_where_it_is_told(made):
    code, _, told = tried("generate", made["lm"], "--max-tokens", "2", "--device", "cuda:77")
    assert code == 2
    assert "--device cuda:77: torch sees" in told


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        pytest.param(command, flag, marks=[pytest.mark.deep] if command in SLOW else [])
        for command, each in CASES.items()
        for flag in each
    ],
)
def test_a_flag_changes_what_comes_out(command, flag, made, tmp_path, monkeypatch):
    words, value = CASES[command][flag]
    found = []
    for name, more in (("without", ""), ("with", f"{flag} {value}")):
        folder = tmp_path / name
        (folder / "out").mkdir(parents=True)
        for there in ("there", "there.py"):
            (folder / there).write_text("a file that is there")
        (folder / "exported").mkdir(exist_ok=True)
        (folder / "exported/quoin.json").write_text("{}")
        monkeypatch.chdir(folder)
        places = made | {"out": "out", "there": "there", "exported": "exported"}
        found.append((*tried(command, *f"{words} {more}".format(**places).split()), _files(folder)))
    (code, out, err, files), (other_code, other_out, _, other_files) = found
    assert other_code == 0
    assert code == 0 or flag in REFUSED_WITHOUT, err
    assert (out, files) != (other_out, other_files)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
