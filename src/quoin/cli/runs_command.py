"""`quoin runs`: the runs of a folder as a table, and their removal."""

import argparse
import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoin.cli.arguments import add_json, run_later
from quoin.cli.flags import Parser
from quoin.cli.output import format_size, print_json
from quoin.errors import UserError, did_you_mean, format_value

if TYPE_CHECKING:
    from quoin.runs.listing_runs import ListedRun
    from quoin.runs.removing_runs import RemovableRun

__all__ = ["add_runs", "list_runs", "remove_runs"]

DEFAULT = Path("runs")


def add_runs(parser: Parser, words: Sequence[str]) -> None:
    """The words of the command; after `rm`, those of the removal."""
    if words[:1] == ["rm"]:
        _add_rm(parser)
        return
    parser.description = (
        "List the runs of a folder: state, result, quality target, when they were started, training time, tags and "
        "note.\n\n"
        "A run is finished, running, interrupted (`quoin resume` goes on with it) or damaged. A multirun over seeds "
        "or folds is one line\nwith mean ± standard deviation; --all shows its runs below it. `quoin runs rm RUN` "
        "removes runs."
    )
    parser.epilog = """\
examples:
  quoin runs                                   all runs in runs/, the newest last
  quoin runs lenet --state finished            those with a word in name, recipe, note or tags
  quoin runs --tag baseline --sort test_accuracy --reverse
  quoin runs rm mlp-3 mlp-4                    asks before it removes them"""
    parser.add_argument("words", nargs="*", metavar="WORD", help="only runs with this in name, recipe, note or tags")
    parser.add_flag("--runs", "the folder to list (default: runs)", "FOLDER", type=Path)
    parser.add_flag("--recipe", "only runs of this recipe", "NAME")
    parser.add_repeated("--tag", "only runs with this tag; given several times, with all of them", "TAG")
    parser.add_flag("--state", "only runs in this state", "finished|running|interrupted|damaged")
    parser.add_flag(
        "--sort",
        "by started, name, recipe, state, time (of training) or the name of a metric (default: started)",
        "KEY",
        default="started",
    )
    parser.add_switch("--reverse", "largest or latest first")
    parser.add_switch("--all", "show the runs inside multiruns")
    add_json(parser)
    parser.set_defaults(run=run_later("runs_command.list_runs"))


def _add_rm(parser: Parser) -> None:
    parser.prog = "quoin runs rm"
    parser.description = (
        "Remove runs with their checkpoints and reports.\n\n"
        "What is to be removed is shown, and removed only after a yes. Folders that are no run's are refused, and so "
        "are runs that are\nbeing trained, links, and single runs of a multirun."
    )
    parser.epilog = """\
examples:
  quoin runs rm mlp-3                by its name in runs/
  quoin runs rm study/mlp-1 --yes    by its path, without being asked"""
    parser.add_argument("rm", choices=["rm"], metavar="rm", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="+", metavar="RUN", help="name or path of a run folder")
    parser.add_flag("--runs", "the folder in which names are looked for (default: runs)", "FOLDER", type=Path)
    parser.add_switch("--yes", "remove without asking")
    parser.add_switch("--force", "remove damaged runs too, and what else the folder of a run holds")
    add_json(parser)
    parser.usage = "quoin runs rm [-h] [--runs FOLDER] [--yes] [--force] [--json] RUN [RUN ...]"
    parser.set_defaults(run=run_later("runs_command.remove_runs"))


def list_runs(parsed: argparse.Namespace) -> int:
    from quoin.runs.listing_runs import SORTS, STATES, find_runs, sort_runs, usual_metrics

    if parsed.state is not None and parsed.state not in STATES:
        raise UserError(f"--state {format_value(parsed.state)}: {did_you_mean(parsed.state, STATES)}")
    root = parsed.runs or DEFAULT
    if parsed.runs is not None and not os.path.isdir(root):
        raise UserError(f"--runs {format_value(str(root))}: there is no such folder; name one that holds runs")
    every = find_runs(root, members=parsed.all) if os.path.isdir(root) else []
    found = [run for run in every if _wanted(run, parsed)]
    if parsed.sort != "started" or found:
        found = sort_runs(found, parsed.sort, reverse=parsed.reverse) if found else _check_sort(every, parsed)
    if parsed.json:
        usual = usual_metrics()
        print_json({"folder": str(root), "runs": [_as_json(run, usual) for run in found]})
        return 0
    if not found:
        print(_nothing(root, every, parsed), file=sys.stderr)
        return 0
    flat = [each for run in found for each in (run, *run.members)]
    _print_table(flat, usual_metrics(), None if parsed.sort in SORTS else parsed.sort)
    states = Counter(run.state for run in found)
    told = ", ".join(f"{states[state]} {state}" for state in STATES if states[state])
    beside = f" of {len(every)}" if len(every) > len(found) else ""
    print(f"\n{len(found)}{beside} {'run' if len(found) == 1 and not beside else 'runs'} in {root}: {told}")
    return 0


def _check_sort(every: "list[ListedRun]", parsed: argparse.Namespace) -> "list[ListedRun]":
    from quoin.runs.listing_runs import sort_runs

    sort_runs(every, parsed.sort)  # a key that is none is told, whatever the filters leave
    return []


def _wanted(run: "ListedRun", parsed: argparse.Namespace) -> bool:
    return (
        run.matches(parsed.words)
        and parsed.recipe in (None, run.recipe)
        and parsed.state in (None, run.state)
        and {*(parsed.tag or ())} <= {*run.tags}
    )


def _nothing(root: Path, every: "list[ListedRun]", parsed: argparse.Namespace) -> str:
    """Why the list is empty."""
    if not every:
        return f"no runs in {root}: `quoin train RECIPE` makes one"
    told = f"none of the {len(every)} runs in {root} is such a run"
    folders = [word for word in parsed.words if os.path.isdir(word)]
    return f"{told}; for the runs of the folder {folders[0]}: quoin runs --runs {folders[0]}" if folders else told


def _print_table(runs: "Sequence[ListedRun]", usual: dict[str, str], metric: str | None) -> None:
    from quoin.cli.runs_table import format_runs

    if not sys.stdout.isatty():
        for line in format_runs(runs, usual, metric=metric):
            print(line.text)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in format_runs(runs, usual, metric=metric, width=shutil.get_terminal_size().columns):
        text = Text(line.text)
        for start, end, style in line.styles:
            text.stylize(style, start, end)
        console.print(text, soft_wrap=True)


def _as_json(run: "ListedRun", usual: dict[str, str]) -> dict[str, Any]:
    members = {"members": [_as_json(each, usual) for each in run.members]} if run.members else {}
    return {
        "name": run.name,
        "path": str(run.path),
        "recipe": run.recipe or None,
        "state": run.state,
        "reason": run.reason or None,
        "note": run.note,
        "tags": list(run.tags),
        "started": run.started.isoformat() if run.started else None,
        "seconds": run.seconds,
        "metric": run.key_metric(usual),
        "metrics": run.metrics,
        "stds": run.stds or None,
        "target": run.target,
        "epoch": run.epoch,
        "multirun": run.multirun and run.multirun | {"finished": run.num_finished},
        **members,
    }


def remove_runs(parsed: argparse.Namespace) -> int:
    from quoin.runs.removing_runs import find_removable, remove_run

    paths = dict.fromkeys(_path(name, parsed.runs or DEFAULT) for name in parsed.names)
    chosen = [find_removable(path, force=parsed.force) for path in paths]  # all are looked at before one is removed
    if not parsed.yes:
        _ask(chosen)
    for each in chosen:
        remove_run(each)
        if not parsed.json:
            print(f"{each.path}: removed")
    if parsed.json:
        print_json({"removed": [str(each.path) for each in chosen], "bytes": sum(each.num_bytes for each in chosen)})
    return 0


def _path(name: str, root: Path) -> Path:
    """The folder that the user means by a path, or by a name in `root`."""
    path, inside = Path(name), root / name
    if path.name in ("", "..") or os.path.abspath(path) == os.path.abspath(inside):
        return path
    if os.path.lexists(path) and os.path.lexists(inside):
        raise UserError(f"{format_value(name)} may be ./{name} or {inside}: write the one that is meant")
    if os.path.lexists(inside):
        return inside
    return path if "/" in name or os.path.lexists(path) else inside


def _ask(chosen: "list[RemovableRun]") -> None:
    """Go on only if the user agrees."""
    for each in chosen:
        run, foreign = each.run, f", with {', '.join(each.foreign[:5])}" if each.foreign else ""
        several = f" × {run.multirun['count']} {run.multirun['over']}s" if run.multirun else ""
        what = f"{run.recipe or 'a run'}{several}, {run.state}, {format_size(each.num_bytes)}{foreign}"
        note = f"  {' '.join(run.note.split())[:60]}" if run.note else ""
        print(f"{shlex.quote(str(each.path))}  {what}{note}", file=sys.stderr)
    if not sys.stdin.isatty():
        raise UserError("nothing removed: give --yes to remove without being asked")
    total = format_size(sum(each.num_bytes for each in chosen))
    what = "this run" if len(chosen) == 1 else f"these {len(chosen)} runs, {total}"
    print(f"remove {what}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("nothing removed")
