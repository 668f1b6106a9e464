"""Arguments that several commands have, and the function that a command runs, imported when it is called."""

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from quoin.cli.flags import Parser, whole_number

if TYPE_CHECKING:
    from quoin.runs.run_code import CodeAccess

__all__ = ["add_code", "add_json", "add_run", "add_step", "add_whole_file", "code_access", "run_later"]


def run_later(target: str) -> Callable[[argparse.Namespace], int]:
    """The function `module.name` of this package, imported when it is called."""

    def run(parsed: argparse.Namespace) -> int:
        module, _, name = target.partition(".")
        return getattr(importlib.import_module(f"quoin.cli.{module}"), name)(parsed)

    return run


def add_json(parser: Parser) -> None:
    parser.add_switch("--json", "print machine-readable JSON")


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
