"""One small trained run of every kind that the code tells apart, and a word list for every command that opens a run."""

import argparse
import contextlib
import fcntl
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import quoin.runs
from commands import tried
from quoin.cli.commands import COMMANDS
from quoin.cli.flags import Parser

TABLE = "a,b,label\n" + "".join(f"{i},{i * i % 7},{'xy'[i % 2]}\n" for i in range(24))
NUMBERS = "a,b,target\n" + "".join(f"{i},{i * i % 7},{i / 3 + 0.5}\n" for i in range(24))
TEXT = "the cat sat on the mat.\nthe dog ran to the cat.\n" * 12
PAIRS = "".join(
    f"{'abc'[i % 3]}{'xyz'[i // 3 % 3]}{'pq'[i // 9 % 2]}\t{'de'[i % 2]}{'fgh'[i % 3]}\n" for i in range(18)
)
LABELED = "".join(f"{'abc'[i % 3]}{'xyz'[i // 3 % 3]}{'pq'[i // 9 % 2]}\t{'lr'[i % 2]}\n" for i in range(18))
WALKS = "".join(f"{'a b ' * (1 + i % 3)}{'ab'[i % 2]}\n" for i in range(12))
EVENTS = "case,event\n" + "".join(f"{i % 12},{'xyz'[i // 12 * i % 3]}\n" for i in range(48))
POINTS = "x0,x1\n" + "".join(f"{i % 5},{i * i % 7}\n" for i in range(6))  # columns as gmm's own data have them

QUICK = "--max-steps 2 --checkpoint-every 1 --num-threads 1 --json"
VAE = "vae --data npz:images.npz --hidden-dims 4 --latent-dim 2 --num-samples 16 --num-importance-samples 1 --epochs 1"
PIXELCNN = "pixelcnn --data npz:images.npz --channels 2 --num-layers 1 --num-samples 16 --epochs 1"
KINDS = {  # name: how it is trained
    "classifier": "mlp --data csv:table.csv --hidden-dims 3 --epochs 1",
    "regression": "linear-regression --data csv:numbers.csv --epochs 1",
    "images": "lenet --data npz:images.npz --epochs 1",
    "language": "gru-lm --data text:text.txt --embed-dim 3 --hidden-dim 4 --context-length 8 --batch-size 2 --epochs 1",
    "counts": "ngram --data text:text.txt --tokenizer word --vocab-size 60 --order 2 --epochs 1",
    "byte-pairs": "ngram --data text:text.txt --tokenizer bpe --vocab-size 260 --order 2 --epochs 1",
    "translation": "translate-dates --data tsv:pairs.tsv --embed-dim 3 --hidden-dim 3 --epochs 1 --num-beams 1",
    "labels": "sequence-classification --data tsv:labelled.tsv --embed-dim 4 --hidden-dim 3 --epochs 1 --no-baselines",
    "drawn-images": f"{VAE} --classifier images/lenet-1",
    "pixels": f"{PIXELCNN} --classifier images/lenet-1",
    "points": "diffusion-2d --num-examples 32 --hidden-dim 4 --num-layers 1 --num-timesteps 5 --num-steps 2 --epochs 1",
    "mixture": "gmm --num-points 40 --num-components 2 --num-init 1 --max-iter 2",
    "hidden": "hmm --data sequences:walks.txt --num-states 2 --num-init 2 --max-iter 2",
    "chain": "markov-chain --data csv:events.csv",
    "seeds": "mlp --data csv:table.csv --hidden-dims 3 --epochs 1 --seeds 2",
    "folds": "linear-regression --data csv:numbers.csv --epochs 1 --folds 2",
}

TABLES = {"resume", "eval", "predict", "compare", "inspect", "export"}
TEXTS = {"resume", "eval", "generate", "compare", "compress", "decompress", "export"}
PAIRED = {"resume", "eval", "predict", "compare", "export"}
DRAWN = {"resume", "eval", "generate", "compare", "export"}
USED = {  # the commands that have something to do for each kind; the others say what it is good for
    **dict.fromkeys(("classifier", "regression", "images"), TABLES),
    **dict.fromkeys(("language", "counts", "byte-pairs", "pixels"), TEXTS),
    **dict.fromkeys(("translation", "labels", "hidden", "chain"), PAIRED),
    **dict.fromkeys(("drawn-images", "points"), DRAWN),
    "mixture": DRAWN | {"predict"},
    **{kind: {"resume", "compare"} for kind in ("seeds", "folds")},
    "module": {"compare"},  # its model is in somebody's Python code
}


def write_data(folder: Path) -> None:
    """What the runs learn from, and what the commands on them read."""
    texts = {"table.csv": TABLE, "numbers.csv": NUMBERS, "text.txt": TEXT, "pairs.tsv": PAIRS, "labelled.tsv": LABELED}
    texts |= {"walks.txt": WALKS, "events.csv": EVENTS, "points.csv": POINTS}
    for name, text in (texts | {"lines.txt": "axp\nbyq\n"}).items():
        (folder / name).write_text(text)
    levels = np.random.default_rng(0).integers(0, 17, (60, 8, 8))
    np.savez(folder / "images.npz", X=(levels / 16).astype(np.float32), y=np.arange(60) % 2)
    np.save(folder / "levels.npy", levels[:2].astype(np.uint8))


def train_every_kind(folder: Path) -> dict[str, str]:
    """Train one run of each kind in `folder`, the working folder; the names of their folders by kind."""
    write_data(folder)
    found = {}
    for kind, words in KINDS.items():
        code, _, err = tried("train", *words.split(), *QUICK.split(), "--runs", kind)
        assert code == 0, err
        found[kind] = f"{kind}/{words.split()[0]}-1"
    found["module"] = str(train_module().path)
    for kind in ("language", "counts", "byte-pairs", "pixels"):
        file = "levels.npy" if kind == "pixels" else "lines.txt"
        assert tried("compress", file, "--model", found[kind], "-o", f"{kind}.quoin")[0] == 0
    return found


def trained_once(factory: pytest.TempPathFactory) -> Path:
    """The folder with a run of each kind and their names in trained.json: the first process that asks trains them."""
    base, threads = factory.getbasetemp(), torch.get_num_threads()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "every-kind-of-run"
    with open(f"{shared}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "trained.json").exists():
            shared.mkdir(exist_ok=True)
            with contextlib.chdir(shared):
                (shared / "trained.json").write_text(json.dumps(train_every_kind(shared)))
            torch.set_num_threads(threads)
            torch.use_deterministic_algorithms(False)
    return shared


def train_module() -> quoin.runs.Run:
    """A run without a recipe: `quoin.fit` of a module of one's own."""
    rows = torch.arange(24.0).reshape(12, 2)
    return quoin.fit(
        torch.nn.Linear(2, 2), (rows, torch.arange(12) % 2), epochs=1, num_threads=1, runs="module", show_progress=False
    )


def opening_commands() -> set[str]:
    """The commands that take a run, read from the words that each says it takes."""
    found = set()
    for name, (what, add_words) in COMMANDS.items():
        parser = Parser(name, what)
        add_words(parser, [])
        if any(
            action.metavar == "RUN" for action in parser._actions if not isinstance(action, argparse._SubParsersAction)
        ):
            found.add(name)
    return found


def command_words(command: str, kind: str, run: str, whole: str) -> list[str]:
    """What to say for `command` on the folder `run`, of a kind; `whole` is a run that nobody touched."""
    files = {"images": "images.npz", "translation": "lines.txt", "labels": "lines.txt", "regression": "numbers.csv"}
    rows = (files | {"hidden": "walks.txt", "chain": "events.csv", "mixture": "points.csv"}).get(kind, "table.csv")
    coded = "levels.npy" if kind == "pixels" else "lines.txt"
    archive = f"{kind}.quoin" if "compress" in USED[kind] else "language.quoin"
    writes = kind in ("language", "counts", "byte-pairs")
    return {
        "resume": ["resume", run, "--json"],
        "eval": ["eval", run],
        "predict": ["predict", run, rows],
        "generate": [
            "generate",
            run,
            *(["--max-tokens", "4", "--json"] if writes else ["-n", "2", "--out", "drawn.png"]),
        ],
        "compare": ["compare", run, whole, "--out", "compared.html"],
        "inspect": ["inspect", run, "--out", "inspected.html"],
        "export": ["export", run, "--to", "safetensors", "-o", "exported", "--force"],
        "compress": ["compress", coded, "--model", run, "-o", "small.quoin", "--force"],
        "decompress": ["decompress", archive, "--model", run, "-o", "large", "--force"],
    }[command]


def copy_run(run: str, to: str = "run") -> Path:
    shutil.rmtree(to, ignore_errors=True)
    return Path(shutil.copytree(run, to))


def copy_to_resume(run: str) -> Path:
    """A copy that lacks its report: `resume` then has something to do, and reads all that there is."""
    copied = copy_run(run)
    (copied / "report.html").unlink()
    return copied
