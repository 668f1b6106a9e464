"""`quoin eval` and `quoin predict`: what is done with runs that are already there."""

import argparse
import contextlib
import os
import sys
from pathlib import Path

from quoin.cli.arguments import code_access
from quoin.cli.output import print_json, print_table
from quoin.data import check_source_name
from quoin.errors import UserError, format_value

__all__ = ["evaluate", "predict"]


def evaluate(parsed: argparse.Namespace) -> int:
    if parsed.data is not None:
        check_source_name(parsed.data)
    elif parsed.target is not None:
        raise UserError(f"--target {format_value(parsed.target)} names a column of --data, and --data was not given")
    from quoin.runs import Run

    found = Run.open(parsed.folder, step=parsed.step, code=code_access(parsed)).evaluate(
        parsed.data, target=parsed.target
    )
    if parsed.json:
        print_json(found)
    else:
        print_table(("metric", "value"), sorted(found.items()))
    return 0


def predict(parsed: argparse.Namespace) -> int:
    if parsed.out is not None and _are_one_file(parsed.out, parsed.input):
        raise UserError(
            f"--out {format_value(str(parsed.out))} is the file to predict for: choose another, or it would be lost"
        )
    from quoin.runs import Run

    run = Run.open(parsed.folder, step=parsed.step, code=code_access(parsed))
    with contextlib.redirect_stdout(sys.stderr):  # standard output is the predictions', whatever a user's model prints
        predicted = run.expect("predict").predict_file(parsed.input)  # type: ignore[attr-defined]
    for note in predicted.notes:
        print(f"note: {note}", file=sys.stderr)
    if parsed.out is None:
        sys.stdout.write(predicted.text)
    else:
        predicted.save(parsed.out)
        print(f"{predicted.said}: {parsed.out}", file=sys.stderr)
    return 0


def _are_one_file(one: Path, other: Path) -> bool:
    # os.path, not Path: a name too long to be a file's is then no file, and is refused where it is used
    return os.path.exists(one) and os.path.exists(other) and one.samefile(other)
