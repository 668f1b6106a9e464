"""Derivatives from differences of values: slow, inexact, and independent of every rule; the judge of the other ways.

p numbers in θ
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from quoin.autodiff.derivatives import gradient
from quoin.errors import Mistake, shown

__all__ = ["Differences", "GradientCheck", "check_gradient", "finite_differences"]

Function = Callable[[Tensor], Tensor]


class Differences(NamedTuple):
    """A gradient from central differences, and how often the function was evaluated for it."""

    output: Tensor
    evaluations: int


def finite_differences(f: Function, theta: Tensor, step: float | None = None) -> Differences:  # (...) -> (...)
    """∂_i f ≈ (f(θ + h e_i) - f(θ - h e_i)) / 2h for each i: 2p evaluations, with an error of O(h²) and of ε|f|/h by rounding.

    The default h is ε^(1/3) max(1, |θ_i|), where the two errors balance; ε is the rounding of θ's type.

    >>> finite_differences(lambda x: (x**2).sum(), torch.tensor([1.0, 2.0], dtype=torch.float64), step=0.5)
    Differences(output=tensor([2., 4.], dtype=torch.float64), evaluations=4)

    Notes: D6-22.
    """
    if not isinstance(theta, Tensor) or not theta.is_floating_point():
        raise Mistake(f"expected a float tensor θ, came {shown(theta)}; convert it with .double()")
    if step is not None and not step > 0:
        raise Mistake(f"expected a positive step, came {step}; leave it out for the usual one")
    flat = theta.detach().reshape(-1).clone()
    found = torch.zeros_like(flat)
    evaluations = 0
    with torch.no_grad():
        for i, middle in enumerate(flat.tolist()):
            h = step or torch.finfo(theta.dtype).eps ** (1 / 3) * max(1.0, abs(middle))
            ends = []
            for sign in (1, -1):
                moved = flat.clone()
                moved[i] += sign * h
                value = f(moved.reshape(theta.shape))
                if not isinstance(value, Tensor) or value.numel() != 1:
                    came = tuple(value.shape) if isinstance(value, Tensor) else shown(value)
                    raise Mistake(f"expected a function that gives one number, came {came}; sum it")
                ends.append((value.reshape(()), moved[i]))
                evaluations += 1
            (above, right), (below, left) = ends
            found[i] = (above - below) / (right - left)  # the step that was taken, after rounding
    return Differences(found.reshape(theta.shape), evaluations)


class GradientCheck(NamedTuple):
    """A gradient held against differences: true when the largest gap keeps the bound that the differences' error allows."""

    agrees: bool
    gap: float
    bound: float
    expected: Tensor  # from differences
    evaluations: int

    def __bool__(self) -> bool:
        return self.agrees


def check_gradient(f: Function, theta: Tensor, claimed: Tensor | None = None) -> GradientCheck:
    """Compare a gradient (autograd's, if none is claimed) with central differences.

    The bound is 1000 ε^(2/3) max(1, |f|, |∇f|), the error of differences at their best step, with room for higher
    derivatives of up to a thousand times that size. A function that is not smooth near θ, or random, will not agree.

    Notes: D6-22.
    """
    claimed = gradient(f, theta) if claimed is None else claimed.detach()
    if claimed.shape != theta.shape:
        raise Mistake(f"expected a gradient of θ's shape {tuple(theta.shape)}, came {tuple(claimed.shape)}; reshape it")
    expected, evaluations = finite_differences(f, theta)
    with torch.no_grad():
        size = max(1.0, float(f(theta).abs()), *(float(each.abs().max()) for each in (claimed, expected) if each.numel()))
    bound = 1000 * torch.finfo(theta.dtype).eps ** (2 / 3) * size
    gap = float((claimed - expected).abs().max()) if theta.numel() else 0.0
    return GradientCheck(gap <= bound, gap, bound, expected, evaluations + 1)
