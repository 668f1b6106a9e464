"""Points of the plane, coloured by the component they belong to, and normal distributions as ellipses over them."""

from typing import TYPE_CHECKING

import numpy as np

from quoin.errors import UserError
from quoin.plot.plots import COLORS, INK, Plot, house_style, new_figure, numbers, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ellipses", "put_ellipses"]

_MOST_POINTS = 2000  # more only hide each other
_DEVIATIONS = (1.0, 2.0)


def ellipses(
    points: object,
    labels: object,
    means: object,
    covariances: object,
    *,
    title: str = "",
    reference: tuple[object, object] | None = None,
    reference_name: str = "true distribution",
) -> Plot:
    """Points (n, 2) in the colours of their labels (n,), and each N(μ_i, Σ_i) as the ellipses of one and two
    deviations.

    Args:
        labels: Which of the distributions each point belongs to, from 0.
        reference: Means and covariances of other distributions, plotted dashed.
        reference_name: What the legend calls them.
    """
    x, which = numbers(points, "points", 2), numbers(labels, "labels", 1).astype(int)
    if x.shape[1] != 2 or len(x) != len(which):
        raise UserError(
            f"expected points (n, 2) and a label for each, got {x.shape} and {which.shape}; plot two coordinates"
        )
    with house_style():
        from matplotlib.lines import Line2D

        figure = new_figure(height=5.2)
        axes = figure.add_subplot(title=plain(title), aspect="equal")
        shown = np.linspace(0, len(x) - 1, min(len(x), _MOST_POINTS)).astype(int)
        colors = [COLORS[label % len(COLORS)] for label in which[shown]]
        axes.scatter(*x[shown].T, s=7, c=colors, alpha=0.45, linewidths=0, rasterized=len(shown) > 500)
        put_ellipses(axes, means, covariances)
        if reference is not None:
            put_ellipses(axes, *reference, color=INK, dashed=True)
            keys = [Line2D([], [], color=COLORS[0]), Line2D([], [], color=INK, linewidth=1, linestyle=(0, (4, 3)))]
            axes.legend(keys, ["fitted", plain(reference_name)], loc="best", fontsize=8)
        return Plot(figure, title or "points and the ellipses of one and two deviations")


def put_ellipses(
    axes: "Axes", means: object, covariances: object, *, color: str | None = None, dashed: bool = False
) -> None:
    """The curves (x - μ)^T Σ^-1 (x - μ) = 1 and 4 of each distribution on axes that are there, in the colours of the
    components or in one.
    """
    centers, matrices = numbers(means, "means", 2), numbers(covariances, "covariances", 3)
    if centers.shape[1] != 2 or matrices.shape != (len(centers), 2, 2):
        raise UserError(
            f"expected means (k, 2) and covariances (k, 2, 2), got {centers.shape} and {matrices.shape}; "
            "plot two coordinates"
        )
    angles = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    for i, (center, covariance) in enumerate(zip(centers, matrices)):
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(values.clip(min=0))
        for deviations in _DEVIATIONS:
            curve = center[:, None] + deviations * root @ circle
            width, style = (1.0, (0, (4, 3))) if dashed else (2.0 / deviations, "-")
            axes.plot(*curve, color=color or COLORS[i % len(COLORS)], linewidth=width, linestyle=style)
        axes.plot(*center, marker="+", markersize=8, color=color or COLORS[i % len(COLORS)])
