"""A moment of two normal variables as a sum over all ways to pair its factors, and those pairings as arcs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.lab.parts.claim_forms import form_of
from quoin.lab.parts.normal_pictures import exact_moment
from quoin.lab.parts.picture import Picture
from quoin.notes.claims.gaussian_moments import pairs_are_products
from quoin.prob import MultivariateNormal, pairings, wick

__all__ = ["COVARIANCE", "FACTORS", "draw_pairings", "paired_moments", "printed_sum"]

FACTORS = 6
COVARIANCE = ((1.0, 1.0), (1.0, 2.0))  # of X and Y
NAMES = ("", "X", "Y")


def _covariance() -> Float[Tensor, "2 2"]:
    return torch.tensor(COVARIANCE, dtype=torch.float64)


def paired_moments(indices: Sequence[int], mean: float) -> tuple[float, float]:
    """The sum over pairings of products E[X_i X_j], and the moment itself, where X and Y have this mean."""
    second = _covariance() + mean**2
    return float(wick(second, list(indices))), exact_moment(_covariance(), list(indices), mean)


def printed_sum(indices: Sequence[int], mean: float) -> str:
    """The same sum where a pair contributes E[X_i, X_j], as printed: a pair of means, so that nothing comes of it."""
    joint = MultivariateNormal(torch.full((2,), mean, dtype=torch.float64), _covariance())
    total = torch.zeros(2, dtype=torch.float64)
    for way in pairings(len(indices)):
        product = torch.ones(2, dtype=torch.float64)
        for a, b in way:
            product = product * form_of(pairs_are_products, True)(joint, indices[a], indices[b])
        total = total + product
    return f"({total[0]:.3g}, {total[1]:.3g})"


def draw_pairings(picture: Picture, factors: Sequence[int]) -> None:
    """The control `factors`, cells of nothing, X or Y, and below it every pairing of those that are chosen."""
    board = picture.axes((0, FACTORS), (0, 1), box=(104, 6, 264, 44), bare=True)
    board.paint("factors", factors, 1, FACTORS, roles=("paper", "hand 22%", "hand 48%"))
    picture.text(92, 34, "factors", role="faint", anchor="end")
    for place, level in enumerate(factors):
        board.text(place + 0.5, 0.5, NAMES[level] or "–", "ink" if level else "faint", anchor="middle", dy=5, size=16)
    letters = [NAMES[level] for level in factors if level]
    turn, ways = torch.linspace(0, math.pi, 25), list(pairings(len(letters)))
    across, wide = (3, 206) if len(ways) <= 3 else (5, 126)  # fifteen, of six factors, are the most
    for number, way in enumerate(ways):
        row, column = divmod(number, across)
        box = (8 + wide * column, 62 + 118 * row, wide - 6, 0.9 * (wide - 6))
        axes = picture.axes((-0.7, max(len(letters), 1) - 0.3), (-0.7, 3.0), bare=True, box=box)
        for a, b in way:
            middle, half = (a + b) / 2, abs(b - a) / 2
            axes.line(middle + half * turn.cos(), half * turn.sin(), "model", width=1.8)
        axes.points(range(len(letters)), [0] * len(letters), "ink", size=4)
        for at, letter in enumerate(letters):
            axes.text(at, 0, letter, "faint", anchor="middle", dy=18, size=12)
