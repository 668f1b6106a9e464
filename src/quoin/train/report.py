"""A run as one page that needs nothing outside itself: options, environment, curves, target, plots."""

import functools
import html
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from quoin import plot
from quoin.plot import Panel

__all__ = [
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

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff;
  max-width: 46rem; margin: 2.5rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: 0.2rem } h2 { font-size: 1.15rem; margin: 2.2rem 0 0.6rem }
p.lead { color: #555; margin-top: 0 } figure { margin: 1.2rem 0 2rem } figure svg { max-width: 100%; height: auto }
figcaption { color: #555 } table { border-collapse: collapse; margin: 0.4rem 0 1rem }
td, th { padding: 0.2rem 1.2rem 0.2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #e4e4e4 }
td { white-space: nowrap } td:first-child, details td { overflow-wrap: anywhere; white-space: normal; min-width: 8rem }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f4f4f4; padding: 0.6rem 0.8rem }
.met { color: #00664a; font-weight: 600 } .missed { color: #a83c00; font-weight: 600 } details { margin: 0.6rem 0 }
p.note { white-space: pre-wrap; border-left: 3px solid #ddd; padding-left: 0.8rem }
.tag { background: #eef1f4; border-radius: 0.3rem; padding: 0.1rem 0.45rem; font-size: 0.9em }
"""

_NUMBER = ' class="number"'


def page(title: str, lead: str, sections: Iterable[str], *, style: str = "") -> str:
    """A whole HTML page; sections come from the functions below, and `style` adds to the style of all pages."""
    heading = html.escape(title)
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta '
        f'charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{heading}</title>'
        f"<style>{_STYLE}{style}</style></head>\n"
    )
    return (
        f'{head}<body>\n<h1>{heading}</h1>\n<p class="lead">{html.escape(lead)}</p>\n'
        + "\n".join(sections)
        + "\n</body>\n</html>\n"
    )


def paragraph(text: str) -> str:
    """A sentence by itself."""
    return f"<p>{html.escape(text)}</p>"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table under a heading; numbers stand to the right, True and False read as met and missed."""
    rows = list(rows)
    numeric = [
        any(isinstance(row[i], (int, float)) and not isinstance(row[i], bool) for row in rows)
        for i in range(len(columns))
    ]
    head = "".join(f"<th{_NUMBER if right else ''}>{html.escape(name)}</th>" for name, right in zip(columns, numeric))
    body = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>\n" for row in rows)
    return f"<h2>{html.escape(title)}</h2>\n<table>\n<tr>{head}</tr>\n{body}</table>"


def metrics_table(metrics: dict[str, float]) -> str:
    """Final metrics with a row for each and a column for each split of the data, the last of them the test or held-out
    fold."""
    last = "held_out_fold" if any(name.startswith("held_out_fold_") for name in metrics) else "test"
    splits = {"train": "train", "validation": "validation", last: "test" if last == "test" else "held-out fold"}
    names = sorted({name.removeprefix(f"{split}_") for name in metrics for split in splits if name.startswith(split)})
    return table(
        "Results",
        ("", *splits.values()),
        [(_words(name), *(metrics.get(f"{split}_{name}") for split in splits)) for name in names],
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
    return f"<details><summary>{html.escape(title)}</summary>\n<table>\n{body}</table></details>"


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
    return f"<h2>{title}</h2>\n<figure>\n{svg}\n<figcaption>{caption}</figcaption></figure>"


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
                    series[f"{run} {split}".strip()] = tuple(map(list, zip(*points)))
        values = [value for _, ys in series.values() for value in ys]
        wide = min(values) > 0 and max(values) > 100 * min(values)
        content = functools.partial(plot.curves, series, x_label="epoch", y_label=_words(metric), log_y=wide)
        only = next(iter(series)).strip() if len(series) == 1 else ""
        beyond = sum(abs(value) > plot.LARGEST for value in values)
        caption = f"{beyond} of {len(values)} values are beyond {plot.LARGEST:g} and are not plotted." if beyond else ""
        panels.append(Panel(f"{only} {_words(metric)} by epoch".strip().capitalize(), content, caption))
    return panels


def _words(metric: str) -> str:
    return metric.replace("_", " ")


def _cell(value: Any) -> str:
    if value is True or value is False:
        return f'<td class="{"met" if value else "missed"}">{"met" if value else "missed"}</td>'
    kind = _NUMBER if isinstance(value, (int, float)) else ""
    return f"<td{kind}>{html.escape(format_cell(value))}</td>"


def format_cell(value: Any) -> str:
    """A value as a page shows it: six digits that matter, a list word by word."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return " ".join(map(format_cell, value))
    return "" if value is None else str(value)
