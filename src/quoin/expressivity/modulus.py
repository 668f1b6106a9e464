"""How much a function of one variable can change over a distance: measured on a grid, or assumed by the caller and
checked.

A regularity assumption certifies the error of an interpolation; three kinds stand here, each with its bound on that
error. What a grid shows of a function is never more than an estimate, for between its points anything may happen.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Real
from torch import Tensor
from torch.nn import functional

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor import as_floating

__all__ = [
    "ContinuityModulus",
    "Curvature",
    "Lipschitz",
    "Regularity",
    "check_regularity",
    "modulus_of_continuity",
    "modulus_of_continuity_definition",
]

Function = Callable[[Tensor], Tensor]  # (n,) -> (n,)

_EPS = torch.finfo(torch.float64).eps


def modulus_of_continuity_definition(
    x: Real[Tensor, "n"], values: Real[Tensor, "n"], distance: float
) -> Float[Tensor, ""]:
    """max |g(x) - g(y)| over all pairs of the given points with |x - y| <= delta."""
    x, values = as_floating(x), as_floating(values)
    near = (x[:, None] - x).abs() <= distance
    return ((values[:, None] - values).abs() * near).max()


def modulus_of_continuity(
    g: Function, interval: tuple[float, float], distances: Sequence[float], *, num_points: int = 4097
) -> Float[Tensor, "distances"]:
    """omega(delta) = sup {|g(x) - g(y)| : |x - y| <= delta} for each distance, taken over equally spaced points, and so
    from below.

    A continuous g on a closed interval is uniformly continuous: omega(delta) goes to 0 with delta.

    Args:
        g: Takes a float64 tensor of points to its values there.
        distances: delta, from 0 up.
        num_points: Of the grid on the interval.

    >>> modulus_of_continuity(torch.sqrt, (0.0, 1.0), [0.25, 0.0625]).tolist()
    [0.5, 0.25]

    Notes: D1.1-9.
    """
    low, high = check_interval(interval)
    x = torch.linspace(low, high, num_points, dtype=torch.float64)
    values, spacing = evaluate_on_grid(g, x), (high - low) / (num_points - 1)
    found = []
    for distance in distances:
        # The widest pair within a window is its largest value less its least.
        window_size = min(num_points, 1 + math.floor(distance / spacing * (1 + 4 * _EPS))) if distance >= 0 else 0
        if not window_size:
            raise UserError(f"expected distances of at least 0, got {distance}; a modulus is asked for distances")
        largest, least = (functional.max_pool1d(sign * values[None, None], window_size, stride=1) for sign in (1, -1))
        found.append((largest + least).max())
    return torch.stack(found)


@runtime_checkable
class Regularity(Protocol):
    """A regularity assumption on g."""

    def error(self, spacing: float) -> float:
        """How far interpolation between points `spacing` apart can be from any g of this regularity."""
        ...

    def violation(self, x: Real[Tensor, "n"], values: Real[Tensor, "n"]) -> str:
        """The first of equally spaced points that violates it, in words; empty where none does."""
        ...


@shown
class Lipschitz(NamedTuple):
    """|g(x) - g(y)| <= K |x - y|.

    Between neighbours L(x) = (1 - s) g(t) + s g(t + h) at x = t + s h, so |g - L| <= (1 - s) K s h + s K (1 - s) h <= K
    h / 2.
    """

    constant: float

    def error(self, spacing: float) -> float:
        return self.constant * spacing / 2

    def violation(self, x: Real[Tensor, "n"], values: Real[Tensor, "n"]) -> str:
        # If neighbours satisfy it, all pairs do.
        return _first_violation(x, values, [1], lambda distance: self.constant * distance)


@shown
class ContinuityModulus(NamedTuple):
    """|g(x) - g(y)| <= omega(|x - y|), omega not decreasing; L(x) lies between two values each within omega(h), so |g -
    L| <= omega(h)."""

    function: Callable[[float], float]

    def error(self, spacing: float) -> float:
        allowed = float(self.function(spacing))
        if not allowed >= 0:
            raise UserError(
                f"expected a modulus of at least 0, got {allowed} at distance {spacing:.3g}; give omega(distance)"
            )
        return allowed

    def violation(self, x: Real[Tensor, "n"], values: Real[Tensor, "n"]) -> str:
        lags = [2**power for power in range(len(x).bit_length()) if 2**power < len(x)]
        return _first_violation(x, values, lags, self.error)


@shown
class Curvature(NamedTuple):
    """|g''| <= M, for which |g - L| <= M h² / 8."""

    constant: float

    def error(self, spacing: float) -> float:
        return self.constant * spacing**2 / 8

    def violation(self, x: Real[Tensor, "n"], values: Real[Tensor, "n"]) -> str:
        x, values = as_floating(x), as_floating(values)
        spacing = float(x[1] - x[0])
        second_difference = (values[2:] - 2 * values[1:-1] + values[:-2]).abs()
        wrong = second_difference > self.constant * spacing**2 * (1 + 1e-6) + 64 * _EPS * (
            values.abs().max() + self.constant * x.abs().max() * spacing
        )
        if not wrong.any():
            return ""
        at = int(wrong.int().argmax())
        found = float(second_difference[at]) / spacing**2
        return f"a second derivative of about {found:.6g} > {self.constant:.6g} at x = {float(x[at + 1]):.6g}"


def check_regularity(regularity: Regularity, x: Real[Tensor, "n"], values: Real[Tensor, "n"]) -> None:
    """Raise an error where g violates it on equally spaced points; an assumption that none of them violates may still
    be false.

    Args:
        regularity: `Lipschitz`, `ContinuityModulus` or `Curvature`.
        values: g at each x.
    """
    if violation := regularity.violation(x, values):
        raise UserError(f"expected g to have the regularity assumed, got {violation}; state a larger bound")


def check_interval(interval: tuple[float, float]) -> tuple[float, float]:
    low, high = (float(end) for end in interval)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UserError(
            f"expected an interval (low, high) of finite numbers with low < high, got ({low}, {high}); "
            "give one like (0.0, 1.0)"
        )
    return low, high


def evaluate_on_grid(g: Function, x: Real[Tensor, "n ..."]) -> Float[Tensor, "n"]:
    """g(x) in float64; an error where it is no function of points to finite numbers."""
    values = g(x)
    if not isinstance(values, Tensor) or values.shape != x.shape[:1]:
        got = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise UserError(
            f"expected g to give one number for each of {len(x)} points, got {got}; let g work on a tensor of points"
        )
    if not values.isfinite().all():
        at = int((~values.isfinite()).int().argmax())
        raise UserError(
            f"expected finite values of g, got {float(values[at])} at x = {_format_point(x[at])}; leave that point out"
        )
    return values.detach().double()


def _format_point(x: Tensor) -> str:
    return ", ".join(f"{entry:.6g}" for entry in x.flatten().tolist())


def _first_violation(x: Tensor, values: Tensor, lags: Sequence[int], allowed: Callable[[float], float]) -> str:
    x, values = as_floating(x), as_floating(values)
    rounding = 8 * _EPS * float(values.abs().max())
    for lag in lags:
        distance = float((x[lag:] - x[:-lag]).max())
        change = (values[lag:] - values[:-lag]).abs()
        wrong = change > allowed(distance) * (1 + 8 * _EPS) + rounding
        if wrong.any():
            at = int(wrong.int().argmax())
            pair = f"x = {float(x[at]):.6g}, y = {float(x[at + lag]):.6g}"
            return f"|g(x) - g(y)| = {float(change[at]):.6g} > {allowed(distance):.6g} at {pair}"
    return ""
