"""A network written down, not trained, that fits any labels of distinct inputs: one hidden ReLU unit for each of them.

n examples, d features, q outputs
"""

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.models.mlp import MLP
from quoin.tensor import check_finite, check_floating, check_same_dtype, check_shapes

__all__ = ["relu_interpolant"]

DIRECTIONS = 64  # tried, to find a line on which the inputs lie well apart


def relu_interpolant(
    x: Float[Tensor, "examples features"],
    y: Float[Tensor, "examples outputs"],
    *,
    generator: torch.Generator | None = None,
) -> MLP:
    """An MLP of sizes [d, n, q] with f(x_i) = y_i for all n distinct inputs, whatever their labels.

    On a line a the inputs lie at t_i = a·x_i, sorted and distinct for almost every a. With t_0 before the first and y_0
    = 0, f(x) = sum_i (s_i - s_{i-1}) max(0, a·x - t_{i-1}) for the slopes s_i = (y_i - y_{i-1}) / (t_i - t_{i-1}),
    which is straight between neighbours. Rounding grows with the steepest slope; use float64. Fitting says nothing of
    other inputs.

    Inputs that are equal need one unit if their labels are equal too; otherwise no function fits them, which is a
    UserError.

    Notes: Z5.21.
    """
    check_shapes("n d, n q", x=x, y=y)
    check_floating(x)
    check_same_dtype(x, y)
    check_finite(x)
    check_finite(y, "y")
    if 0 in (*x.shape, *y.shape):
        raise UserError(
            f"expected at least one example, feature and output, got x of {tuple(x.shape)} and y of "
            f"{tuple(y.shape)}; give more"
        )
    points, labels = _distinct(x.detach(), y.detach())
    direction = _spreading_direction(points, generator)
    t, rows = (points @ direction).sort()
    if len(t) > 1 and not bool((t.diff() > 0).all()):
        raise UserError(
            f"expected inputs that {x.dtype} distinguishes on some line, got two too close for it; use float64 or "
            "merge them"
        )
    before = t[0] - ((t[-1] - t[0]) / (len(t) - 1) if len(t) > 1 else 1.0)
    knots = torch.cat([before.unsqueeze(0), t[:-1]])
    heights = torch.cat([torch.zeros_like(labels[:1]), labels[rows]])
    slopes = heights.diff(dim=0) / (t - knots).unsqueeze(-1)  # (n, q)
    bends = torch.cat([slopes[:1], slopes.diff(dim=0)])

    network = MLP([x.shape[1], len(t), y.shape[1]], generator=generator).to(x)
    hidden = network.features[0]
    assert isinstance(hidden, torch.nn.Linear)
    with torch.no_grad():
        hidden.weight.copy_(direction.expand(len(t), -1))
        hidden.bias.copy_(-knots)
        network.head.weight.copy_(bends.T)
        network.head.bias.zero_()
    return network


def _distinct(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct inputs with their labels."""
    points, group = torch.unique(x, dim=0, return_inverse=True)
    first = torch.full((len(points),), len(x), device=x.device).scatter_reduce_(
        0, group, torch.arange(len(x), device=x.device), "amin"
    )
    labels = y[first]
    differing = (y != labels[group]).any(dim=1)
    if differing.any():
        row = int(differing.nonzero()[0])
        raise UserError(
            f"expected one label for each input, got two for the same input in rows {int(first[group[row]])} and "
            f"{row}; "
            "no function has two values there: drop one, or average their labels"
        )
    return points, labels


def _spreading_direction(points: Tensor, generator: torch.Generator | None) -> Tensor:
    """Of some random directions, the one on which the nearest two points are farthest apart, by the whole range."""
    if len(points) == 1:
        return torch.ones_like(points[0])
    tried = torch.randn(DIRECTIONS, points.shape[1], generator=generator, dtype=torch.float64).to(points)
    t = (points @ tried.T).sort(dim=0).values  # (n, DIRECTIONS)
    best = (t.diff(dim=0).amin(dim=0) / (t[-1] - t[0])).nan_to_num(nan=-1.0).argmax()
    return tried[best] / (t[-1, best] - t[0, best])
