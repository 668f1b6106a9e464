"""What the commands print: tables for a person, JSON for a machine."""

import contextlib
import io
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, TextIO

from quoin.display import format_number

__all__ = ["format_size", "number", "only_json", "print_json", "print_table"]

_json_stream: ContextVar[TextIO | None] = ContextVar("json_stream", default=None)


def print_json(value: Any) -> None:
    """Strict JSON: a number that is not finite, for which JSON has no word, is printed as text."""
    print(json.dumps(_strict(value), indent=2, allow_nan=False), file=_json_stream.get() or sys.stdout)


@contextlib.contextmanager
def only_json() -> Iterator[None]:
    """Inside, only `print_json` reaches standard output: what the user's own code prints goes to standard error."""
    token = _json_stream.set(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _json_stream.reset(token)


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _strict(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """A table as wide as the terminal allows; into a pipe, as wide as it needs."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(
        title=title or None, title_justify="left", title_style="bold", box=None, header_style="bold", pad_edge=False
    )
    for name in columns:
        made.add_column(name, overflow="fold")
    for row in rows:
        # Text, not markup: a name that holds square brackets is a name.
        made.add_row(*(Text(number(value), style=_STYLE.get(number(value), "")) for value in row))
    if sys.stdout.isatty():
        Console().print(made)
        return
    text = io.StringIO()  # and printed by Python: rich would answer a reader that left by ending the process with 1
    Console(file=text, width=200, color_system=None).print(made)
    print("\n".join(line.rstrip() for line in text.getvalue().splitlines()))


_STYLE = {"met": "green", "holds": "green", "ok": "green", "missed": "red", "fails": "red"}


def number(value: Any) -> str:
    """A value as a table shows it: three digits that matter, met or missed for a verdict."""
    if isinstance(value, bool):
        return "met" if value else "missed"
    if isinstance(value, float):
        return format_number(value)
    if isinstance(value, (list, tuple)):
        return " ".join(map(number, value))
    return "" if value is None else str(value)


def format_size(num_bytes: int) -> str:
    """Bytes in the unit that leaves three digits before the point at most."""
    value, unit = float(num_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value >= 1000:
            value, unit = value / 1000, larger
    return f"{value:.3g} {unit}" if unit != "B" else f"{num_bytes} B"
