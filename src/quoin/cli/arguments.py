"""Arguments that several commands have, and the function that a command runs, imported when it is called."""

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path

from quoin.cli.flags import Parser, whole_number
from quoin.errors import format_value

__all__ = ["add_jobs", "add_json", "add_run", "add_step", "add_whole_file", "run_later"]


def run_later(target: str) -> Callable[[argparse.Namespace], int]:
    """The function `module.name` of this package, imported when it is called."""

    def run(parsed: argparse.Namespace) -> int:
        module, _, name = target.partition(".")
        return getattr(importlib.import_module(f"quoin.cli.{module}"), name)(parsed)

    return run


def add_json(parser: Parser) -> None:
    parser.add_switch("--json", "print machine-readable JSON")


def add_jobs(parser: Parser) -> None:
    help = "train INT of the runs over seeds or folds at a time, each in its own process with its share of the cores"
    parser.add_flag("--jobs", help, "INT", type=_num_jobs, default=0)


def _num_jobs(text: str) -> int:
    if not 1 <= (number := whole_number(text)) <= 1024:
        raise argparse.ArgumentTypeError(f"expects a whole number from 1 to 1024, got {format_value(text)}")
    return number


def add_step(parser: Parser) -> None:
    parser.add_flag("--step", "use the checkpoint of this step instead of the latest", "INT", type=whole_number)


def add_run(parser: Parser, help: str = "the run's folder, such as runs/mlp-1") -> None:
    parser.add_argument("folder", type=Path, metavar="RUN", help=help)


def add_whole_file(parser: Parser, help: str, default: str, run: str) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help=help)
    parser.flags += ["-o", "--out"]
    parser.add_argument("-o", "--out", type=Path, metavar="OUT", help=f"where to write (default: {default})")
    parser.add_switch("--force", "overwrite an existing file")
    add_json(parser)
    parser.set_defaults(run=run_later(run))
