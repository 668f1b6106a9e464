"""Train every recipe to its target and print the table; `make recipes` runs this. Exit code 1 if one misses."""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from quoin.cli.output import print_table
from quoin.runs import RunConfig, find_recipe, fit_recipe, recipe_names
from quoin.runs.multirun import Multirun, fit_multirun
from quoin.train import NonFiniteLossError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="train each recipe with so many seeds (default: 1)")
    parser.add_argument("--runs", type=Path, default=None, help="keep the run folders here (default: none is kept)")
    parsed = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        rows = [_row(name, parsed.seeds, parsed.runs or Path(scratch)) for name in recipe_names()]
    print_table(("recipe", "metric", "target", "reached", "", "seconds"), rows)
    return 0 if all(row[4] is True for row in rows) else 1


def _row(name: str, seeds: int, runs: Path) -> tuple[Any, ...]:
    recipe = find_recipe(name)
    assert recipe.target is not None, "each of Quoin's own recipes has one"
    options, settings = recipe.options(), RunConfig()
    result: Any  # of a run or of a study
    try:
        if seeds > 1:
            result = fit_multirun(recipe, options, settings, Multirun("seed", seeds), runs).result
        else:
            result = fit_recipe(recipe, options, settings, runs).result
    except NonFiniteLossError as failure:  # a miss like any other: the recipes after it still have their turn
        return name, recipe.target.metric, recipe.target.bound, str(failure), False, ""
    if result is None:  # interrupted
        sys.exit(130)
    reached = result["metrics"][recipe.target.metric]
    if seeds > 1:
        reached = f"{reached['mean']:.4f} ± {reached['std']:.4f}, {result['target']['met_runs']} of {seeds} seeds"
    return (
        name,
        recipe.target.metric,
        recipe.target.bound,
        reached,
        result["target"]["met"],
        round(result["seconds"], 1),
    )


if __name__ == "__main__":
    sys.exit(main())
