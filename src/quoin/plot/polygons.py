"""Maps of polygons: the plane cut into pieces, side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quoin.display import shown
from quoin.errors import UserError
from quoin.plot.plots import COLORS, INK, WIDTH, Plot, house_style, new_figure, numbers, plain, signed_map

__all__ = ["PolygonMap", "polygon_maps"]

_MOST_OUTLINES = 3000  # beyond this a file of outlines is larger than its image


@shown
@dataclass(frozen=True)
class PolygonMap:
    """Polygons, each a list of corners (k, 2), with a number each (white is zero, blue positive, vermilion negative) or
    a pale colour of its own.

    `points` (n, 2) are plotted on top, in a colour for each of their `classes`.
    """

    polygons: Sequence[np.ndarray]
    values: object = None
    points: object = None
    classes: Sequence[int] = ()


def polygon_maps(maps: Mapping[str, PolygonMap], *, columns: int = 3, title: str = "") -> Plot:
    """One map for each label, `columns` in a row, all on the extent of their own polygons; numbers share one scale."""
    if not maps or columns < 1 or not all(len(each.polygons) for each in maps.values()):
        raise UserError(
            "expected at least one map, one polygon in each and one column, got none; give a mapping of label to "
            "PolygonMap"
        )
    values = {
        label: numbers(each.values, f"values of {label!r}", 1)
        for label, each in maps.items()
        if each.values is not None
    }
    top = max((float(np.abs(each[np.isfinite(each)]).max(initial=0)) for each in values.values()), default=0.0) or 1.0
    columns = min(columns, len(maps))
    rows, cell = -(-len(maps) // columns), WIDTH / columns
    with house_style():
        from matplotlib.collections import PolyCollection

        figure = new_figure(height=(0.4 if title else 0.1) + rows * min(cell, 4.2))
        if title:
            figure.suptitle(plain(title), x=0.02, ha="left", fontweight="bold", fontsize=11)
        for index, (label, each) in enumerate(maps.items()):
            axes = figure.add_subplot(rows, columns, index + 1, aspect="equal")
            axes.set_title(plain(label), fontsize=9, fontweight="normal", pad=4)
            faces = signed_map()(0.5 + 0.3 * values[label] / top) if label in values else _pale(len(each.polygons))
            many = len(each.polygons) > _MOST_OUTLINES
            style = {"facecolors": faces, "edgecolors": INK, "linewidths": 0.08 if many else 0.25, "rasterized": many}
            axes.add_collection(PolyCollection(list(each.polygons), **style))
            if each.points is not None:
                points = numbers(each.points, "points", 2)
                colors = [COLORS[index % len(COLORS)] for index in each.classes] or INK
                axes.scatter(
                    points[:, 0],
                    points[:, 1],
                    s=5,
                    c=colors,
                    linewidths=0.2,
                    edgecolors="white",
                    rasterized=len(points) > _MOST_OUTLINES,
                )
            corners = np.concatenate(list(each.polygons))
            axes.set_xlim(corners[:, 0].min(), corners[:, 0].max())
            axes.set_ylim(corners[:, 1].min(), corners[:, 1].max())
            axes.tick_params(labelsize=7)
        return Plot(figure, title or f"maps of polygons: {', '.join(maps)}")


def _pale(count: int) -> np.ndarray:
    """Colours of which neighbours in the list differ: hues a golden section apart."""
    from matplotlib.colors import hsv_to_rgb

    index = np.arange(count)
    return hsv_to_rgb(np.stack([index * 0.618034 % 1, 0.25 + 0.2 * (index * 0.7548 % 1), np.full(count, 0.97)], axis=1))
