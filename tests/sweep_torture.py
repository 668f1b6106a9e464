"""Kill sweeps again and again, for real: `python tests/sweep_torture.py 10 --sampler tpe`.

A sweep gets SIGKILL at random moments and is resumed until it gets through; its trials, their values to the bit and its
best must be those of a sweep that nobody stopped, and no trial may have been created or finished twice. As in
torture.py a child is forked for each attempt. Exits with 1 on the first difference.
"""

import argparse
import importlib
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from torture import attempt, fail, warm_up

TRIALS = 20
SHORTEST = 1.0  # seconds, in which no machine starts ten times
WORDS = ["sweep", "softmax-regression", "--data", "iris", "--epochs", "2", "--checkpoint-every", "1"]
WORDS += ["--num-threads", "1", "--device", "cpu"]
SPACE = {
    "grid": ["--lr", "1e-3..1:log:n=5", "--batch-size", "16,32,64,105"],
    "random": ["--lr", "1e-3..1:log", "--batch-size", "16,32,64", "--optimizer", "sgd,adam"],
}
SPACE["tpe"] = SPACE["random"]
ENDED = {1: "complete", 2: "pruned", 3: "failed"}  # Optuna's states


def journal(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_bytes().splitlines()]


def seen(folder: Path) -> dict:
    """What a sweep leaves, read from its journal and its runs and not by our own code."""
    created, params, ended = 0, {}, {}
    for line in journal(folder):
        match line["op_code"]:
            case 4:
                created += 1
            case 5:
                params.setdefault(line["trial_id"], {})[line["param_name"]] = line["param_value_internal"]
            case 6 if line["state"] in ENDED:
                if line["trial_id"] in ended:
                    fail(f"trial {line['trial_id']} of {folder} was ended twice")
                ended[line["trial_id"]] = (line["state"], line["values"])
    best = json.loads((folder / "result.json").read_text())
    runs = {}
    for path in sorted(folder.glob("trial-*/result.json")):
        result = json.loads(path.read_text())
        runs[path.parent.name] = (result["metrics"], result["steps"])
    return {"created": created, "params": params, "ended": ended, "best": best["best"], "runs": runs}


def torture(kills: int, seed: int, sampler: str, extra: list[str]) -> None:
    chance, started = random.Random(seed), time.monotonic()
    warm_up()
    for name in ("optuna.storages.journal", "optuna.samplers", "optuna.importance", "sklearn.ensemble", "scipy.stats"):
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="quoin-sweep-torture-") as place:
        root, words = Path(place), [*WORDS, *SPACE[sampler], "--sampler", sampler, "--trials", str(TRIALS), *extra]
        begun = time.monotonic()
        if (code := attempt([*words, "--runs", str(root / "whole")], root / "log", None)) != 0:
            fail(f"the sweep that nobody stops ended with {code}:\n{(root / 'log').read_text()}")
        in_all = time.monotonic() - begun
        whole = seen(next((root / "whole").glob("sweep-*")))
        runs, done, moments = root / "killed", 0, []
        while True:
            folder = next(iter(runs.glob("sweep-*/config.json")), None)
            again = ["resume", str(folder.parent)] if folder else [*words, "--runs", str(runs)]
            # so many moments that the last falls near the end
            when = chance.uniform(0, 2.2 * in_all / kills) if done < kills else None
            code = attempt(again, root / "log", when)
            if code is None:
                done += 1
                found = sorted(runs.glob("sweep-*/trial-*/result.json"))
                moments.append(len(found))
            elif code != 0:
                fail(f"{' '.join(again)} ended with {code}:\n{(root / 'log').read_text()}")
            elif done >= kills or in_all < SHORTEST:
                break
            else:  # it got through before all kills: the machine was busier when the whole was timed
                in_all /= 2
                done, moments = 0, []
                shutil.rmtree(runs)
        killed = seen(next(runs.glob("sweep-*")))
        for name, value in whole.items():
            if killed[name] != value:
                fail(f"{sampler}: {name} differs after {done} kills:\n{value}\n{killed[name]}")
        if whole["created"] != TRIALS or len(whole["runs"]) != TRIALS:
            fail(f"{sampler}: expected {TRIALS} trials, got {whole['created']} and {len(whole['runs'])} runs")
    seconds = time.monotonic() - started
    print(f"{sampler}: {done} kills at {moments} finished runs of {TRIALS}; all equal, {seconds:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Kill sweeps for real and see that no trial is lost.")
    parser.add_argument("kills", type=int, nargs="?", default=10)
    parser.add_argument("--seed", type=int, default=None, help="of the moments (default: from the clock)")
    parser.add_argument("--sampler", choices=sorted(SPACE), default="tpe")
    parser.add_argument("extra", nargs="*", help="more words of `quoin sweep`, after --")
    chosen = parser.parse_args()
    seed = chosen.seed if chosen.seed is not None else time.time_ns() % 2**32
    torture(chosen.kills, seed, chosen.sampler, chosen.extra)
    sys.exit(0)
