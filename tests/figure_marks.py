"""What a figure of the notes shows, read off its plot: its panels, its curves by their labels, its words."""

import functools
from typing import Any

import numpy as np

from quoin.notes import figures
from quoin.plot import Plot

__all__ = ["collection", "curve", "drawn", "lengths", "line", "near", "panel", "panels", "points", "xy"]


@functools.cache
def drawn(name: str, **arguments: Any) -> Plot:
    """The figure of that name, plotted once for all tests."""
    return getattr(figures, name)(**arguments) if arguments else getattr(figures, name).plot()


def panels(name: str, **arguments: Any) -> list[Any]:
    """Its axes, whose artists matplotlib types only loosely."""
    return list(drawn(name, **arguments).figure.axes)


def panel(name: str, **arguments: Any) -> Any:
    """The one panel of a figure."""
    (axes,) = panels(name, **arguments)
    return axes


def line(axes: Any, label: str) -> Any:
    """The one curve whose label begins so."""
    (found,) = (each for each in axes.lines if str(each.get_label()).startswith(label))
    return found


def xy(mark: Any) -> np.ndarray:
    """The points of a curve, (2, n)."""
    return np.array([np.asarray(each, dtype=float) for each in mark.get_data()])


def curve(axes: Any, label: str) -> np.ndarray:
    return xy(line(axes, label))


def collection(axes: Any, kind: str) -> list[Any]:
    """The collections of a kind, such as PathCollection: what `scatter` leaves."""
    return [each for each in axes.collections if kind in type(each).__name__]


def points(axes: Any, index: int = 0) -> np.ndarray:
    """The points of a scatter, (2, n)."""
    return np.asarray(collection(axes, "PathCollection")[index].get_offsets(), dtype=float).T


def lengths(axes: Any) -> np.ndarray:
    """How high bars are."""
    return np.array([each.get_height() for each in axes.patches])


def near(found: Any, expected: Any, tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(np.asarray(found, dtype=float), np.asarray(expected, dtype=float), tolerance, tolerance)
