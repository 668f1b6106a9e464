"""The notes' figures, plotted from the library."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.notes.figures.figure import Figure, collect, figure, plot_all, select

__all__ = [
    "Figure",
    "collect",
    "figure",
    "plot_all",
    "select",
]

export_lazily(__name__)
