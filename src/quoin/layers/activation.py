"""Activations, entry by entry, from their definitions; torch.nn has the fast forms (`torch.relu`, `torch.nn.ReLU`)."""

import torch
from torch import Tensor

__all__ = ["relu"]


def relu(x: Tensor) -> Tensor:
    """max(0, x), entry by entry, with derivative 0 at 0.

    Notes: D1-3.
    """
    # The condition decides the derivative at 0: torch.maximum would split it in half, clamp would take 1.
    return torch.where(x <= 0, 0, x)
