"""Universal approximation in one variable by construction: interpolate, count the pieces from what is known of g, write
the network.

Under a regularity assumption on g the error is certified on the whole interval; without one it is the largest on a fine
grid, and reported so. Many variables are in many_inputs.py.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.expressivity.modulus import (
    ContinuityModulus,
    Curvature,
    Function,
    Lipschitz,
    Regularity,
    check_interval,
    check_regularity,
    evaluate_on_grid,
)
from quoin.expressivity.piecewise import PiecewiseLinear, interpolant, to_relu_network

__all__ = ["Approximation", "approximate_1d"]

_EPS = torch.finfo(torch.float64).eps
_MOST_PIECES = 2**17
_MOST_UNCERTIFIED = 2**14  # pieces where nothing is assumed of g
_POINTS_PER_PIECE = 16  # points of the measuring grid in each piece


@shown
@dataclass(frozen=True)
class Approximation:
    """A network close to g, and how close: |g - network| <= `error` on the whole interval if `certified`, else only on
    the grid.
    """

    network: nn.Sequential
    function: PiecewiseLinear  # what the network computes
    error: float
    certified: bool
    measured: float  # the largest |g - function| on the grid

    @property
    def num_units(self) -> int:
        return self.network[0].out_features  # type: ignore[return-value]

    def __str__(self) -> str:
        found = f"{self.measured:.3g} measured"
        if self.certified:
            return f"{self.num_units} hidden units; error at most {self.error:.3g}, certified; {found}"
        unknown = "an estimate of the error: nothing is known of g between the grid points"
        return f"{self.num_units} hidden units; {found}, {unknown}"


def approximate_1d(
    g: Function,
    eps: float,
    interval: tuple[float, float],
    *,
    lipschitz: float | None = None,
    modulus: Callable[[float], float] | None = None,
    curvature: float | None = None,
) -> Approximation:
    """A ReLU network of one hidden layer within eps of g on the interval: g interpolated at N + 1 equally spaced
    points.

    One regularity assumption certifies the error: `lipschitz` K gives K h / 2, `modulus` omega gives omega(h),
    `curvature` M gives M h² / 8, for pieces of width h. The assumption is checked on a grid, and a
    network whose rounding in float64 could exceed what is left of eps is an error. With none of the three N doubles
    until the error on the grid is at most eps.

    Args:
        g: Takes a float64 tensor of points to its values there.
        lipschitz: K with |g(x) - g(y)| <= K |x - y|.
        modulus: omega with |g(x) - g(y)| <= omega(|x - y|).
        curvature: M with |g''| <= M.

    >>> print(approximate_1d(torch.sin, 0.01, (0.0, 3.0), lipschitz=1.0))
    151 hidden units; error at most 0.00993, certified; 4.93e-05 measured
    """
    low, high = check_interval(interval)
    if not (eps > 0 and math.isfinite(eps)):
        raise UserError(f"expected an error eps above 0, got {eps}; only g itself is nearer than every eps")
    regularity = _regularity(lipschitz, modulus, curvature)
    if regularity is None:
        return _estimated(g, eps, low, high)
    # A thousandth is left for rounding.
    pieces = _pieces_needed(lambda count: regularity.error((high - low) / count), 0.999 * eps)
    function = _interpolated(g, low, high, pieces)
    x = torch.linspace(low, high, _POINTS_PER_PIECE * pieces + 1, dtype=torch.float64)
    values = evaluate_on_grid(g, x)
    check_regularity(regularity, x, values)
    error = regularity.error((high - low) / pieces) + _rounding(function, low, high)
    if error > eps:
        raise UserError(
            f"expected an eps that float64 can certify, got {eps:.3g} where rounding leaves {error:.3g}; ask for a "
            "larger eps"
        )
    return Approximation(to_relu_network(function), function, error, True, float((values - function(x)).abs().max()))


def _regularity(
    lipschitz: float | None, modulus: Callable[[float], float] | None, curvature: float | None
) -> Regularity | None:
    given = [
        name
        for name, each in (("lipschitz", lipschitz), ("modulus", modulus), ("curvature", curvature))
        if each is not None
    ]
    if len(given) > 1:
        raise UserError(
            f"expected one regularity assumption on g, got {' and '.join(given)}; keep the one that is sharper"
        )
    for name, constant in (("lipschitz", lipschitz), ("curvature", curvature)):
        if constant is not None and not (constant >= 0 and math.isfinite(constant)):
            raise UserError(
                f"expected {name} to be a finite number of at least 0, got {constant}; give a bound that holds for g"
            )
    if lipschitz is not None:
        return Lipschitz(lipschitz)
    if curvature is not None:
        return Curvature(curvature)
    return None if modulus is None else ContinuityModulus(modulus)


def _pieces_needed(error: Callable[[int], float], goal: float) -> int:
    """The least number of pieces with error(number) <= goal, for an error that does not grow with it."""
    high = 1
    while error(high) > goal:
        high *= 2
        if high > _MOST_PIECES:
            raise UserError(
                f"expected an eps within reach of {_MOST_PIECES} pieces, got one that needs more; ask for a larger eps"
            )
    low = high // 2  # is too few, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if error(middle) <= goal else (middle, high)
    return high


def _estimated(g: Function, eps: float, low: float, high: float) -> Approximation:
    pieces, measured = 1, math.inf
    while pieces <= _MOST_UNCERTIFIED:
        function = _interpolated(g, low, high, pieces)
        # Not only between the points of before: 4096 points see what a few wide pieces would miss.
        x = torch.linspace(low, high, max(_POINTS_PER_PIECE * pieces, 4096) + 1, dtype=torch.float64)
        measured = float((evaluate_on_grid(g, x) - function(x)).abs().max())
        if measured <= eps:
            return Approximation(to_relu_network(function), function, measured, False, measured)
        pieces *= 2
    raise UserError(
        f"expected a g that {_MOST_UNCERTIFIED} pieces come within {eps:.3g} of, got {measured:.3g}; is g continuous?"
    )


def _interpolated(g: Function, low: float, high: float, pieces: int) -> PiecewiseLinear:
    knots = torch.linspace(low, high, pieces + 1, dtype=torch.float64)
    if not (knots.diff() > 0).all():
        raise UserError(
            f"expected an interval wide enough for {pieces} pieces in float64, got ({low}, {high}); shift or widen it"
        )
    return interpolant(knots, evaluate_on_grid(g, knots))


def _rounding(f: PiecewiseLinear, low: float, high: float) -> float:
    """How far float64 can take `to_relu_network(f)` from f on the interval: that of a dot product, and of the slopes'
    differences."""
    radius = torch.maximum(high - f.breakpoints, f.breakpoints - low)
    sizes = (f.slopes[1:].abs() + f.slopes[:-1].abs()) * radius
    outside = float(f.slopes[0].abs()) * (high - low) + float(f(torch.tensor(low, dtype=torch.float64)).abs())
    return _EPS * ((f.num_pieces + 8) * (float((f.jumps.abs() * radius).sum()) + 2 * outside) + 4 * float(sizes.sum()))
