"""`quoin sweep`: search the options of a recipe by trials, and go on with such a search."""

import argparse
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quoin.cli.arguments import add_json, add_label, read_label, run_later
from quoin.cli.flags import Parser, add_options, read_options, whole_number
from quoin.cli.output import print_json, print_table
from quoin.cli.sweep_syntax import SYNTAX, add_swept_options, read_swept_options
from quoin.data import check_source_name
from quoin.display import format_number
from quoin.errors import UserError, did_you_mean, format_value

__all__ = ["add_sweep", "resume_sweep", "sweep"]

SHOWN = 10  # trials in the table of a terminal
LOG_SECONDS = 10.0
SAMPLERS = ("grid", "random", "tpe")
PRUNERS = ("none", "median", "hyperband")


def add_sweep(parser: Parser, words: Sequence[str]) -> None:
    """The words of `quoin sweep`: the recipe, how to search, and its options, each with one value or several."""
    from quoin.runs.catalog import DEFAULT, find_recipe
    from quoin.runs.run_config import RunConfig

    names = [word for word in words[:1] if not word.startswith("-")]
    recipe = find_recipe(reference := names[0] if names else DEFAULT)
    parser.add_argument(
        "recipe",
        nargs="?",
        default=DEFAULT,
        help=f"name of a recipe, as `quoin list` shows, or a file (default: {DEFAULT})",
    )
    parser.description = (
        "Search the options of a recipe: train a trial for each of many combinations.\n\n"
        "The best trial is chosen by the recipe's own metric on validation (or --monitor), by its mean over --seeds; "
        "only its test\n"
        "metrics are shown. Ctrl-C stops, `quoin resume` goes on; a trial that was killed goes on where it was. Other "
        "processes and\n"
        "machines may join: by `quoin resume SWEEP`, or by the same command with the same --storage.\n\n" + SYNTAX
    )
    parser.usage = "quoin sweep [RECIPE] --OPTION VALUES ... [--trials INT] [--seeds INT] [--jobs INT] ..."
    parser.epilog = """\
examples:
  quoin sweep mlp --lr 1e-3..1e-1:log --batch-size 32,64 --trials 30 --seeds 3 --jobs 2
  quoin sweep mlp --hidden-dims 64, 128, 256 128 --optimizer adam,momentum --sampler grid
  quoin sweep mlp --lr 1e-4..1:log --pruner hyperband --storage sqlite:///mlp.db
  quoin resume runs/sweep-mlp-1"""
    parser.add_flag(
        "--sampler",
        "how options are sampled: all combinations, at random, or by a tree-structured Parzen estimator (default: tpe)",
        "|".join(SAMPLERS),
        default="tpe",
    )
    parser.add_flag(
        "--trials", "number of trials (default: 20; of a grid, all of it)", "INT", type=_from_one, default=0
    )
    parser.add_flag("--seeds", "train each trial with INT seeds (default: 1)", "INT", type=_from_one, default=1)
    parser.add_flag(
        "--pruner",
        "stop unpromising trials early, by the metrics of their first seed's epochs (default: none)",
        "|".join(PRUNERS),
        default="none",
    )
    parser.add_flag(
        "--jobs", "trials side by side, the cores shared among them (default: 1)", "INT", type=_from_one, default=1
    )
    where = "where trials are kept, to be shared: sqlite:///FILE or journal:FILE (default: in the folder)"
    parser.add_flag("--storage", where, "STR", default="")
    add_label(parser)
    parser.add_flag(
        "--runs", "where the folder of the sweep is created (default: runs)", "FOLDER", type=Path, default=Path("runs")
    )
    add_json(parser)
    add_swept_options(parser, recipe.options, f"options of {recipe.name}, with one value or several")
    add_options(parser, RunConfig, "runtime options, the same for all trials")
    parser.set_defaults(run=run_later("sweep_command.sweep"), first_recipe=reference)


def _from_one(text: str) -> int:
    if not 1 <= (number := whole_number(text)) <= 10_000:
        raise argparse.ArgumentTypeError(f"expects a whole number from 1 to 10000, got {format_value(text)}")
    return number


def sweep(parsed: argparse.Namespace) -> int:
    from quoin.runs.catalog import find_recipe
    from quoin.runs.run_config import RunConfig

    if parsed.recipe != parsed.first_recipe:
        raise UserError(f"the recipe comes first: quoin sweep {format_value(parsed.recipe)[1:-1]} ...")
    for flag, value, known in (("--sampler", parsed.sampler, SAMPLERS), ("--pruner", parsed.pruner, PRUNERS)):
        if value not in known:
            raise UserError(f"{flag} is {format_value(value)}: {did_you_mean(value, known)}")
    label = read_label(parsed)
    recipe = find_recipe(parsed.recipe)
    fixed, space = read_swept_options(recipe.options, parsed)
    config = read_options(RunConfig, parsed)
    if config.processes > 1:
        raise UserError(
            f"--processes {config.processes}: each trial of a sweep trains in one process; --jobs trains several at a "
            "time"
        )
    if not space:
        raise UserError("nothing to sweep over: give an option several values, such as --lr 1e-3..1e-1:log")
    firsts: Any = {name: each.ends()[0] for name, each in space.items()}
    options: Any = recipe.options(**{**fixed, **firsts})
    from quoin.runs.sweep_space import check_space, grid_size

    check_space(options, space)  # before torch is imported
    if parsed.sampler == "grid":
        grid_size(space)
    if hasattr(options, "data"):
        check_source_name(options.data)
    from quoin.runs.sweep import Sweep, fit_sweep

    searched = Sweep(space, parsed.sampler, parsed.pruner, parsed.trials, parsed.seeds, parsed.jobs, parsed.storage)
    with _progress(recipe.name, shown=not parsed.json) as progress:
        ended = fit_sweep(recipe, options, config, searched, parsed.runs, label=label, progress=progress)
    return _show(ended, parsed)


def resume_sweep(run: Any, parsed: argparse.Namespace) -> int:
    """`quoin resume` of a sweep's folder."""
    from quoin.runs.sweep import resume_sweep

    if parsed.step is not None:
        raise UserError(f"{parsed.folder} is a sweep: give --step with one of the folders inside it")
    with _progress(run.recipe.name, shown=not parsed.json) as progress:
        ended = resume_sweep(run, jobs=parsed.jobs, progress=progress)
    return _show(ended, parsed)


def _show(ended: Any, parsed: argparse.Namespace) -> int:
    from quoin.runs.sweep_page import trial_columns, trial_rows
    from quoin.runs.sweep_result import train_command

    path, result, config = ended.run.path, ended.result, ended.run.folder.sweep
    trials = ended.storage.trials()
    if result is None:
        done = sum(each.state.is_finished() for each in trials)
        where = f"after {done} of {config['trials']} trials"
        if parsed.json:
            print_json({"sweep": str(path), "finished": False, "trials_done": done, "trials": config["trials"]})
        named = [each["path"] for each in ended.run.folder.config.get("code", []) if each["use"] != "import"]
        again = f"quoin resume {shlex.join([str(path), *(word for file in named for word in ('--code', file))])}"
        if ended.interrupted:
            print(f"quoin: interrupted {where}; everything is saved. Go on with: {again}", file=sys.stderr)
            return 130
        print(
            f"quoin: {where}, the others are being trained from another folder; when they are done, {again} shows the "
            "result",
            file=sys.stderr,
        )
        return 0
    rows = trial_rows(trials, ended.space, config)
    command = shlex.join(train_command(ended.run, result))
    columns = trial_columns(ended.space, config)
    if parsed.json:
        print_json(
            {
                "sweep": str(path),
                "finished": True,
                "report": str(ended.report),
                **result,
                "command": command,
                "trials": [dict(zip(columns, row)) for row in rows],
            }
        )
        return 0
    print_table(columns, rows[:SHOWN])
    if len(rows) > SHOWN:
        print(f"... and {len(rows) - SHOWN} more in the report")
    over = f"mean over {config['seeds']} seeds" if config["seeds"] > 1 else "one seed"
    print(f"\nbest: trial {result['best']['trial']} by {result['metric']} ({over}). To train it again:\n  {command}\n")
    tested = {name: each for name, each in sorted(result["metrics"].items()) if name.startswith(("test_", "held_out"))}
    print_table(
        ("metric of the best", "mean", "std") if config["seeds"] > 1 else ("metric of the best", "value"),
        [
            (name, *([each["mean"], each["std"]] if config["seeds"] > 1 else [each["mean"]]))
            for name, each in tested.items()
        ],
    )
    failed = [each for each in trials if "error" in each.user_attrs]
    if failed:
        print(f"\n{len(failed)} trials failed, the first: {failed[0].user_attrs['error']}")
    print(
        f"\n{result['complete']} trials complete, {result['pruned']} pruned, {result['failed']} failed, "
        f"{result['seconds']:.1f} s of training; sweep {path}\nreport: {ended.report}"
    )
    return 0


class _Lines:
    """A line for a log file now and then."""

    def __init__(self, label: str) -> None:
        self._label, self._last = label, time.monotonic()

    def __call__(self, done: int, total: int, best: float | None) -> None:
        if time.monotonic() - self._last >= LOG_SECONDS:
            self._last = time.monotonic()
            print(f"{self._label} sweep  trial {done}/{total}{_best(best)}", file=sys.stderr)


class _Bar:
    """A bar on a terminal."""

    def __init__(self, label: str, bar: Any) -> None:
        self._bar, self._task = bar, bar.add_task(f"{label} sweep", total=None, best="")

    def __call__(self, done: int, total: int, best: float | None) -> None:
        self._bar.update(self._task, completed=done, total=total, best=_best(best))


def _best(best: float | None) -> str:
    return "" if best is None else f"  best so far {format_number(best)}"


@contextmanager
def _progress(label: str, *, shown: bool) -> Iterator[Any]:
    """What is told of how far the trials are."""
    if not shown:
        yield None
    elif not sys.stderr.isatty():
        yield _Lines(label)
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[best]}"),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            yield _Bar(label, bar)
