"""Points in the plane: distributions side by side, or groups by colour."""

import math
from collections.abc import Mapping

import numpy as np

from quoin.errors import UserError, format_value
from quoin.plot.plots import COLORS, WIDTH, Plot, house_style, new_figure, numbers, plain

__all__ = ["scatter_by_class", "scatter_panels"]

_MANY = 2000  # points; more are plotted as an image, or the file would be large
_LEGEND_ROWS, _LEGEND_COLUMNS = 16, 4
_MARKERS = "o^sDv"  # where there are more groups than colours


def scatter_panels(clouds: Mapping[str, object], *, title: str = "") -> Plot:  # each (n, 2)
    """Each cloud on axes of its own, side by side on one scale: data beside samples, or samples as time goes on.

    The window is that of the first and the last cloud: what one between them does far outside is cut off.

    Args:
        clouds: Label to points (n, 2).
    """
    points = _checked(clouds)
    columns = min(len(points), 4)
    rows = -(-len(points) // columns)
    low, high = _window([*points.values()][:: max(1, len(points) - 1)])
    with house_style():
        wide, high_over_wide = max(columns, 2), (high - low)[1] / (high - low)[0]
        figure = new_figure(
            height=min(9.0, (0.4 if title else 0.1) + rows * (0.6 + (WIDTH / wide - 0.5) * high_over_wide))
        )
        if title:
            figure.suptitle(plain(title), x=0.01, ha="left", fontsize=11, fontweight="bold")
        for index, (label, each) in enumerate(points.items()):
            axes = figure.add_subplot(rows, wide, 1 + index // columns * wide + index % columns, aspect="equal")
            axes.set_title(plain(label), fontsize=9, fontweight="normal", loc="center", pad=4)
            axes.set_xlim(low[0], high[0])
            axes.set_ylim(low[1], high[1])
            axes.tick_params(labelsize=7)
            _mark(axes, each, COLORS[0], "o", size=5)
        return Plot(figure, title or f"points: {', '.join(points)}")


def scatter_by_class(
    groups: Mapping[str, object], *, title: str = "", x_label: str = "", y_label: str = ""
) -> Plot:  # each (n, 2)
    """All groups on the same axes, each in its colour: where a model puts the examples of each class.

    Args:
        groups: Label to points (n, 2).
    """
    points = _checked(groups)
    low, high = _window(list(points.values()))
    with house_style():
        figure = new_figure(height=4.8)
        axes = figure.add_subplot(title=plain(title), xlabel=plain(x_label), ylabel=plain(y_label), aspect="equal")
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])
        for index, (label, each) in enumerate(points.items()):
            marker = _MARKERS[index // len(COLORS) % len(_MARKERS)]
            _mark(axes, each, COLORS[index % len(COLORS)], marker, size=12, label=plain(label))
        columns = math.ceil(len(points) / _LEGEND_ROWS)
        if 1 < len(points) <= _LEGEND_ROWS * _LEGEND_COLUMNS:  # a larger legend would leave no room for the points
            axes.legend(
                loc="upper left",
                bbox_to_anchor=(1.01, 1.0),
                ncols=columns,
                fontsize=8,
                markerscale=1.3,
                handletextpad=0.2,
                columnspacing=0.8,
            )
        return Plot(figure, title or f"points: {', '.join(points)}")


def _checked(clouds: Mapping[str, object]) -> dict[str, np.ndarray]:
    if not clouds:
        raise UserError("expected at least one cloud of points, got none; give a mapping of label to points")
    points = {label: numbers(each, f"the points of {format_value(label)}", 2) for label, each in clouds.items()}
    for label, each in points.items():
        if each.shape[1] != 2:
            raise UserError(
                f"expected points of 2 numbers for {format_value(label)}, got shape {each.shape}; choose or "
                "project to two"
            )
    return points


def _window(clouds: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The lower left and upper right corners that hold all finite points of these clouds."""
    every = np.concatenate(clouds)
    every = every[np.isfinite(every).all(axis=1)]
    if not len(every):
        return np.zeros(2), np.ones(2)
    low, high = every.min(axis=0), every.max(axis=0)
    margin = 0.05 * float((high - low).max()) or 1.0
    return low - margin, high + margin


def _mark(axes, points: np.ndarray, color: str, marker: str, *, size: float, label: str | None = None) -> None:
    alpha = 0.8 if len(points) <= 500 else 0.4
    style = {"s": size, "color": color, "marker": marker, "alpha": alpha, "linewidths": 0, "label": label}
    axes.scatter(points[:, 0], points[:, 1], rasterized=len(points) > _MANY, **style)
