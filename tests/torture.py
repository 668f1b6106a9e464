"""Kill training again and again, for real: `python tests/torture.py 1000`.

One process imports everything and forks a child for each attempt, so that a kill costs a fraction of a second. Each
child runs the command line, `quoin train mlp` first and `quoin resume` from then on, and gets SIGKILL at a random
moment: while it starts, steps, saves, evaluates or draws its report. After every kill the newest checkpoint must load;
when at last a run gets through, its checkpoint, metrics and result must be those of a run that was never stopped, to
the bit. Exits with 1 on the first difference.
"""

import argparse
import importlib
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch

from quoin import plot
from quoin.cli import main
from quoin.data import load
from quoin.train import RunFolder
from tasks import difference, left_behind

OPTIONS = ["--num-threads", "1", "--device", "cpu", "--hidden-dims", "16", "--batch-size", "128"]
VARIANTS = [  # ten steps an epoch
    ["--checkpoint-every", "1", "--max-steps", "65"],
    ["--checkpoint-every", "3", "--epochs", "15"],
    [
        "--checkpoint-every",
        "7",
        "--epochs",
        "30",
        "--patience",
        "4",
        "--micro-batch-size",
        "50",
        "--max-grad-norm",
        "1",
    ],
]


def fork(words: list[str], log: Path) -> int:
    """Run the command line in a child and give its process id."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        code = main(words)
        sys.stdout.flush()
    finally:
        os._exit(code)


def attempt(words: list[str], log: Path, seconds: float | None) -> int | None:
    """The exit code, or None if it was killed after `seconds`."""
    child = fork(words, log)
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        if end is not None and time.monotonic() >= end:
            os.kill(child, signal.SIGKILL)
            end = None
        ended, status = os.waitpid(child, 0 if end is None else os.WNOHANG)
        if ended:
            return None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
        time.sleep(0.0005)


def moment(run: RunFolder | None) -> str:
    """Where in a run's life a kill fell, by what it left."""
    if run is None:
        return "before the run had a config"
    if (run.path / "report.html").exists():
        return "after the report"
    if run.result is not None:
        return "before the report"
    if list(run.checkpoints.glob(".*")):
        return "inside a save"
    return "between saves" if run.load_checkpoint() else "before the first checkpoint"


def fail(text: str) -> None:
    print(text, flush=True)
    sys.exit(1)


class Torture:
    """Kill runs of one variant after another until enough were killed."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self.chance = root, chance
        self.moments: Counter[str] = Counter()
        self.finished = 0

    def reference(self, index: int) -> tuple[dict, float, float]:
        """What a run never stopped leaves, how long it trains, and how long it takes with its report."""
        runs, started = self.root / f"whole-{index}", time.time()
        code = attempt(["train", "mlp", *OPTIONS, *VARIANTS[index], "--runs", str(runs)], self.root / "log", None)
        if code != 0:
            fail(f"the run that nobody stops ended with {code}:\n{(self.root / 'log').read_text()}")
        run = RunFolder.open(runs / "mlp-1")
        return left_behind(run), (run.path / "result.json").stat().st_mtime - started, time.time() - started

    def when(self, run: RunFolder | None, training: float, in_all: float) -> float | None:
        """The moment of the next kill, in seconds from the start; None lets the run get through."""
        if run is None or run.result is None:
            return self.chance.uniform(0, training)
        return self.chance.uniform(0, in_all) if self.chance.random() < 0.3 else None

    def run_to_the_end(self, index: int, whole: dict, training: float, in_all: float, *, kills_left: int) -> int:
        """One run, killed until it gets through; how many kills that took."""
        runs = self.root / f"run-{self.finished}"
        kills, log, run = 0, self.root / f"log-{self.finished}", None
        while True:
            words = (
                ["resume", str(run.path)] if run else ["train", "mlp", *OPTIONS, *VARIANTS[index], "--runs", str(runs)]
            )
            code = attempt(words, log, self.when(run, training, in_all) if kills < kills_left else None)
            if code == 0:
                break
            if code is not None:
                fail(f"{' '.join(words)} ended with {code}:\n{log.read_text()}")
            kills += 1
            begun = sorted(runs.glob("mlp-*/config.json"))
            run = RunFolder.open(begun[-1].parent) if begun else None
            self.moments[moment(run)] += 1  # reads the checkpoint: whatever the moment, it must load
            if run is not None:
                run.load_checkpoint()
        self.finished += 1
        run = RunFolder.open(sorted(runs.glob("mlp-*/config.json"))[-1].parent)
        if found := difference(whole, left_behind(run)):
            fail(f"{run.path} was killed {kills} times and differs from the run never stopped at {found}")
        if not (run.path / "report.html").exists():
            fail(f"{run.path} has no report")
        return kills


def warm_up() -> None:
    """Import and load all that a child needs; nothing here may start a thread, for a fork would lose it."""
    torch.set_num_threads(1)
    importlib.import_module("torch._dynamo")  # the first optimizer asks for it
    load("digits")
    plot.curves({"a": ([0.0, 1.0], [1.0, 2.0])}).inline()


def torture(kills: int, seed: int) -> None:
    chance, started = random.Random(seed), time.monotonic()
    warm_up()
    with tempfile.TemporaryDirectory(prefix="quoin-torture-") as folder:
        it = Torture(Path(folder), chance)
        wholes = [it.reference(index) for index in range(len(VARIANTS))]
        done, told = 0, 0
        while done < kills:
            index = it.finished % len(VARIANTS)
            done += it.run_to_the_end(index, *wholes[index], kills_left=kills - done)
            if done >= told + 50:
                told = done
                print(f"{done} of {kills} kills, {it.finished} runs, {time.monotonic() - started:.0f} s", flush=True)
    for name, count in it.moments.most_common():
        print(f"{count:6}  {name}")
    print(f"{done} kills, {it.finished} runs, all equal to the bit, {time.monotonic() - started:.0f} s (seed {seed})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Kill training for real and see that nothing is lost.")
    parser.add_argument("kills", type=int, nargs="?", default=1000)
    parser.add_argument(
        "--seed", type=int, default=None, help="of the moments; printed at the end (default: from the clock)"
    )
    chosen = parser.parse_args()
    torture(chosen.kills, chosen.seed if chosen.seed is not None else time.time_ns() % 2**32)
