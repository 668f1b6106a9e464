"""An item of the notes as the inside of a page: what computes it, with its source; its figure; its recipes."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any

from quoin import notes
from quoin.lab.parts.marks import escape
from quoin.notes.figures import collect as collect_figures

__all__ = ["find_object", "item_html"]

LONGEST_SOURCE = 12_000  # characters


def find_object(name: str) -> Any:
    """What a dotted name of the index names, below `quoin`: a module's attribute, or an attribute of that."""
    parts = ["quoin", *name.removeprefix("quoin.").split(".")]
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            found = getattr(found, attribute)
        return found
    raise AttributeError(name)


@functools.cache
def _figures() -> dict[str, Any]:
    return {id: figure for figure in collect_figures() for id in figure.ids}


@functools.cache
def _entries() -> dict[str, notes.Entry]:
    return {entry.id: entry for entry in notes.entries()}


@functools.lru_cache(maxsize=256)
def item_html(id: str) -> str:
    """The item unfolded. Its verdict is not in it: that is a matter of seconds."""
    entry, parts = _entries()[id], []
    if id in _figures():
        figure = _figures()[id]
        parts.append(f"<figure>{figure.plot().inline()}<figcaption>{escape(figure.caption)}</figcaption></figure>")
    for name in entry.implementations:
        parts.append(f"<details><summary><code>quoin.{escape(name)}</code></summary>{_source(name)}</details>")
    for recipe in entry.recipes:
        parts.append(f"<p>Train it: <code>quoin train {escape(recipe)}</code></p>")
    if entry.claims:
        parts.append(f"<p>Check it: <code>quoin check {escape(id)}</code></p>")
    return "".join(parts) or f"<p>Nothing to compute: a {escape(entry.kind)}.</p>"


def _source(name: str) -> str:
    try:
        found = find_object(name)
        source = inspect.getsource(inspect.unwrap(found) if callable(found) else found)
    except (AttributeError, OSError, TypeError):
        return "<p>no source of its own</p>"
    return f"<pre>{escape(source[:LONGEST_SOURCE])}</pre>"
