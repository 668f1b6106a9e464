"""What the panels of a report give to `plot`: the numbers as they are plotted, without a plot."""

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy
import pytest

from quoin import plot
from quoin.plot import Panel

KINDS = ("bars", "curves", "ellipses", "heatmap", "image_grid", "image_table", "reliability_diagram", "roc_curves")
KINDS += ("scatter", "scatter_by_class", "scatter_panels", "score_table", "shaded_text", "feature_map_rows")


class Shown(NamedTuple):
    kind: str
    caption: str
    values: tuple[Any, ...]
    how: dict[str, Any]

    @property
    def lines(self) -> dict[str, tuple[Any, Any]]:
        """Curves as arrays."""
        return {name: (numpy.asarray(x, float), numpy.asarray(y, float)) for name, (x, y) in self.values[0].items()}


def shown(panels: Iterable[Panel]) -> dict[str, Shown]:
    """By title what each panel plots; a panel that plots by itself is not among them."""
    calls: list[tuple[str, Any, Any]] = []
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for kind in KINDS:
            patch.setattr(plot, kind, lambda *values, kind=kind, **how: calls.append((kind, values, how)))
        for panel in panels:
            calls.clear()
            if isinstance(panel.content, functools.partial):  # made before this patch
                calls.append((panel.content.func.__name__, panel.content.args, panel.content.keywords))
            elif not isinstance(panel.content, plot.Plot):
                panel.content()
            if calls:
                kind, values, how = calls[0]
                found[panel.title] = Shown(kind, panel.caption, values, how)
    return found


def trained(task: Any, epochs: int = 1) -> Any:
    """The task after all steps of so many epochs."""
    for _ in range(epochs):
        for rows in task.batches:
            task.step(rows)
    return task
