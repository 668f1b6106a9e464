"""Derivatives from differences of values: slow, inexact, and independent of every rule; what the other ways are checked
against.

p numbers in θ
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.autodiff.derivatives import gradient as autograd_gradient
from quoin.display import shown
from quoin.errors import UserError, format_value

__all__ = ["Differences", "GradientCheck", "check_gradient", "finite_differences"]

Function = Callable[[Tensor], Tensor]


@shown
class Differences(NamedTuple):
    """A gradient from central differences, and how often the function was evaluated for it."""

    output: Float[Tensor, "..."]
    num_evaluations: int


def finite_differences(f: Function, theta: Float[Tensor, "..."], step: float | None = None) -> Differences:
    """∂_i f ≈ (f(θ + h e_i) - f(θ - h e_i)) / 2h for each i: 2p evaluations, with an error of O(h²) and of ε|f|/h by
    rounding.

    The default h is ε^(1/3) max(1, |θ_i|), where the two errors balance; ε is the rounding of θ's type.

    >>> finite_differences(lambda x: (x**2).sum(), torch.tensor([1.0, 2.0], dtype=torch.float64), step=0.5)
    Differences(output=tensor([2., 4.], dtype=torch.float64), num_evaluations=4)

    Notes: D6-22.
    """
    if not isinstance(theta, Tensor) or not theta.is_floating_point():
        raise UserError(f"expected a float tensor θ, got {format_value(theta)}; convert it with .double()")
    if step is not None and not step > 0:
        raise UserError(f"expected a positive step, got {step}; leave it out for the usual one")
    flat = theta.detach().reshape(-1).clone()
    found = torch.zeros_like(flat)
    num_evaluations = 0
    with torch.no_grad():
        for i, middle in enumerate(flat.tolist()):
            h = step or torch.finfo(theta.dtype).eps ** (1 / 3) * max(1.0, abs(middle))
            ends = []
            for sign in (1, -1):
                moved = flat.clone()
                moved[i] += sign * h
                value = f(moved.reshape(theta.shape))
                if not isinstance(value, Tensor) or value.numel() != 1:
                    got = tuple(value.shape) if isinstance(value, Tensor) else format_value(value)
                    raise UserError(f"expected a function that gives one number, got {got}; sum it")
                ends.append((value.reshape(()), moved[i]))
                num_evaluations += 1
            (above, right), (below, left) = ends
            found[i] = (above - below) / (right - left)  # the step that was taken, after rounding
    return Differences(found.reshape(theta.shape), num_evaluations)


@shown
class GradientCheck(NamedTuple):
    """A gradient held against differences: true when the largest error is within the tolerance that the differences'
    own error allows.
    """

    agrees: bool
    max_error: float
    tolerance: float
    expected: Float[Tensor, "..."]  # from differences
    num_evaluations: int

    def __bool__(self) -> bool:
        return self.agrees


def check_gradient(
    f: Function, theta: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"] | None = None
) -> GradientCheck:
    """Compare a gradient (autograd's, if none is given) with central differences.

    The bound is 1000 ε^(2/3) max(1, |f|, |∇f|), the error of differences at their best step, with a margin for higher
    derivatives of up to a thousand times that size. A function that is not smooth near θ, or random, will not agree.

    Notes: D6-22.
    """
    gradient = autograd_gradient(f, theta) if gradient is None else gradient.detach()
    if gradient.shape != theta.shape:
        raise UserError(
            f"expected a gradient of θ's shape {tuple(theta.shape)}, got {tuple(gradient.shape)}; reshape it"
        )
    expected, num_evaluations = finite_differences(f, theta)
    with torch.no_grad():
        size = max(
            1.0, float(f(theta).abs()), *(float(each.abs().max()) for each in (gradient, expected) if each.numel())
        )
    tolerance = 1000 * torch.finfo(theta.dtype).eps ** (2 / 3) * size
    max_error = float((gradient - expected).abs().max()) if theta.numel() else 0.0
    return GradientCheck(max_error <= tolerance, max_error, tolerance, expected, num_evaluations + 1)
