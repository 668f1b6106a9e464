"""The notes' figures, redrawn from the library."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.notes.figures.figure import Figure, collect, draw_all, figure, select

__all__ = [
    "Figure",
    "collect",
    "draw_all",
    "figure",
    "select",
]

export_lazily(__name__)
