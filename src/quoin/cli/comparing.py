"""`quoin compare`: runs side by side, in the terminal, on a page and as tables for a paper."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quoin.cli.arguments import add_json, run_later
from quoin.cli.flags import Parser, any_number, whole_number
from quoin.cli.output import print_json, print_table
from quoin.display import metric_words
from quoin.errors import UserError, format_value

if TYPE_CHECKING:
    from quoin.runs.compare import Comparison
    from quoin.runs.generative_table import GenerativeLine

__all__ = ["add_compare", "compare"]

STDOUT = Path("-")
ENDINGS = {"out": (".html",), "csv": (".csv",), "markdown": (".md", ".markdown"), "latex": (".tex",)}
FIRST = Path()  # what --baseline without a run stands for
MOST_DECIMALS = 12


def add_compare(parser: Parser, words: Sequence[str]) -> None:
    """The words of `quoin compare`."""
    parser.description = (
        "Compare runs: their final metrics, the options that differ, their learning curves.\n\n"
        "A folder made by --seeds or --folds is one group, shown by mean ± standard deviation. Plain runs that "
        "differ in nothing but\n"
        "the seed become one group too. With --baseline, every other group is tested against it by a permutation "
        "test, paired over\n"
        "the seeds that both have. Only files are read: the recipe's code is not needed."
    )
    parser.epilog = """\
examples:
  quoin compare runs/mlp-1 runs/mlp-2
  quoin compare runs/base runs/mine --baseline runs/base --latex table.tex
  quoin compare runs/* --metric test_accuracy --csv - > results.csv"""
    parser.add_argument("folders", type=Path, nargs="+", metavar="RUN", help="two or more run folders")
    parser.flags += ["--baseline", "--metric"]
    parser.add_argument(
        "--baseline",
        type=Path,
        nargs="?",
        const=FIRST,
        metavar="RUN",
        help="test the others against this run; the first one if none is named",
    )
    parser.add_argument(
        "--metric",
        nargs="+",
        default=[],
        metavar="NAME",
        help="the final metrics to show (default: the target's and those on test data)",
    )
    parser.add_flag("--confidence", "of the intervals (default: 0.95)", "FLOAT", type=any_number, default=0.95)
    parser.add_flag("--precision", "digits after the point (default: by the spread)", "INT", type=whole_number)
    parser.add_switch("--no-group", "keep runs apart that differ only in the seed")
    parser.add_flag("--out", "where to write the page with the curves (default: compare.html)", "FILE", type=Path)
    parser.add_flag("--csv", "write a line per run and metric to a .csv file, or - to print it", "FILE", type=Path)
    parser.add_flag("--markdown", "write a table to a .md file, or - to print it", "FILE", type=Path)
    parser.add_flag("--latex", "write a booktabs tabular to a .tex file, or - to print it", "FILE", type=Path)
    add_json(parser)
    parser.set_defaults(run=run_later("comparing.compare"))


def compare(parsed: argparse.Namespace) -> int:
    _check_places(parsed)
    from quoin.runs.compare import comparison
    from quoin.runs.compare_page import comparison_page
    from quoin.runs.compare_tables import as_csv, as_json, as_latex, as_markdown

    baseline = parsed.folders[0] if parsed.baseline == FIRST else parsed.baseline
    found = comparison(
        parsed.folders,
        metrics=parsed.metric,
        baseline=baseline,
        confidence=parsed.confidence,
        group=not parsed.no_group,
    )
    out = _write_page(parsed.out, comparison_page(found, parsed.precision))
    written = [out]
    printed = False
    for flag, make in (
        ("csv", lambda: as_csv(found)),
        ("markdown", lambda: as_markdown(found, parsed.precision)),
        ("latex", lambda: as_latex(found, parsed.precision)),
    ):
        if (path := getattr(parsed, flag)) == STDOUT:
            sys.stdout.write(make())
            printed = True
        elif path is not None:
            _write(path, make(), flag)
            written.append(path)
    if parsed.json:
        print_json(as_json(found) | {"page": str(out)})
    elif not printed:
        _print(found, parsed.precision)
        print(f"\nwritten: {', '.join(map(str, written))}")
    return 0


def _check_places(parsed: argparse.Namespace) -> None:
    """Refuse what cannot be written, or would be lost, before anything is read."""
    places: list[Path] = [path for flag in ENDINGS if (path := getattr(parsed, flag)) is not None]
    for flag, endings in ENDINGS.items():
        path: Path | None = getattr(parsed, flag)
        if path is None or (path == STDOUT and flag != "out"):
            continue
        if path.suffix not in endings:
            what = {"out": "a page, a file"}.get(flag, "a file")
            raise UserError(f"--{flag} expects {what} ending in {endings[0]}, got {format_value(path.name)}")
    if places.count(STDOUT) + parsed.json > 1:
        raise UserError("only one of --csv -, --markdown -, --latex - and --json can be printed: name files for others")
    if parsed.precision is not None and not 0 <= parsed.precision <= MOST_DECIMALS:
        raise UserError(f"--precision expects 0 to {MOST_DECIMALS} digits, got {parsed.precision}")


def _print(found: "Comparison", precision: int | None) -> None:
    from quoin.runs.compare_page import MOST_COLUMNS

    if len(found.groups) <= MOST_COLUMNS:
        _print_columns(found, precision)
    else:
        _print_rows(found, precision)
    if found.baseline is not None and found.differences:
        print()
        _print_differences(found, precision)
    if found.language_models:
        print()
        columns = list(map(metric_words, found.language_models[0]._fields))
        print_table(columns, found.language_models, title="language models, on their test text")
    if found.generative_models:
        print()
        _print_generative(found.generative_models)
    if found.notes:
        print()
    for note in found.notes:
        print(f"note: {note}")


def _print_generative(lines: "list[GenerativeLine]") -> None:
    """A column for each of few runs, which fits into 80 characters; a row for each of many."""
    from quoin.runs.compare_page import MOST_COLUMNS
    from quoin.runs.generative_table import caution, without_shared

    headings, rows, words = without_shared(lines)
    title = "samples of generative models, compared with test examples"
    if len(lines) <= MOST_COLUMNS:
        headings, *rows = zip(headings, *rows)
    print_table(headings, rows, title=title)
    for line in filter(None, ["; ".join(words), caution(lines)]):
        print(line)


def _print_columns(found: "Comparison", precision: int | None) -> None:
    """Few runs: a column each."""
    from quoin.runs.compare_tables import format_interval, format_spread, metric_decimals
    from quoin.train.report import format_cell

    names = [f"{group.name} ({group.standing})" if group.standing else group.name for group in found.groups]
    if found.options:
        # as text: a table would read True and False as verdicts
        options = [(name, *map(format_cell, values)) for name, values in found.options.items()]
        print_table(("option", *names), options, title="options that differ")
        print()
    decimals = {name: metric_decimals(found, name, precision) for name in found.metrics}
    rows = [(m, *(format_spread(found, each, m, decimals[m]) for each in found.groups)) for m in found.metrics]
    print_table(("metric", *names), rows, title="results")
    rows = [(m, *(format_interval(found, each, m, decimals[m]) for each in found.groups)) for m in found.metrics]
    if any("".join(row[1:]) for row in rows):
        print()
        print_table(("metric", *names), rows, title=f"{100 * found.confidence:g}% confidence intervals of the mean")


def _print_rows(found: "Comparison", precision: int | None) -> None:
    """Many runs: a row each, the best first."""
    from quoin.runs.compare_tables import format_spread, metric_decimals
    from quoin.train.report import format_cell

    decimals = {name: metric_decimals(found, name, precision) for name in found.metrics}
    ranked, has_standing = found.ranked(), any(group.standing for group in found.groups)
    options = {name: values for name, values in found.options.items() if name not in found.metrics}
    rows = []
    for group in ranked:
        values = [each[found.groups.index(group)] for each in options.values()]
        cells = [format_spread(found, group, name, decimals[name]) for name in found.metrics]
        rows.append((group.name, *cells, *[group.standing] * has_standing, *map(format_cell, values)))
    is_sorted = bool(found.metrics) and found.greater_is_better(found.metrics[0]) is not None
    title = f"results, the best {found.metrics[0]} first" if is_sorted else "results"
    print_table(("run", *found.metrics, *["runs"] * has_standing, *options), rows, title=title)


def _print_differences(found: "Comparison", precision: int | None) -> None:
    from quoin.runs.compare_page import MOST_COLUMNS
    from quoin.runs.compare_tables import difference_cells

    assert found.baseline is not None
    columns = ["run", "metric", "difference", "interval", "", "p", *["p (Holm)"] * found.is_adjusted, "test of"]
    every = len(found.groups) <= MOST_COLUMNS
    shown = [each for each in found.differences if every or each.metric == found.metrics[0]]
    rest = "" if len(shown) == len(found.differences) else "; other metrics are on the page, in --csv and --json"
    rows = [difference_cells(found, each, precision) for each in shown]
    print_table(columns, rows, title=f"difference from {found.baseline.name}{rest}")


def _write_page(path: Path | None, page: str) -> Path:
    if path is not None:
        _write(path, page, "out")
        return path
    from quoin.train.durable import write_here

    # a name that the user did not choose: no link of that name is followed
    write_here("compare.html", page.encode(errors="backslashreplace"))
    return Path("compare.html")


def _write(path: Path, text: str, flag: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UserError(f"{path} could not be written ({error.strerror}): choose another place with --{flag}") from None
