"""Curves of the reader's own: drawn by hand, with known bounds of slope and curvature, or the rows of a file."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.expressivity import PiecewiseLinear, interpolant
from quoin.lab.parts.own_table import read_table

__all__ = ["DrawnCurve", "OwnCurve", "own_curve"]

MOST_POINTS = 1000


class DrawnCurve:
    """g(x) = sum_k a_k cos(k pi x) on [0, 1] through n heights at (j + 1/2) / n.

    Sums of |a_k| times the largest slope and curvature of each cosine bound those of g: the assumptions under which
    `quoin.expressivity.approximate_1d` certifies a network.

    >>> curve = DrawnCurve([0.0, 1.0, 0.0, 1.0])
    >>> [round(float(each), 6) + 0.0 for each in curve(torch.tensor([0.125, 0.375, 0.625, 0.875]).double())]
    [0.0, 1.0, 0.0, 1.0]
    """

    def __init__(self, heights: Sequence[float]):
        n = len(heights)
        frequency = math.pi * torch.arange(n, dtype=torch.float64)
        places = (torch.arange(n, dtype=torch.float64) + 0.5) / n
        basis = (places.unsqueeze(1) * frequency).cos()  # its columns are orthogonal, of squared length n / 2, once n
        self.frequency = frequency
        self.amplitude = (torch.tensor(heights, dtype=torch.float64) @ basis) * 2 / n
        self.amplitude[0] /= 2

    def __call__(self, x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return (x.unsqueeze(-1) * self.frequency).cos() @ self.amplitude

    @property
    def lipschitz(self) -> float:
        """A bound of |g'|, never 0."""
        return float(self.amplitude.abs() @ self.frequency) + 1e-9

    @property
    def curvature(self) -> float:
        """A bound of |g''|, never 0."""
        return float(self.amplitude.abs() @ self.frequency.square()) + 1e-9


class OwnCurve(NamedTuple):
    """The curve straight between rows, over [0, 1] in place of `span`, and its heights there."""

    names: tuple[str, ...]
    curve: PiecewiseLinear
    span: tuple[float, float]
    heights: Float[Tensor, " point"]


@functools.lru_cache(maxsize=4)
def own_curve(table: bytes | None) -> OwnCurve:
    """The first two columns of a CSV file, or an example of ours; where an x comes twice, its mean height."""
    x = torch.linspace(0, 1, 51, dtype=torch.float64)
    names, rows = ("x", "y"), torch.stack([x, (7 * x).sin() / (1 + 2 * x)], dim=1)
    if table is not None:
        names, rows = read_table(table).first_numbers(2)
    rows = rows[:MOST_POINTS].double()
    x, which = rows[:, 0].unique(return_inverse=True)
    if len(x) < 3:
        raise UserError(f"expected at least 3 different values of {names[0]}, got {len(x)}; choose another file")
    heights = torch.zeros_like(x).index_add(0, which, rows[:, 1]) / which.bincount()
    return OwnCurve(names, interpolant((x - x[0]) / (x[-1] - x[0]), heights), (float(x[0]), float(x[-1])), heights)
