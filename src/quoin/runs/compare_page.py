"""The page of a comparison: for a few runs a column each, for many a row each, in a table that sorts when a heading is
clicked. All of it is inside the page: it loads nothing."""

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

from quoin.display import metric_words
from quoin.runs.compare import Comparison, LanguageModelLine
from quoin.runs.compare_curves import band_panels
from quoin.runs.compare_groups import RunGroup
from quoin.runs.compare_tables import (
    ARROWS,
    best_groups,
    difference_cells,
    format_interval,
    format_spread,
    metric_decimals,
)
from quoin.runs.generative_table import generative_section
from quoin.train import report

__all__ = ["MOST_COLUMNS", "comparison_page"]

MOST_COLUMNS = 6  # runs that stand side by side; more stand one below the other

_STYLE = """
.scroll { overflow-x: auto; width: fit-content; max-width: 100%; border: 1px solid var(--grid); border-radius: 4px;
  margin: 0.4rem 0 1rem }
.scroll.tall { max-height: 80vh; overflow-y: auto } .scroll .table { overflow: visible }
.scroll table { margin: 0; border-collapse: separate; border-spacing: 0 }
.scroll td, .scroll th { padding: 0.25rem 0.8rem; white-space: nowrap; background: var(--paper) }
.scroll th { position: sticky; top: 0; z-index: 1; border-bottom: 1px solid var(--edge) }
.scroll td:first-child, .scroll th:first-child { position: sticky; left: 0; min-width: 0; white-space: normal;
  border-right: 1px solid var(--grid); z-index: 1 }
.scroll td:first-child span.name { display: block; width: max-content; max-width: min(34vw, 24rem) }
.scroll th:first-child { z-index: 2 }
.scroll tr:last-child td { border-bottom: 0 }
.scroll tr:hover td { background: var(--raised) } .best { font-weight: 700 }
.interval { color: var(--faint); font-size: 0.85em; font-weight: 400 }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer;
  text-align: inherit }
th button::after { content: " \\2195"; color: var(--edge) }
th[aria-sort=ascending] button::after { content: " \\25B4"; color: inherit }
th[aria-sort=descending] button::after { content: " \\25BE"; color: inherit }
ul.notes { color: var(--faint); padding-left: 1.1rem; margin-top: 0 }
@media (max-width: 32rem) { .scroll td, .scroll th { padding: 0.2rem 0.5rem } }
"""

_SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.rows[0].cells];
  heads.forEach((head, column) => head.firstElementChild?.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const rows = [...table.rows].slice(1), full = rows.filter(row => key(row) !== "");
    const numeric = full.every(row => !Number.isNaN(Number(key(row))));
    const order = (a, b) => numeric ? key(a) - key(b) : key(a).localeCompare(key(b), undefined, {numeric: true});
    full.sort((a, b) => up ? order(a, b) : order(b, a));
    for (const each of heads) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    table.tBodies[0].append(...full, ...rows.filter(row => key(row) === ""));
  }));
}
"""


class _Heading(NamedTuple):
    """A metric in words, and its name when pointed at."""

    text: str
    name: str = ""

    @classmethod
    def of(cls, metric: str) -> "_Heading":
        return cls(metric_words(metric), metric)

    def attribute(self) -> str:
        return f' title="{html.escape(self.name)}"' if self.name and self.name != self.text else ""


class _Cell(NamedTuple):
    text: str
    value: float | None = None  # by which the column is sorted; None for text
    below: str = ""
    is_best: bool = False
    name: str = ""  # of a metric, when pointed at


def comparison_page(found: Comparison, precision: int | None = None) -> str:
    """The whole page: results, the test against the baseline, curves, all metrics."""
    wide = len(found.groups) <= MOST_COLUMNS
    sections = [_notes(found.warnings)]
    sections += _by_columns(found, precision) if wide else [_by_rows(found, precision)]
    if found.baseline is not None and found.differences:
        sections.append(_differences(found, precision))
    sections.append(_notes(found.methods))
    sections += _kinds(found)
    sections += report.figures(lambda: band_panels(found))
    if others := [name for name in found.every_metric if name not in found.metrics]:
        rows = _metric_rows(found, found.ranked(), others, precision)
        table = _table(("run", *map(_Heading.of, others)), rows, sortable=True)
        sections.append(f"<details><summary>All other metrics</summary>\n{table}</details>")
    sections.append(f"<script>{_SCRIPT}</script>")
    lead = ", ".join(found.names) if wide else f"{len(found.groups)} runs"
    return report.page("Runs compared", lead, sections, style=_STYLE)


def _notes(notes: list[str]) -> str:
    lines = "".join(f"<li>{html.escape(note)}</li>\n" for note in notes)
    return f'<ul class="notes">\n{lines}</ul>' if lines else ""


def _by_columns(found: Comparison, precision: int | None) -> list[str]:
    """Few runs: a column each, options and metrics as rows."""
    names = [f"{group.name} ({group.standing})" if group.standing else group.name for group in found.groups]
    options = [
        [_Cell(name), *(_Cell(report.format_cell(value)) for value in values)] for name, values in found.options.items()
    ]
    by_run = _metric_rows(found, found.groups, found.metrics, precision)
    results = [
        [_Cell(_heading(found, name).text, name=name), *(row[i] for row in by_run)]
        for i, name in enumerate(found.metrics, 1)
    ]
    sections = [f"<h2>Results</h2>\n{_table(('metric', *names), results)}"] if results else []
    if options:
        sections.append(f"<h2>Options that differ</h2>\n{_table(('option', *names), options)}")
    return sections


def _by_rows(found: Comparison, precision: int | None) -> str:
    """Many runs: a row each, the best by the first metric on top; metrics, then options as columns."""
    ranked = found.ranked()
    places = [found.groups.index(group) for group in ranked]
    rows = _metric_rows(found, ranked, found.metrics, precision)
    has_standing = any(group.standing for group in found.groups)
    for row, group, place in zip(rows, ranked, places, strict=True):
        if has_standing:
            row.append(_Cell(group.standing))
        row += [_option_cell(values, place) for values in found.options.values()]
    columns: list[str | _Heading] = ["run", *(_heading(found, name) for name in found.metrics)]
    columns += ["runs"] * has_standing + list(found.options)
    greater = found.greater_is_better(found.metrics[0]) if found.metrics else None
    order = {True: "descending", False: "ascending", None: ""}[greater]
    return f"<h2>Results</h2>\n{_table(columns, rows, sortable=True, order=order)}"


def _metric_rows(
    found: Comparison, groups: list[RunGroup], metrics: Sequence[str], precision: int | None
) -> list[list[_Cell]]:
    """For each group its name and a cell for each metric."""
    rows = [[_Cell(group.name)] for group in groups]
    for metric in metrics:
        decimals = metric_decimals(found, metric, precision)
        best = best_groups(found, metric, decimals)
        for row, group in zip(rows, groups, strict=True):
            spread = found.spread(group, metric)
            text, interval = (each(found, group, metric, decimals) for each in (format_spread, format_interval))
            row.append(_Cell(text, spread and spread.mean, interval, group.name in best))
    return rows


def _option_cell(values: list[Any], place: int) -> _Cell:
    """A number only where the whole column is of numbers."""
    numeric = all(value is None or type(value) in (int, float) for value in values)
    return _Cell(report.format_cell(values[place]), values[place] if numeric else None)


def _differences(found: Comparison, precision: int | None) -> str:
    assert found.baseline is not None
    rows = []
    for each in found.differences:
        run, metric, difference, interval, verdict, *p, test = difference_cells(found, each, precision)
        row = [
            _Cell(run),
            _Cell(metric_words(metric), name=metric),
            _Cell(difference, each.difference, interval),
            _Cell(verdict),
        ]
        rows.append([*row, *map(_Cell, p, (each.p_value, each.p_holm)), _Cell(test)])
    columns = ("run", "metric", "difference", "", "p", *["p (Holm)"] * found.is_adjusted, "test of")
    return f"<h2>Difference from {html.escape(found.baseline.name)}</h2>\n{_table(columns, rows, sortable=True)}"


def _kinds(found: Comparison) -> list[str]:
    sections = []
    if found.generative_models:
        sections.append(_scroll(generative_section("Samples of generative models", found.generative_models)))
    if found.language_models:
        columns = list(map(metric_words, LanguageModelLine._fields))
        title = "Language models, on their test text"
        sections.append(_scroll(report.table(title, columns, found.language_models)))
    return sections


def _scroll(section: str) -> str:
    """A heading and a table of a report, the table in a box that scrolls instead of the page."""
    return section.replace('<div class="table">', '<div class="scroll" tabindex="0">')


def _table(
    columns: Sequence[str | _Heading], rows: Sequence[Sequence[_Cell]], *, sortable: bool = False, order: str = ""
) -> str:
    """A table in a box that scrolls; `order` says how the rows stand by the second column."""
    numeric = [any(row[i].value is not None for row in rows) for i in range(len(columns))]
    kind = ' class="number"'
    sort = ["", f' aria-sort="{order}"' if order else "", *[""] * len(columns)]
    named = [each if isinstance(each, _Heading) else _Heading(each) for each in columns]
    texts = [html.escape(each.text) for each in named]
    heads = [f"<button>{text}</button>" if sortable and text else text for text in texts]
    head = "".join(
        f"<th{kind if right else ''}{by}{each.attribute()}>{text}</th>"
        for text, right, by, each in zip(heads, numeric, sort, named)
    )
    body = "".join(f"<tr>{_name(row[0])}{''.join(map(_cell, row[1:]))}</tr>\n" for row in rows)
    tall = " tall" if len(rows) > 20 else ""
    label = ' class="sortable"' if sortable else ""
    return (
        f'<div class="scroll{tall}" tabindex="0"><table{label}>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>"
    )


def _name(cell: _Cell) -> str:
    return f'<td><span class="name"{_pointed_at(cell)}>{html.escape(cell.text)}</span></td>'


def _pointed_at(cell: _Cell) -> str:
    return f' title="{html.escape(cell.name)}"' if cell.name else ""


def _cell(cell: _Cell) -> str:
    classes = " ".join(["number"] * (cell.value is not None) + ["best"] * cell.is_best)
    attributes = (f' class="{classes}"' if classes else "") + (
        f' data-value="{cell.value!r}"' if cell.value is not None else ""
    )
    below = f'<br><span class="interval">{html.escape(cell.below)}</span>' if cell.below else ""
    return f"<td{attributes}{_pointed_at(cell)}>{html.escape(cell.text)}{below}</td>"


def _heading(found: Comparison, metric: str) -> "_Heading":
    return _Heading(f"{metric_words(metric)} {ARROWS[found.greater_is_better(metric)]}".strip(), metric)
