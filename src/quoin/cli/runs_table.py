"""Runs as lines of text, for a terminal of any width.

What a column takes is left to the longest of its cells; where the terminal is too narrow for all, recipe, times and
notes move under the run's name.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from quoin.cli.output import number
from quoin.runs.listing_runs import ListedRun

__all__ = ["Line", "format_runs", "spoken_time"]

COLUMNS = ("name", "recipe", "state", "result", "target", "started", "time")
MOVED_FIRST = ("recipe", "started", "time")  # under the name, in this order, where there is little space
GAP, NARROWEST = "  ", 30  # between columns; fewest characters for notes beside the rest
STYLES = {"met": "green", "missed": "red", "damaged": "red", "running": "cyan", "interrupted": "yellow"}


@dataclass(frozen=True)
class Line:
    """One line, and the words in it that have a color, each by where it begins and ends."""

    text: str
    styles: tuple[tuple[int, int, str], ...] = ()


def format_runs(
    runs: Sequence[ListedRun], usual: dict[str, str], *, metric: str | None = None, width: int | None = None
) -> list[Line]:
    """The runs under a heading.

    Args:
        usual: The metric of each recipe's target.
        metric: The metric to show instead of each run's own.
        width: Of the terminal; None for as wide as it needs.
    """
    rows = [_cells(run, usual, metric) for run in runs]
    needed = [column for column in COLUMNS if column == "name" or any(row[column] for row in rows)]
    if "recipe" in needed and all("/" in run.name or (_is_usual_name(run) and not run.multirun) for run in runs):
        needed.remove("recipe")
    moved = []
    for column in MOVED_FIRST:
        if width is not None and _total(rows, needed) > width and column in needed:
            needed.remove(column)
            moved.append(column)
    taken = _total(rows, needed)
    widths = {column: _width(rows, column) for column in needed}
    abouts = [_about(run) for run in runs]
    enough = min(NARROWEST, max(map(len, abouts), default=0))
    beside = not moved and (width is None or width - taken - len(GAP) >= enough)
    heading = GAP.join([column.ljust(widths[column]) for column in needed] + ["note"] * (beside and any(abouts)))
    lines = [Line(heading.rstrip(), ((0, len(heading), "bold"),))]
    for run, row, about in zip(runs, rows, abouts):
        main = _line(row, needed, widths)
        under = [f"{column} {row[column]}" if column == "started" else row[column] for column in moved if row[column]]
        if run.reason:
            under.append(run.reason)
        elif about and beside:
            first, *rest = [about] if width is None else textwrap.wrap(about, width - taken - len(GAP))
            lines.append(Line(main.text.ljust(taken) + GAP + first, main.styles))
            lines += [Line(" " * (taken + len(GAP)) + each) for each in rest]
            continue
        elif about:
            under.append(about)
        lines.append(Line(main.text.rstrip(), main.styles))
        text = GAP.join(under)
        lines += [Line(f"    {each}") for each in (textwrap.wrap(text, (width or 10**9) - 4) if text else [])]
    return lines


def _cells(run: ListedRun, usual: dict[str, str], metric: str | None) -> dict[str, str]:
    return {
        "name": run.name if "/" not in run.name else f"  {run.name.partition('/')[2]}",
        "recipe": run.recipe + (f" × {run.multirun['count']} {run.multirun['over']}s" if run.multirun else ""),
        "state": run.state,
        "result": _result(run, metric or run.key_metric(usual)),
        "target": _verdict(run),
        "started": _date(run.started) if run.started else "",
        "time": spoken_time(run.seconds) if run.seconds is not None else "",
    }


def _result(run: ListedRun, metric: str | None) -> str:
    if not run.metrics:
        if run.multirun:
            return f"{run.num_finished} of {run.multirun['count']} {run.multirun['over']}s"
        whole = f" of {run.num_epochs}" if run.num_epochs else ""
        return "" if run.epoch is None else f"epoch {run.epoch:.3g}{whole}"
    if metric not in run.metrics:
        return ""
    spread = f" ± {run.stds[metric]:.2g}" if run.multirun else ""
    return f"{metric} {number(float(run.metrics[metric]))}{spread}"


def _verdict(run: ListedRun) -> str:
    if not run.target:
        return ""
    word = "met" if run.target["met"] else "missed"
    return f"{word} {run.target['met_runs']}/{run.target['runs']}" if run.multirun else word


def _about(run: ListedRun) -> str:
    return " ".join([*(f"#{tag}" for tag in run.tags), *run.note.split()])


def _is_usual_name(run: ListedRun) -> bool:
    """Whether the name tells the recipe: mlp-1."""
    return not run.recipe or (run.name.startswith(f"{run.recipe}-") and run.name[len(run.recipe) + 1 :].isdigit())


def _line(row: dict[str, str], columns: Sequence[str], widths: dict[str, int]) -> Line:
    text, styles = "", []
    for column in columns:
        text += GAP if text else ""
        word = row[column].split(" ")[0]
        if column in ("state", "target") and word in STYLES:
            styles.append((len(text), len(text) + len(word), STYLES[word]))
        text += row[column].ljust(widths[column])
    return Line(text, tuple(styles))


def _width(rows: Sequence[dict[str, str]], column: str) -> int:
    return max([len(column), *(len(row[column]) for row in rows)])


def _total(rows: Sequence[dict[str, str]], columns: Sequence[str]) -> int:
    return sum(_width(rows, column) for column in columns) + len(GAP) * (len(columns) - 1)


def _date(when: datetime) -> str:
    """As `ls` writes it: the time of a day of this year, else the year."""
    this_year = when.year == datetime.now().year
    return when.strftime("%b %d %H:%M" if this_year else "%b %d  %Y")


def spoken_time(seconds: float) -> str:
    """Two or three digits and a unit.

    >>> [spoken_time(each) for each in (0.42, 8.34, 75, 600, 8000, 200_000)]
    ['0.42 s', '8.3 s', '75 s', '10 min', '2.2 h', '2.3 d']
    """
    for unit, size, limit in (("s", 1, 100), ("min", 60, 100 * 60), ("h", 3600, 48 * 3600)):
        if seconds < limit:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds / 86400:,.1f} d"
