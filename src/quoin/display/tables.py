"""Small HTML tables for notebooks. Every text is escaped; colours are the notebook's own, so that a table is read on
light and on dark pages."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from quoin.display.short import is_array, short

__all__ = ["Markup", "fields_table", "number_table", "table", "values_html"]

MOST_ROWS, MOST_COLUMNS = 12, 12
_CELL = "text-align:left;vertical-align:top"
_NUMBER = "text-align:right;vertical-align:top;font-variant-numeric:tabular-nums"


class Markup(str):
    """HTML that is ready, and is not escaped again."""


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str = "", footer: str = "", most: int = 40
) -> Markup:
    """A table of texts and numbers, at most `most` rows of it; `Markup` in a cell stays what it is."""
    rows = [list(row) for row in rows]
    hidden = len(rows) - most
    head = "".join(f'<th style="{_CELL}">{_cell_text(name)}</th>' for name in columns)
    head = f"<tr>{head}</tr>\n" if columns else ""
    body = "".join(_row(map(_cell, row)) for row in rows[:most])
    notes = [footer] if footer else []
    if hidden > 0:
        notes.append(f"and {hidden} more rows")
    below = f"<div><small>{html.escape('; '.join(notes))}</small></div>\n" if notes else ""
    above = f"<div><strong>{html.escape(caption)}</strong></div>\n" if caption else ""
    return Markup(f"<div>\n{above}<table>\n{head}{body}</table>\n{below}</div>")


def fields_table(title: str, fields: Mapping[str, Any]) -> Markup:
    """A row for each field; small tensors with their numbers, larger ones with their range."""
    return table((), [(name, values_html(value)) for name, value in fields.items()], caption=title)


def number_table(
    values: Any, *, rows: Sequence[Any] = (), columns: Sequence[Any] = (), caption: str = "", footer: str = ""
) -> Markup:
    """A matrix of numbers with names for its rows and columns, its upper left corner where it is large."""
    numbers = [list(row) for row in values]
    height, width = len(numbers), len(numbers[0]) if numbers else 0
    names = [short(each) if not isinstance(each, str) else each for each in columns] or list(range(width))
    cells = [
        [Markup(f"<strong>{html.escape(str(rows[index] if rows else index))}</strong>"), *row[:MOST_COLUMNS]]
        for index, row in enumerate(numbers[:MOST_ROWS])
    ]
    cut = height > MOST_ROWS or width > MOST_COLUMNS
    notes = [each for each in (footer, f"the first of {height} × {width}" if cut else "") if each]
    return table(["", *map(str, names[:MOST_COLUMNS])], cells, caption=caption, footer="; ".join(notes))


def values_html(value: Any) -> Markup:
    """A value for a cell: the numbers of a small tensor, dtype, shape and range of a large one, else its short text."""
    if not is_array(value):
        return Markup(html.escape(value if isinstance(value, str) and len(value) <= 200 else short(value, 120)))
    shape = tuple(value.shape)
    kind = html.escape(f"{str(value.dtype).rsplit('.', 1)[-1]}[{', '.join(map(str, shape))}]")
    try:
        if len(shape) == 0:
            return Markup(html.escape(format_number(value.tolist())))
        if len(shape) == 1 and 0 < shape[0] <= MOST_COLUMNS:
            return _grid([value.tolist()])
        if len(shape) == 2 and 0 < shape[0] <= MOST_ROWS and 0 < shape[1] <= MOST_COLUMNS:
            return _grid(value.tolist())
        return Markup(f"{kind}{_range(value)}")
    except (RuntimeError, TypeError, ValueError, AttributeError, NotImplementedError):
        return Markup(kind)  # a tensor without numbers, as on the meta device


def format_number(value: Any) -> str:
    """A number in few digits.

    >>> format_number(0.123456), format_number(3), format_number(True)
    ('0.1235', '3', 'True')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _range(value: Any) -> str:
    """Mean and range of finite or other numbers, in words."""
    if not all(value.shape) or "complex" in str(value.dtype) or "bool" in str(value.dtype):
        return ""
    low, high = float(value.min()), float(value.max())
    mean = f"mean {float(value.mean()):.3g}, " if "float" in str(value.dtype) else ""
    return html.escape(f" {mean}{low:.3g} to {high:.3g}")


def _grid(rows: list[list[Any]]) -> Markup:
    cells = [[f'<td style="{_NUMBER}">{html.escape(format_number(each))}</td>' for each in row] for row in rows]
    body = "".join(map(_row, cells))
    return Markup(f'<table style="margin:0">{body}</table>')


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>\n"


def _cell(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'<td style="{_NUMBER}">{html.escape(format_number(value))}</td>'
    return f'<td style="{_CELL}">{_cell_text(value)}</td>'


def _cell_text(value: Any) -> str:
    if isinstance(value, Markup):
        return str(value)
    return html.escape("" if value is None else value if isinstance(value, str) else short(value))
