"""The difference of two float64 results, how far rounding alone may take them, and the worst of many."""

import builtins
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Num, Real
from torch import Tensor

__all__ = ["distance", "excess", "gap", "max", "min", "randint", "roundings"]


def gap(left: Num[Tensor, "*#batch"], right: Num[Tensor, "*#batch"]) -> float:
    """The largest difference of two results, counted relative to the largest entry where that exceeds one.

    What is not finite is infinitely far from everything.
    """
    left, right = left.detach(), right.detach()
    scale = builtins.max(1.0, float(left.abs().max()), float(right.abs().max()))
    difference = float((left - right).abs().max()) / scale
    return difference if math.isfinite(difference) else math.inf


def excess(left: Real[Tensor, "*#batch"], right: Real[Tensor, "*#batch"]) -> float:
    """The largest `left - right`, negative where `left` is below everywhere; a NaN on either side is infinitely far."""
    above = (left - right).detach()
    return math.inf if above.isnan().any() else float(above.max())


def distance(found: float, stated: float) -> float:
    """|found - stated|; NaN is infinitely far from everything."""
    return math.inf if math.isnan(found) else abs(found - stated)


def max(*values: Any, key: Callable[[Any], Any] | None = None) -> Any:
    """Python's `max`, but NaN where one of the numbers is, as torch.maximum gives.

    Python's own drops a NaN that does not come first, so that a claim would hold of a block that gives NaN.

    >>> max(0.5, float("nan")), max([1, 3, 2])
    (nan, 3)
    """
    return _unless_nan(builtins.max, values, key)


def min(*values: Any, key: Callable[[Any], Any] | None = None) -> Any:
    """Python's `min`, but NaN where one of the numbers is.

    >>> min(0.5, float("nan")), min([1, 3, 2])
    (nan, 1)
    """
    return _unless_nan(builtins.min, values, key)


def _unless_nan(choose: Callable[..., Any], values: tuple[Any, ...], key: Callable[[Any], Any] | None) -> Any:
    found = list(values[0]) if len(values) == 1 and isinstance(values[0], Iterable) else values
    for each in found:
        number = each if key is None else key(each)
        if bool(number != number):
            return each
    return choose(found, key=key)


def roundings(count: int) -> float:
    """`count` float64 roundings of a number of size one."""
    return count * torch.finfo(torch.float64).eps


def randint(low: int, high: int, generator: torch.Generator) -> int:
    """An integer from low to high, both included."""
    return int(torch.randint(low, high + 1, (), generator=generator))
