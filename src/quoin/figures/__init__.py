"""The notes' figures, redrawn from the library."""

from quoin.figures.figure import Figure, collect, draw_all, figure, select

__all__ = ["Figure", "collect", "draw_all", "figure", "select"]
