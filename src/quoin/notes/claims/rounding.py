"""The difference of two float64 results, and how far rounding alone may take them."""

import math

import torch
from jaxtyping import Num, Real
from torch import Tensor

__all__ = ["excess", "gap", "randint", "roundings"]


def gap(left: Num[Tensor, "*#batch"], right: Num[Tensor, "*#batch"]) -> float:
    """The largest difference of two results, counted relative to the largest entry where that exceeds one.

    What is not finite is infinitely far from everything: Python's `max` over many cases would let a NaN slip through.
    """
    left, right = left.detach(), right.detach()
    scale = max(1.0, float(left.abs().max()), float(right.abs().max()))
    difference = float((left - right).abs().max()) / scale
    return difference if math.isfinite(difference) else math.inf


def excess(left: Real[Tensor, "*#batch"], right: Real[Tensor, "*#batch"]) -> float:
    """The largest `left - right`, negative where `left` is below everywhere; a NaN on either side is infinitely far."""
    above = (left - right).detach()
    return math.inf if above.isnan().any() else float(above.max())


def roundings(count: int) -> float:
    """`count` float64 roundings of a number of size one."""
    return count * torch.finfo(torch.float64).eps


def randint(low: int, high: int, generator: torch.Generator) -> int:
    """An integer from low to high, both included."""
    return int(torch.randint(low, high + 1, (), generator=generator))
