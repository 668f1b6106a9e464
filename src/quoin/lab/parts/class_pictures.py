"""Classes in the plane: which one a set of linear scores puts first where, and the points of each."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.lab.parts.class_problems import costs_of, decide, patients, stated
from quoin.lab.parts.picture import Axes, Picture
from quoin.metrics import calibration_curve, confusion_matrix

__all__ = ["CLASS_SHAPES", "argmax_region", "draw_classes", "draw_decision", "draw_regions_of_scores"]

CLASS_SHAPES = ("circle", "triangle", "square", "diamond", "cross", "ring")
Corner = tuple[float, float]


def argmax_region(
    weight: Float[Tensor, "classes 2"], bias: Float[Tensor, " classes"], index: int, corners: Sequence[Corner]
) -> list[Corner]:
    """The part of a convex polygon where score `index` of W x + b is the largest; empty where it never is."""
    inside = list(corners)
    for other in range(len(bias)):
        if other == index or not inside:
            continue
        (a, b), c = (weight[index] - weight[other]).tolist(), float(bias[index] - bias[other])
        leads = [a * x + b * y + c for x, y in inside]
        kept: list[Corner] = []
        for (start, lead), (end, then) in zip(zip(inside, leads), zip(inside[1:] + inside[:1], leads[1:] + leads[:1])):
            if lead > 0:
                kept.append(start)
            if lead * then < 0:
                part = lead / (lead - then)
                kept.append((start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1])))
        inside = kept
    return inside


def draw_regions_of_scores(axes: Axes, weight: Float[Tensor, "classes 2"], bias: Float[Tensor, " classes"]) -> None:
    """Where which of the scores W x + b is the largest, in the classes' colours."""
    (left, right), (low, high) = axes.x, axes.y
    corners = [(left, low), (right, low), (right, high), (left, high)]
    regions = [argmax_region(weight, bias, index, corners) for index in range(len(bias))]
    fills = [f"series-{index % 7 + 1} 22%" for index in range(len(regions))]
    labels = [f"class {index + 1} has the largest score" for index in range(len(regions))]
    shown = [index for index, region in enumerate(regions) if len(region) > 2]
    axes.polygons(
        [regions[index] for index in shown],
        [fills[index] for index in shown],
        edge="faint",
        labels=[labels[index] for index in shown],
    )


def draw_classes(
    axes: Axes, points: Float[Tensor, "n 2"], labels: Int[Tensor, " n"], *, size: float = 4.0, role: str = ""
) -> None:
    """Points of classes 0, 1, ..., each with its colour (or all in `role`) and shape."""
    for index in sorted(set(labels.tolist())):
        chosen = points[labels == index]
        axes.points(
            chosen[:, 0],
            chosen[:, 1],
            role or f"series-{index % 7 + 1}",
            size=size,
            shape=CLASS_SHAPES[index % len(CLASS_SHAPES)],
        )


def draw_decision(picture: Picture, threshold: float, miss: float, sharp: bool) -> None:
    """Two classes of one measurement, the cost of each threshold, the confusions, and how honest the numbers are."""
    model, x, labels = patients()
    ill = stated(x, sharp)[:, 1].contiguous()
    treated = decide(ill, threshold)
    grid = torch.linspace(-3.5, 5.5, 181, dtype=torch.float64)
    densities = picture.axes((-3.5, 5.5), (0, 0.22), box=(40, 28, 330, 130), title="well and ill", y_ticks=False)
    above = decide(stated(grid, sharp)[:, 1], threshold)
    cut = float(grid[int(above.long().argmax())]) if bool(above.any()) else 5.5
    densities.polygon([(cut, 0), (5.5, 0), (5.5, 0.22), (cut, 0.22)], "model 15%", edge="none", label="treated")
    densities.text(5.4, 0.2, "treated", "model", anchor="end")
    for density, role in zip(model.log_joint(grid.unsqueeze(1)).exp().unbind(dim=1), ("ink", "change")):
        densities.line(grid, density, role)
    thresholds = torch.linspace(0.01, 0.99, 50).tolist()
    costs = [costs_of(decide(ill, each), labels, miss) for each in thresholds]
    now = costs_of(treated, labels, miss)
    top = 1.1 * max(*costs, now)
    price = picture.axes(
        (0, 1), (0, top), box=(40, 216, 330, 150), title="cost by threshold", x_label="threshold on P(ill | x): drag"
    )
    price.line(thresholds, costs, "model")
    price.line([1 / (1 + miss)] * 2, [0, top], "ink", dashed=True, width=1.2, label="1/(1 + cost)")
    price.points([threshold], [now], "model", size=6)
    price.handle("threshold", threshold, 0.0, label="threshold", along="x")
    table = picture.axes((0, 1), (0, 1), box=(460, 28, 160, 110), title="true (rows), said", bare=True)
    counts, names = confusion_matrix(treated.long(), labels, 2), ("well", "ill")
    table.cells(counts, numbers=True, rows=names, columns=names)
    honest = calibration_curve(ill, labels)
    plot = picture.axes((0, 1), (0, 1), box=(450, 216, 170, 150), title="reliability", x_label="stated P(ill)")
    plot.line([0, 1], [0, 1], "ink", dashed=True, width=1.2)
    plot.line(honest.confidence, honest.frequency, "model")
    plot.points(honest.confidence, honest.frequency, "model", size=4)
