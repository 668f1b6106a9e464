"""A linear model of two weights whose loss is a narrow valley: descent with weight decay, and the valley's contours."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.losses import l2_regularized_loss, squared_loss
from quoin.notes.claims.linear_models import Problem

__all__ = ["FEATURES", "TARGETS", "contour", "descent", "penalized_loss"]

# centred, so that a bias would be 0; the two features go together
FEATURES = torch.tensor([[1.5, 0.6], [-1.1, -1.3], [0.4, 1.2], [-0.9, 0.1], [0.1, -0.6]], dtype=torch.float64)
TARGETS = FEATURES @ torch.tensor([1.6, 1.1], dtype=torch.float64)


def descent(
    step: Callable[[Problem], Tensor], start: tuple[float, float], *, lr: float, l2: float, steps: int
) -> Float[Tensor, "{steps}+1 2"]:
    """The weights at the start and after each step of this form of weight decay."""
    path = [torch.tensor(start, dtype=torch.float64)]
    for _ in range(steps):
        path.append(step(Problem(FEATURES, TARGETS, path[-1], torch.zeros((), dtype=torch.float64), lr, l2)))
    return torch.stack(path)


def contour(center: Float[Tensor, " 2"], height: float) -> Float[Tensor, "73 2"]:
    """Points of the ellipse around the least loss on which the loss is `height` above it."""
    turn = torch.linspace(0, 2 * math.pi, 73, dtype=torch.float64)
    values, vectors = torch.linalg.eigh(FEATURES.T @ FEATURES / len(FEATURES))
    circle = torch.stack([turn.cos(), turn.sin()])
    return (center.unsqueeze(1) + vectors @ ((2 * height / values).sqrt().unsqueeze(1) * circle)).T


def penalized_loss(weight: Float[Tensor, " 2"], l2: float) -> float:
    """The mean squared loss and the l2 penalty together."""
    return float(l2_regularized_loss(squared_loss(FEATURES @ weight, TARGETS).mean(), weight, l2))
