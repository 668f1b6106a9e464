"""Train every recipe to its target and print the table; `make recipes` runs this. Exit code 1 if one misses.

Stopped at any moment, the same command goes on where it was: rows that are done are kept, a recipe that was training is
resumed.
"""

import argparse
import datetime
import json
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

import torch

from quoin.cli.output import print_table
from quoin.display import format_number
from quoin.runs import Run, RunConfig, find_recipe, fit_recipe, recipe_names
from quoin.runs.fit import resume_run
from quoin.runs.multirun import Multirun, fit_multirun, resume_multirun
from quoin.runs.run_label import RunLabel
from quoin.train import NonFiniteLossError
from quoin.train.durable import replace_file

COLUMNS = ("recipe", "metric", "target", "reached", "", "seconds")
MEANWHILE = Path("build") / "recipes"  # what is not finished; removed with the last row


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="train each recipe with so many seeds (default: 1)")
    parser.add_argument("--runs", type=Path, default=None, help="keep the run folders here (default: none is kept)")
    parser.add_argument("--table", type=Path, default=None, help="also write the table, with date and machine, as JSON")
    parsed = parser.parse_args(arguments)
    runs = (parsed.runs or MEANWHILE) / f"seeds-{parsed.seeds}"
    runs.mkdir(parents=True, exist_ok=True)
    rows = _rows(runs, parsed.seeds)
    print_table(COLUMNS, rows)
    if parsed.table:
        replace_file(parsed.table, json.dumps(_measured(rows, parsed.seeds), indent=1, ensure_ascii=False).encode())
    if parsed.runs is None:
        shutil.rmtree(runs)
    return 0 if all(row[4] is True for row in rows) else 1


def _rows(runs: Path, seeds: int) -> list[list[Any]]:
    """A row for each recipe; those that an earlier call left are taken as they are."""
    kept = runs / "rows.json"
    done: dict[str, list[Any]] = json.loads(kept.read_text()) if kept.exists() else {}
    names = recipe_names()
    for name in names:
        if name not in done:
            done[name] = _row(name, seeds, runs)
            replace_file(kept, json.dumps(done).encode())
    return [done[name] for name in names]


def _row(name: str, seeds: int, runs: Path) -> list[Any]:
    target = find_recipe(name).target
    assert target is not None, "each of Quoin's own recipes has one"
    try:
        result = _result(name, seeds, runs)
    except NonFiniteLossError as failure:  # a miss like any other: the recipes after it still have their turn
        return [name, target.metric, target.bound, str(failure), False, ""]
    if result is None:  # interrupted
        print("stopped; the same command goes on from here", file=sys.stderr)
        sys.exit(130)
    reached = result["metrics"][target.metric]
    if seeds > 1:
        mean, std = (format_number(reached[name]) for name in ("mean", "std"))
        reached = f"{mean} ± {std}, {result['target']['met_runs']} of {seeds} seeds"
    return [name, target.metric, target.bound, reached, result["target"]["met"], round(result["seconds"], 1)]


def _result(name: str, seeds: int, runs: Path) -> Any:
    """Of a run, or of a study of several, begun now or in an earlier call; None if it was interrupted."""
    if (runs / name).exists():
        run = Run.open(runs / name)
        return (resume_multirun(run) if seeds > 1 else resume_run(run)).result
    recipe, label = find_recipe(name), RunLabel(name)
    if seeds > 1:
        return fit_multirun(recipe, recipe.options(), RunConfig(), Multirun("seed", seeds), runs, label=label).result
    return fit_recipe(recipe, recipe.options(), RunConfig(), runs, label=label).result


def _measured(rows: list[list[Any]], seeds: int) -> dict[str, Any]:
    """The table as the documentation reads it."""
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{_processor()}, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "seeds": seeds,
        "rows": rows,
    }


def _processor() -> str:
    """The processor by its name, where the system tells it."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


if __name__ == "__main__":
    sys.exit(main())
