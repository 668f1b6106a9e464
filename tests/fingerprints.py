"""Whether a change that should change no bit changes none: every recipe's short run, before and after.

    python tests/fingerprints.py compare HEAD~1             the tree beside a commit (`make fingerprints PARENT=HEAD~1`)
    python tests/fingerprints.py make out.json --src src    the fingerprints of one tree
    python tests/fingerprints.py differ old.json new.json

A fingerprint is the metrics of a run of forty steps at seed 0 on one thread and a hash of every tensor of its last
checkpoint, in the order of registration and without names. It is read from the files of the run folder, so that it
works for a tree with another inside; renames.toml says what is called otherwise. Bits hold for one machine and one
build: this is a tool and no test.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
STEPS = 40
CLOCK = {"seconds", "saving_seconds", "peak_memory"}
PARTS = ("train_", "validation_", "test_")

Renames = dict[str, dict[str, Any]]
Fingerprint = dict[str, Any]


def fingerprints(src: Path, renames: Renames, words: list[str]) -> dict[str, Fingerprint]:
    """Every recipe of the tree at `src`, two at a time; `renames` empty for a tree that has the new names."""
    old_recipes = {new: old for old, new in renames.get("recipes", {}).items()}
    names = [old_recipes.get(word, word) for word in words] or _recipes(src)
    found = {}
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as pool:
        jobs = {name: pool.submit(_fingerprint, name, src, Path(scratch) / name, renames) for name in names}
        for done, (name, job) in enumerate(jobs.items(), start=1):
            found[renames.get("recipes", {}).get(name, name)] = job.result()
            print(f"{done}/{len(jobs)} {name}", file=sys.stderr)
    return found


def differences(before: Fingerprint, after: Fingerprint, renamed: dict[str, str]) -> list[str]:
    """What of a recipe's run is no longer the same to the bit."""
    if "failed" in before or "failed" in after:
        return [
            f"{when} failed: {each['failed']}"
            for when, each in (("before", before), ("after", after))
            if "failed" in each
        ]
    told = []
    for part in ("lines", "result"):
        one, other = _renamed(before[part], renamed), after[part]
        if one != other:
            told.append(f"{part}: {_first_difference(one, other)}")
    if before["tensors"] != after["tensors"]:
        gone, come = Counter(before["tensors"]), Counter(after["tensors"])
        lost, new = (gone - come).total(), (come - gone).total()
        told.append(
            f"tensors: {lost} of {gone.total()} gone, {new} new"
            if lost or new
            else "tensors: the same in another order"
        )
    return told


def report(before: dict[str, Fingerprint], after: dict[str, Fingerprint], renames: Renames) -> int:
    """Print the recipes that changed; how many there are is the exit code."""
    metrics = renames.get("metrics", {})
    everywhere = {old: new for old, new in metrics.items() if isinstance(new, str)}
    changed = 0
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            told = ["only before"] if name in before else ["only after"]
        else:
            told = differences(before[name], after[name], everywhere | metrics.get(name, {}))
        changed += bool(told)
        for line in told:
            print(f"{name}: {line}")
    print(f"{len(before.keys() | after.keys()) - changed} recipes the same to the bit, {changed} changed")
    return min(changed, 100)


def _fingerprint(name: str, src: Path, runs: Path, renames: Renames) -> Fingerprint:
    old_flags = {new: old for old, new in renames.get("flags", {}).items()}
    flags = {"num-threads": 1, "max-steps": STEPS, "seed": 0, "runs": runs}
    words = [word for flag, value in flags.items() for word in (f"--{old_flags.get(flag, flag)}", str(value))]
    done = _quoin(src, "train", name, *words, "--json")
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:300]}
    run = next(runs.iterdir())
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    result = json.loads((run / "result.json").read_text())
    return {
        "lines": [_timeless(line) for line in lines],
        "result": _timeless(result["metrics"]),
        "tensors": list(_tensors(run)),
    }


def _tensors(run: Path) -> Iterator[str]:
    """A hash of each tensor of the newest checkpoint, once, in the order in which the state names them."""
    from safetensors.numpy import load_file

    checkpoint = max((run / "checkpoints").iterdir())
    content = (checkpoint / "tensors.safetensors").read_bytes()
    try:
        tensors = {name: value.tobytes() for name, value in load_file(checkpoint / "tensors.safetensors").items()}
    except (KeyError, TypeError):  # bfloat16, which numpy has not: one hash for all
        yield hashlib.sha256(content).hexdigest()
        return
    seen = set()
    for name in _references(json.loads((checkpoint / "state.json").read_text())):
        if name not in seen:
            seen.add(name)
            yield hashlib.sha256(tensors[name]).hexdigest()[:16]


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.keys() == {"$tensor"}:
            yield node["$tensor"]
        else:
            for value in node.values():
                yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _recipes(src: Path) -> list[str]:
    return [each["name"] for each in json.loads(_quoin(src, "list", "--json").stdout)]


def _quoin(src: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(src.resolve()), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-m", "quoin.cli", *words], capture_output=True, text=True, env=environment)


def _timeless(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name not in CLOCK}


def _renamed(value: Any, table: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(each, table) for each in value]
    return {_new_name(name, table): number for name, number in value.items()}


def _new_name(metric: str, table: dict[str, str]) -> str:
    part = next((each for each in PARTS if metric.startswith(each)), "")
    bare = metric.removeprefix(part)
    return part + table.get(bare, bare)


def _first_difference(one: Any, other: Any) -> str:
    if isinstance(one, list):
        if len(one) != len(other):
            return f"{len(one)} became {len(other)}"
        return next(
            f"line {index}: {_first_difference(a, b)}" for index, (a, b) in enumerate(zip(one, other)) if a != b
        )
    if one.keys() != other.keys():
        return f"{sorted(one.keys() - other.keys())} became {sorted(other.keys() - one.keys())}"
    name = next(name for name in one if one[name] != other[name])
    return f"{name} {one[name]!r} became {other[name]!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    compare = verbs.add_parser("compare")
    compare.add_argument("parent")
    compare.add_argument("recipes", nargs="*", help="new names; none takes all")
    make = verbs.add_parser("make")
    make.add_argument("out", type=Path)
    make.add_argument("recipes", nargs="*")
    make.add_argument("--src", type=Path, default=HERE.parent / "src")
    differ = verbs.add_parser("differ")
    differ.add_argument("before", type=Path)
    differ.add_argument("after", type=Path)
    asked = parser.parse_args()
    renames = tomllib.loads((HERE / "renames.toml").read_text())
    if asked.verb == "make":
        asked.out.write_text(json.dumps(fingerprints(asked.src, {}, asked.recipes)))
        return 0
    if asked.verb == "differ":
        return report(json.loads(asked.before.read_text()), json.loads(asked.after.read_text()), renames)
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "parent"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, asked.parent], cwd=HERE, check=True)
        try:
            before = fingerprints(tree / "src", renames, asked.recipes)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=HERE, check=True)
    return report(before, fingerprints(HERE.parent / "src", {}, asked.recipes), renames)


if __name__ == "__main__":
    sys.exit(main())
