"""`quoin eval`, `quoin predict` and `quoin compare`: what is done with runs that are already there."""

import argparse
import contextlib
import os
import sys
from pathlib import Path

from quoin.cli.arguments import code_access
from quoin.cli.output import print_json, print_table
from quoin.data import check_source_name
from quoin.errors import UserError, format_value

__all__ = ["compare", "evaluate", "predict"]


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


def compare(parsed: argparse.Namespace) -> int:
    from quoin.runs.compare import comparison, comparison_page
    from quoin.runs.generative_table import HEADINGS, caution
    from quoin.train.durable import write_here

    if len(parsed.folders) < 2:
        raise UserError(f"compare expects two or more runs, got {len(parsed.folders)}")
    if parsed.out is not None and parsed.out.suffix != ".html":
        raise UserError(f"--out expects a page, a file ending in .html, got {format_value(parsed.out.name)}")
    out, found = parsed.out or Path("compare.html"), comparison(parsed.folders)
    if parsed.out is not None:
        _write(out, comparison_page(found))
    else:  # a name that the user did not choose: no link of that name is followed
        write_here(out.name, comparison_page(found).encode(errors="backslashreplace"))
    if parsed.json:
        told = {"runs": found.names, "options": found.options, "metrics": found.metrics, "page": str(out)}
        kinds = {"language_models": found.language_models, "generative_models": found.generative_models}
        print_json(told | {kind: [line._asdict() for line in lines] for kind, lines in kinds.items() if lines})
        return 0
    if found.options:
        print_table(("option", *found.names), found.option_rows(), title="options that differ")
        print()
    print_table(("metric", *found.names), [(name, *values) for name, values in found.metrics.items()], title="results")
    if found.language_models:
        print()
        columns = [name.replace("_", " ") for name in found.language_models[0]._fields]
        print_table(columns, found.language_models, title="language models, on their test text")
    if found.generative_models:
        print()
        print_table(
            HEADINGS, found.generative_models, title="samples of generative models, compared with test examples"
        )
        if told := caution(found.generative_models):
            print(f"\n{told}")
    print(f"\ncurves: {out}")
    return 0


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UserError(f"{path} could not be written ({error.strerror}): choose another place with --out") from None
