"""The lecture notes: the map of their ids, each statement as a claim that can fail, each figure plotted."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.notes.map import Entry, areas, choose, declared, entries, index, is_id, known, select, titles
    from quoin.notes.search import Hit, search

__all__ = [
    "Entry",
    "Hit",
    "areas",
    "choose",
    "declared",
    "entries",
    "index",
    "is_id",
    "known",
    "search",
    "select",
    "titles",
]

export_lazily(__name__)
