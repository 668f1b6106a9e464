"""Train every recipe to its target and print the table; `make recipes` runs this. Exit code 1 if one misses.

Stopped at any moment, the same command goes on where it was: rows that are done are kept, a recipe that was training is
resumed. With --table the rows are kept in that file, each with its day and machine, so that a long table can be made
in several sessions: `make recipes SEEDS=10 TABLE=docs/recipes.json ONLY="mlp lenet"`.
"""

import argparse
import contextlib
import datetime
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from quoin.cli.output import print_table
from quoin.display import format_number
from quoin.errors import UserError, did_you_mean
from quoin.processor import processor_name
from quoin.runs import Run, RunConfig, find_recipe, fit_recipe, recipe_names
from quoin.runs.fit import RunResult, resume_run
from quoin.runs.jobs import with_threads
from quoin.runs.multirun import Multirun, MultirunResult, fit_multirun, resume_multirun
from quoin.runs.run_label import RunLabel
from quoin.train import NonFiniteLossError
from quoin.train.durable import replace_file

COLUMNS = ("recipe", "metric", "target", "reached", "", "seconds")
KEYS = ("metric", "target", "reached", "met", "seconds")
MEANWHILE = Path("build") / "recipes"  # what is not finished; a recipe's is removed with its row


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", nargs="*", help="recipes to train (default: all)")
    parser.add_argument("--seeds", type=int, default=1, help="train each recipe with so many seeds (default: 1)")
    parser.add_argument("--jobs", type=int, default=0, help="train so many seeds at a time (default: one by one)")
    parser.add_argument("--runs", type=Path, default=None, help="keep the run folders here (default: none is kept)")
    parser.add_argument(
        "--table", type=Path, default=None, help="keep the rows in this JSON file; those it has are not measured again"
    )
    parsed = parser.parse_args(arguments)
    if parsed.jobs > 1 and parsed.seeds == 1:
        parser.error(f"expected several seeds for --jobs {parsed.jobs}, got one; say --seeds, or leave it out")
    names = recipe_names()
    if unknown := [each for each in parsed.recipes if each not in names]:
        parser.error(f"expected recipes, got {unknown[0]}; {did_you_mean(unknown[0], names)}")
    runs = (parsed.runs or MEANWHILE) / f"seeds-{parsed.seeds}"
    kept = parsed.table or runs / "rows.json"
    try:
        done = _kept_rows(kept, parsed.seeds)
    except UserError as mistake:
        parser.error(str(mistake))
    runs.mkdir(parents=True, exist_ok=True)
    for name in parsed.recipes or names:
        if name not in done:
            row = _row(name, parsed.seeds, runs, parsed.jobs)
            done = _kept_rows(kept, parsed.seeds) | {name: row}  # another session may have added its own meanwhile
            in_order = {each: done[each] for each in names if each in done}
            replace_file(kept, json.dumps({"seeds": parsed.seeds, "rows": in_order}, indent=1).encode())
            if parsed.runs is None:
                shutil.rmtree(runs / name, ignore_errors=True)
    rows = [done[name] for name in parsed.recipes or names]
    print_table(COLUMNS, [[name, *(row[key] for key in KEYS)] for name, row in zip(parsed.recipes or names, rows)])
    if parsed.table is None:
        _forget(kept, parsed.recipes or names)
    with contextlib.suppress(OSError):  # others are not finished, or were to be kept
        runs.rmdir()
    return 0 if all(row["met"] is True for row in rows) else 1


def _kept_rows(path: Path, seeds: int) -> dict[str, dict[str, Any]]:
    """The rows of an earlier call with as many seeds."""
    if not path.exists():
        return {}
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        told_seeds, rows = told["seeds"], dict(told["rows"])
    except (ValueError, KeyError, TypeError):
        raise UserError(
            f"expected a table of `make recipes` in {path}, got something else; name another file"
        ) from None
    if told_seeds != seeds:
        raise UserError(f"expected a table of {seeds} seeds in {path}, got one of {told_seeds}; name another file")
    return rows


def _forget(kept: Path, names: Sequence[str]) -> None:
    """Rows that were printed: the next call measures them anew."""
    told = json.loads(kept.read_text(encoding="utf-8"))
    told["rows"] = {name: row for name, row in told["rows"].items() if name not in names}
    if told["rows"]:
        replace_file(kept, json.dumps(told, indent=1).encode())
    else:
        kept.unlink()


def _row(name: str, seeds: int, runs: Path, jobs: int) -> dict[str, Any]:
    """What a recipe reached, when and where."""
    target = find_recipe(name).target
    assert target is not None, "each of Quoin's own recipes has one"
    row = {"metric": target.metric, "target": target.bound, "reached": "", "met": False, "seconds": ""} | _here(
        min(jobs, seeds)
    )
    try:
        ended = _ended(name, seeds, runs, jobs)
    except NonFiniteLossError as failure:  # a miss like any other: the recipes after it still have their turn
        return row | {"reached": str(failure)}
    if isinstance(ended, MultirunResult) and ended.failures:  # the same of seeds in processes of their own
        return row | {"reached": "; ".join(f"{each}: {why}" for each, why in ended.failures.items())}
    result: Any = ended.result
    if result is None:  # interrupted
        print("stopped; the same command goes on from here", file=sys.stderr)
        sys.exit(130)
    reached = result["metrics"][target.metric]
    if seeds > 1:
        mean, std = (format_number(reached[name]) for name in ("mean", "std"))
        reached = f"{mean} ± {std}, {result['target']['met_runs']} of {seeds} seeds"
    return row | {"reached": reached, "met": result["target"]["met"], "seconds": round(result["seconds"], 1)}


def _ended(name: str, seeds: int, runs: Path, jobs: int) -> RunResult | MultirunResult:
    """A run, or a study of several, begun now or in an earlier call."""
    if (runs / name).exists():
        run = Run.open(runs / name)
        return resume_multirun(run, jobs=jobs) if seeds > 1 else resume_run(run)
    recipe, label = find_recipe(name), RunLabel(name)
    if seeds > 1:
        study = Multirun("seed", seeds)
        return fit_multirun(recipe, recipe.options(), RunConfig(), study, runs, label=label, jobs=jobs)
    return fit_recipe(recipe, recipe.options(), RunConfig(), runs, label=label)


def _here(jobs: int) -> dict[str, str]:
    """The day, the machine with the threads of one run, and torch, which stand beside every row."""
    threads = with_threads(RunConfig(), jobs).num_threads if jobs > 1 else torch.get_num_threads()
    machine = f"{processor_name()}, {threads} thread{'s' if threads > 1 else ''}"
    return {"date": datetime.date.today().isoformat(), "machine": machine, "torch": torch.__version__}


if __name__ == "__main__":
    sys.exit(main())
