"""Arguments that several commands have, and the function that a command runs, imported when it is called."""

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from quoin.cli.flags import Parser, whole_number
from quoin.errors import format_value
from quoin.runs.run_label import RunLabel

if TYPE_CHECKING:
    from quoin.runs.run_code import CodeAccess

__all__ = [
    "add_code",
    "add_jobs",
    "add_json",
    "add_label",
    "add_processes",
    "add_run",
    "add_step",
    "add_whole_file",
    "code_access",
    "read_label",
    "run_later",
]


def run_later(target: str) -> Callable[[argparse.Namespace], int]:
    """The function `module.name` of this package, imported when it is called."""

    def run(parsed: argparse.Namespace) -> int:
        module, _, name = target.partition(".")
        return getattr(importlib.import_module(f"quoin.cli.{module}"), name)(parsed)

    return run


def add_json(parser: Parser) -> None:
    parser.add_switch("--json", "print machine-readable JSON")


def add_label(parser: Parser) -> None:
    """How a new run is called: --name, --note, --tag."""
    parser.add_flag("--name", "name of the run's folder (default: RECIPE-N)", "NAME", type=_name)
    parser.add_flag("--note", "a note on the run, for its report and `quoin runs`", "STR", default="")
    parser.add_repeated("--tag", "a tag, by which `quoin runs --tag` filters; may be given several times", "TAG")
    parser.set_defaults(tags=())  # those of a config file


def read_label(parsed: argparse.Namespace) -> RunLabel:
    """What these flags say."""
    return RunLabel(parsed.name or "", parsed.note, tuple(parsed.tags if parsed.tag is None else parsed.tag))


def _name(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("expects a plain folder name, got ''")
    return text


def add_jobs(parser: Parser) -> None:
    help = "train INT of the runs over seeds or folds at a time, each in its own process with its share of the cores"
    parser.add_flag("--jobs", help, "INT", type=_num_jobs, default=0)


def _num_jobs(text: str) -> int:
    if not 1 <= (number := whole_number(text)) <= 1024:
        raise argparse.ArgumentTypeError(f"expects a whole number from 1 to 1024, got {format_value(text)}")
    return number


def add_processes(parser: Parser) -> None:
    parser.add_flag("--processes", "go on with INT processes on this machine (default: 1)", "INT", type=_num_jobs)


def add_step(parser: Parser) -> None:
    parser.add_flag("--step", "use the checkpoint of this step instead of the latest", "INT", type=whole_number)


def add_run(parser: Parser, help: str = "the run's folder, such as runs/mlp-1") -> None:
    parser.add_argument("folder", type=Path, metavar="RUN", help=help)
    add_code(parser)


def add_code(parser: Parser) -> None:
    parser.flags.append("--code")
    named = "your own Python file that the run was trained with, which runs only if named; once for each of several"
    # One at a time: several after one flag would take in the words that follow.
    parser.add_argument("--code", action="append", default=[], metavar="FILE", help=named)
    parser.add_switch("--trust-code", "run the run folder's copies of the files that --code does not name")


def code_access(parsed: argparse.Namespace) -> "CodeAccess":
    """Which of the user's own files may run."""
    from quoin.runs.run_code import CodeAccess

    return CodeAccess(tuple(parsed.code), parsed.trust_code)


def add_whole_file(parser: Parser, help: str, default: str, run: str) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help=help)
    parser.flags += ["-o", "--out"]
    parser.add_argument("-o", "--out", type=Path, metavar="OUT", help=f"where to write (default: {default})")
    parser.add_switch("--force", "overwrite an existing file")
    add_json(parser)
    parser.set_defaults(run=run_later(run))
