"""Small functions to descend on, each showing one difficulty: a saddle, a ravine, a bent valley, several minima, a
plateau.

Functions of the plane take (..., 2) and give (...), those of the line give what they take, entry by entry.
"""

import math

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor import as_floating, check_shapes

__all__ = ["cubic", "double_well", "plateau", "ravine", "rippled", "rosenbrock", "saddle", "wavy"]


def saddle(x: Real[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
    """x² - y²: the gradient vanishes at 0, which is lowest along x and highest along y; there is no minimum.

    Notes: Z12.1.
    """
    first, second = _plane(x)
    return first**2 - second**2


def ravine(x: Real[Tensor, "*batch 2"], *, condition_number: float = 20.0) -> Float[Tensor, "*batch"]:
    """(x² + κ y²) / 2, a quadratic κ times as steep across as along; lowest at 0."""
    if not (condition_number >= 1 and math.isfinite(condition_number)):
        raise UserError(f"expected a condition number of 1 or more, got {condition_number}; give e.g. 20")
    first, second = _plane(x)
    return (first**2 + condition_number * second**2) / 2


def rosenbrock(x: Real[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
    """(1 - x)² + 100 (y - x²)²: a bent valley with an almost level floor; lowest at (1, 1), where it is 0."""
    first, second = _plane(x)
    return (1 - first) ** 2 + 100 * (second - first**2) ** 2


def double_well(x: Real[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
    """(x² - 1)² + y²: two minimisers, (1, 0) and (-1, 0), and a saddle at 0 between them."""
    first, second = _plane(x)
    return (first**2 - 1) ** 2 + second**2


def cubic(x: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """x³: its first and second derivative vanish at 0, which is no minimum.

    Notes: Z12.1.
    """
    return as_floating(x) ** 3


def plateau(x: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """tanh x: a derivative of 1/cosh² x <= 4 e^{-2|x|}, so that far out a step of gradient descent is next to nothing.

    Notes: Z12.1.
    """
    return torch.tanh(x)


def wavy(x: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """x cos(πx): a minimum in every other unit, each lower than the one before; on [-1, 2] a local one, and the global
    one near 1.1.

    Notes: Z12.1.
    """
    return x * torch.cos(math.pi * x)


def rippled(x: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """wavy(x) + cos(5πx)/5: a risk as finite data show it. Its minimisers are not those of `wavy`, the risk itself.

    Notes: Z12.1.
    """
    return wavy(x) + torch.cos(5 * math.pi * x) / 5


def _plane(x: Tensor) -> tuple[Tensor, Tensor]:
    check_shapes("... 2", x=x)
    x = as_floating(x)
    return x[..., 0], x[..., 1]
