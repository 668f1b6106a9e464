"""What the lecture notes say: the map of their ids, each sentence as a claim that can fail, each figure redrawn."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.notes.map import Entry, areas, choose, declared, entries, known, select, titles, unknown_ids

__all__ = [
    "Entry",
    "areas",
    "choose",
    "declared",
    "entries",
    "known",
    "select",
    "titles",
    "unknown_ids",
]

export_lazily(__name__)
