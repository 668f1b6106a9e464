"""A function of the plane as bands of height, and a descent on it: the path, and the loss by step."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from quoin.errors import UserError
from quoin.lab.parts.picture import Axes, Picture
from quoin.optim import Adam, GradientDescent, Momentum, Newton, Trajectory, UpdateRule, descend

__all__ = ["RULES", "arrived", "descent_until", "draw_bands", "draw_descent", "rule_of"]

RULES = ("gradient descent", "momentum 0.9", "Adam", "Newton")
STEPS, NEWTON_STEPS, STILL = 150, 12, 1e-9  # a gradient shorter than STILL counts as none
_BANDS, _ROWS, _COLUMNS = 14, 90, 120


def rule_of(name: str, f: Callable[[Tensor], Tensor], lr: float) -> tuple[UpdateRule[Any], int]:
    """The update rule of this name, and how many steps of it a page shows; Newton has no learning rate here."""
    rules: dict[str, UpdateRule[Any]] = {
        "gradient descent": GradientDescent(lr),
        "momentum 0.9": Momentum(lr, 0.9),
        "Adam": Adam(lr),
        "Newton": Newton(f),
    }
    return rules[name], NEWTON_STEPS if name == "Newton" else STEPS


def descent_until(
    f: Callable[[Tensor], Tensor], start: tuple[float, float], rule: UpdateRule[Any], num_steps: int, radius: float
) -> Trajectory:
    """`descend` for `num_steps`, or for as many as stay within `radius` and are finite: the most, by halving."""
    x0 = torch.tensor(start, dtype=torch.float64)

    def run(count: int) -> Trajectory | None:
        try:
            return descend(f, x0, rule, count, domain=lambda x: bool(x.norm() <= radius))
        except UserError:
            return None

    if found := run(num_steps):
        return found
    low, high = 0, num_steps
    best = descend(f, x0, rule, 0)  # where even the start has no value its own line says so
    while high - low > 1:
        middle = (low + high) // 2
        found = run(middle)
        low, high, best = (middle, high, found) if found else (low, middle, best)
    return best


def arrived(path: Trajectory) -> int | None:
    """The first step at which the gradient is nothing, if there is one."""
    still = (path.gradient_norms <= STILL).nonzero()
    return int(still[0]) if len(still) else None


def draw_bands(axes: Axes, f: Callable[[Tensor], Tensor]) -> None:
    """Bands of equal area from low, paper, to high, grey: so that a valley shows whatever its depth."""
    axes.image(_bands(f, axes.x, axes.y))


@functools.lru_cache(maxsize=16)
def _bands(f: Callable[[Tensor], Tensor], x: tuple[float, float], y: tuple[float, float]) -> np.ndarray:
    across = torch.linspace(*x, _COLUMNS, dtype=torch.float64)
    down = torch.linspace(y[1], y[0], _ROWS, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(across, down, indexing="xy"), dim=-1)
    heights = f(grid).detach().numpy()
    edges = np.nanquantile(np.where(np.isfinite(heights), heights, np.nan), np.linspace(0, 1, _BANDS + 1)[1:-1])
    return np.searchsorted(edges, np.nan_to_num(heights, nan=np.inf)) / _BANDS * 0.5


def draw_descent(
    picture: Picture,
    f: Callable[[Tensor], Tensor],
    x: tuple[float, float],
    y: tuple[float, float],
    path: Trajectory,
) -> None:
    """The landscape with the path on it, left, and the loss by step, right; the handle `start` is at its beginning."""
    axes = picture.axes(x, y, box=(36, 14, 380, 360))
    draw_bands(axes, f)
    points = path.points
    axes.line(points[:, 0], points[:, 1], "model", width=1.8)
    axes.points(points[:, 0], points[:, 1], "model", size=2.6)
    axes.points(points[-1:, 0], points[-1:, 1], "change", size=6, labels=["here it is after the last step"])
    axes.handle("start", *points[0].tolist(), label="start")
    low, high = float(path.values.min()), float(path.values.max())
    log = low >= 0 and high > 0
    floor = max(low, 1e-16 * high, 1e-300)
    span = (floor / 2, 2 * high) if log else (low - 0.05 * (high - low) - 1e-9, high + 0.05 * (high - low) + 1e-9)
    if log:  # whole powers of ten, so that two stand at the axis
        span = 10.0 ** math.floor(math.log10(span[0])), 10.0 ** math.ceil(math.log10(span[1]))
    loss = picture.axes(
        (0, max(len(path.values) - 1, 1)), span, box=(478, 36, 150, 300), y_log=log, title="loss", x_label="step"
    )
    loss.line(range(len(path.values)), path.values.clamp_min(floor) if log else path.values, "model")
