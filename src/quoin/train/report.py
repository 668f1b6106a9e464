"""A run as one page that needs nothing outside itself: options, environment, curves, target, plots."""

import functools
import html
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from quoin import plot
from quoin.display import SPLITS, capitalized, format_number, metric_words
from quoin.plot import Panel
from quoin.train.report_page import page

__all__ = [
    "Named",
    "code",
    "collapsible",
    "curve_panels",
    "describe_plot_error",
    "figures",
    "format_cell",
    "label",
    "links",
    "metrics_table",
    "page",
    "paragraph",
    "table",
]

_NUMBER = ' class="number"'


class Named(NamedTuple):
    """A cell that shows a metric in words, and its name when pointed at."""

    name: str

    def cell(self) -> str:
        words = metric_words(self.name)
        return html.escape(words) if words == self.name else f'<span title="{html.escape(self.name)}">{words}</span>'


def paragraph(text: str) -> str:
    """A sentence by itself."""
    return f"<p>{html.escape(text)}</p>"


def table(title: str, columns: Sequence[str | Named], rows: Iterable[Sequence[Any]]) -> str:
    """A table under a heading; numbers stand to the right, True and False read as met and missed."""
    rows = list(rows)
    numeric = [
        any(isinstance(row[i], (int, float)) and not isinstance(row[i], bool) for row in rows)
        for i in range(len(columns))
    ]
    head = "".join(f"<th{_NUMBER if right else ''}>{_text(name)}</th>" for name, right in zip(columns, numeric))
    body = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>\n" for row in rows)
    return f'<h2>{html.escape(title)}</h2>\n<div class="table"><table>\n<tr>{head}</tr>\n{body}</table></div>'


def _text(heading: str | Named) -> str:
    return heading.cell() if isinstance(heading, Named) else html.escape(heading)


def metrics_table(metrics: dict[str, float]) -> str:
    """Final metrics with a row for each and a column for each split of the data, the last of them the test or held-out
    fold."""
    last = "held_out_fold" if any(name.startswith("held_out_fold_") for name in metrics) else "test"
    splits = {split: SPLITS[split] for split in ("train", "validation", last)}
    names = sorted({name.removeprefix(f"{split}_") for name in metrics for split in splits if name.startswith(split)})
    return table(
        "Results",
        ("", *splits.values()),
        [(Named(name), *(metrics.get(f"{split}_{name}") for split in splits)) for name in names],
    )


def label(note: str, tags: Sequence[str]) -> str:
    """What the user noted on a run; nothing where nothing was."""
    words = "".join(f'<span class="tag">{html.escape(tag)}</span> ' for tag in tags)
    noted = f'<p class="note">{html.escape(note)}</p>' if note.strip() else ""
    return noted + (f"<p>{words}</p>" if words else "")


def links(title: str, paths: dict[str, str]) -> str:
    """Ways to pages beside this one."""
    rows = "".join(f'<li><a href="{html.escape(path)}">{html.escape(name)}</a></li>\n' for name, path in paths.items())
    return f"<h2>{html.escape(title)}</h2>\n<ul>\n{rows}</ul>"


def code(title: str, text: str) -> str:
    """A command to copy, under a heading."""
    return f"<h2>{html.escape(title)}</h2>\n<pre>{html.escape(text)}</pre>"


def collapsible(title: str, rows: dict[str, Any]) -> str:
    """Names and values that are folded until somebody opens them."""
    body = "".join(
        f"<tr><td>{html.escape(str(name))}</td><td>{html.escape(format_cell(value))}</td></tr>\n"
        for name, value in rows.items()
    )
    shown = f'<div class="table"><table>\n{body}</table></div>'
    return f"<details><summary>{html.escape(title)}</summary>\n{shown}</details>"


def figures(*sources: Callable[[], Iterable[Panel]]) -> list[str]:
    """The panels that these give, plotted one by one. What fails costs its plot and one line, here and on standard
    error: a run that trained to its end keeps its page, whatever its data look like or a model of somebody's own does
    when it is inspected."""
    sections = []
    for panels in sources:
        try:
            sections += map(_figure, panels())
        except Exception as error:  # the list itself broke off
            sections.append(_missing(describe_plot_error("a panel", error)))
    return sections


def _figure(panel: Panel) -> str:
    try:
        svg = panel.plot.inline()
    except Exception as error:
        return _missing(describe_plot_error(f"panel {panel.title!r}", error))
    title, caption = html.escape(panel.title), html.escape(panel.caption)
    shown = f'<div class="plot">{svg}</div>'
    return f"<h2>{title}</h2>\n<figure>\n{shown}\n<figcaption>{caption}</figcaption></figure>"


def _missing(line: str) -> str:
    print(f"quoin: {line}", file=sys.stderr)
    return f"<p>{html.escape(line)}</p>"


def describe_plot_error(what: str, error: Exception) -> str:
    """The line that stands for a plot. The tests have it raise the error, so that a fault of ours is seen."""
    why = " ".join(str(error).split()) or type(error).__name__
    return f"{what} could not be plotted: {why}"[:280]


def curve_panels(runs: dict[str, list[dict[str, Any]]]) -> list[Panel]:
    """One panel per metric, training and validation together, over the epochs; several runs share a panel."""
    names = {
        key for lines in runs.values() for line in lines for key in line if key.startswith(("train_", "validation_"))
    }
    panels = []
    for metric in sorted({name.partition("_")[2] for name in names}, key=lambda name: (name != "loss", name)):
        series = {}
        for run, lines in runs.items():
            for split in ("train", "validation"):
                points = [(line["epoch"], line[f"{split}_{metric}"]) for line in lines if f"{split}_{metric}" in line]
                if points:
                    series[f"{run} {SPLITS[split]}".strip()] = tuple(map(list, zip(*points)))
        values = [value for _, ys in series.values() for value in ys]
        wide = min(values) > 0 and max(values) > 100 * min(values)
        content = functools.partial(plot.curves, series, x_label="epoch", y_label=metric_words(metric), log_y=wide)
        only = next(iter(series)).strip() if len(series) == 1 else ""
        beyond = sum(abs(value) > plot.LARGEST for value in values)
        caption = f"{beyond} of {len(values)} values are beyond {plot.LARGEST:g} and are not plotted." if beyond else ""
        panels.append(Panel(capitalized(f"{only} {metric_words(metric)} by epoch".strip()), content, caption))
    return panels


def _cell(value: Any) -> str:
    if value is True or value is False:
        return f'<td class="{"met" if value else "missed"}">{"met" if value else "missed"}</td>'
    if isinstance(value, Named):
        return f"<td>{value.cell()}</td>"
    if isinstance(value, float):
        return f'<td class="number" title="{value!r}">{html.escape(format_number(value))}</td>'
    kind = _NUMBER if isinstance(value, int) else ""
    return f"<td{kind}>{html.escape(format_cell(value))}</td>"


def format_cell(value: Any) -> str:
    """A value that was given, as a page shows it: a number as it was written, a list word by word."""
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, (list, tuple)):
        return " ".join(map(format_cell, value))
    return "" if value is None else str(value)
