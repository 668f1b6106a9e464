"""Two tensors that are the same but for rounding: of one dtype and shape, and no entry off by more than a tolerance."""

from collections.abc import Mapping

import torch
from torch import Tensor

__all__ = ["assert_each_near", "assert_near"]

Tolerance = float | Mapping[torch.dtype, float]


def assert_near(ours: Tensor, theirs: Tensor, tolerance: Tolerance, *, times: float = 1.0) -> None:
    """No entry is off by more than `times` the tolerance, as counted from the largest entry, or from 1 if that is
    smaller."""
    assert bool(theirs.isfinite().all()), theirs
    scale = max(1.0, float(theirs.detach().abs().max())) if theirs.numel() else 1.0
    torch.testing.assert_close(ours, theirs, rtol=0, atol=times * _of(tolerance, ours) * scale)


def assert_each_near(ours: Tensor, theirs: Tensor, tolerance: Tolerance) -> None:
    """No entry x is off by more than (1 + |x|) times the tolerance; infinite ones stand in the same places."""
    torch.testing.assert_close(ours, theirs, rtol=_of(tolerance, ours), atol=_of(tolerance, ours))


def _of(tolerance: Tolerance, tensor: Tensor) -> float:
    return tolerance[tensor.dtype] if isinstance(tolerance, Mapping) else tolerance
