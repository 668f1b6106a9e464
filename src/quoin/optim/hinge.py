"""The linear support vector machine to a stated gap: Newton's method on a hinge whose corner is rounded ever less.

n examples, d features. Only examples near the corner curve the rounded loss; as it sharpens they become few and a Newton step cheap.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.optim.line import lowest_along
from quoin.optim.normal import gram
from quoin.tensor import check_shapes

__all__ = ["HingeFit", "fit_hinge"]

SHARPEN = 0.3  # factor on the width of the rounded corner from one stage to the next
STEPS_A_STAGE = 8


class HingeFit(NamedTuple):
    """What `fit_hinge` finds, in float64, with a bound on what is left to gain."""

    weight: Tensor  # (d,)
    bias: Tensor  # ()
    loss: float
    gap: float  # the loss less a lower bound on every loss: the value of the dual problem
    steps: int
    converged: bool  # whether the gap is at most the tolerance times the loss


def fit_hinge(
    X: Tensor, y: Tensor, *, weights: Tensor, l2: float, bias: bool = True, tolerance: float = 1e-4, max_steps: int = 200
) -> HingeFit:  # (n, d), (n,) of -1 and 1, (n,)
    """argmin sum_i s_i max(0, 1 - m_i) + (l2 / 2) |w|^2 with m_i = y_i (x_i w + b); the bias is not penalised.

    max(0, 1 - m) = max_{0 <= a <= 1} a (1 - m); taking (width / 2) a^2 off rounds the corner, and its a = clip((1 - m) / width, 0, 1)
    bounds the loss from below by sum_i s_i a_i - |sum_i s_i a_i y_i x_i|^2 / (2 l2), once sum_i s_i a_i y_i = 0.
    """
    check_shapes("n d, n, n", X=X, y=y, weights=weights)
    if X.numel() == 0 or not X.is_floating_point():
        raise Mistake(f"expected float examples with features, came {X.dtype} of shape {tuple(X.shape)}; give at least one row and column")
    if not l2 > 0:
        raise Mistake(f"expected an l2 penalty above 0, came {l2}; without one separable data have many minimisers")
    d = X.shape[1]
    signed = weights * y  # (n,)
    at = torch.zeros(d + 1, dtype=torch.float64)
    scores = X.new_zeros(len(X))
    width, steps, stage_steps = 1.0, 0, 0
    loss, gap = float(weights.sum(dtype=torch.float64)), float("inf")
    while steps < max_steps:
        short = 1 - y * scores
        dual = (short / width).clamp(0, 1)
        forces = signed * dual
        downhill = torch.empty_like(at)
        downhill[:-1] = (X.mT @ forces).double()
        lower = float((weights * dual).sum(dtype=torch.float64)) - float(downhill[:-1] @ downhill[:-1]) / (2 * l2)
        loss = float((weights * short.clamp(min=0)).sum(dtype=torch.float64)) + l2 / 2 * float(at[:-1] @ at[:-1])
        downhill[:-1] -= l2 * at[:-1]
        downhill[-1] = float(forces.sum(dtype=torch.float64)) if bias else 0.0
        gap = loss - lower + abs(float(downhill[-1] * at[-1]))
        unbalanced = float(downhill[:-1] @ downhill[:-1]) / (2 * l2)  # what the bound loses for this stage's want of balance
        import os
        if os.environ.get("TR"): print(steps, stage_steps, width, loss, lower, gap, unbalanced, int(((short>0)&(short<width)).sum()))
        if gap <= tolerance * loss:
            break
        step = _newton_step(X, weights, short, width, downhill, l2, bias)
        way = torch.addmv(step[-1:].to(X.dtype), X, step[:-1].to(X.dtype))
        pull, stretch = l2 * float(at[:-1] @ step[:-1]), l2 * float(step[:-1] @ step[:-1])

        def slope_along(t: float, short=short, way=way, pull=pull, stretch=stretch, width=width) -> float:
            dual = ((short - t * (y * way)) / width).clamp(0, 1)
            return pull + t * stretch - float((signed * dual * way).sum(dtype=torch.float64))

        t = lowest_along(slope_along, share=0.01)
        at += t * step
        scores += t * way
        steps, stage_steps = steps + 1, stage_steps + 1
        if t == 0.0 or unbalanced <= 0.1 * tolerance * loss or stage_steps == STEPS_A_STAGE:
            width, stage_steps = SHARPEN * width, 0
            if width < torch.finfo(X.dtype).eps:
                break
    return HingeFit(at[:-1].clone(), at[-1].clone(), loss, gap, steps, gap <= tolerance * loss)


def _newton_step(X: Tensor, weights: Tensor, short: Tensor, width: float, downhill: Tensor, l2: float, bias: bool) -> Tensor:
    """H^-1 (downhill) for H = l2 I + (1 / width) sum over examples on the rounded corner of s_i x_i x_i^T, x_i with a 1 for the bias."""
    corner = ((short > 0) & (short < width)).nonzero().squeeze(-1)
    rows, share = X.index_select(0, corner), weights.index_select(0, corner) / width
    d = X.shape[1]
    matrix = torch.zeros(d + 1, d + 1, dtype=torch.float64)
    matrix[:d, :d] = gram(rows, share)
    matrix[:d, d] = matrix[d, :d] = rows.mT @ share if bias else 0.0
    matrix[d, d] = float(share.sum()) + l2 if bias else 1.0  # the l2 here only keeps an empty corner from dividing by zero
    matrix.diagonal()[:d] += l2
    factor, failed = torch.linalg.cholesky_ex(matrix)
    while int(failed):  # rounding of a float32 matrix
        matrix.diagonal().mul_(1.001)
        factor, failed = torch.linalg.cholesky_ex(matrix)
    return torch.cholesky_solve(downhill.unsqueeze(-1), factor).squeeze(-1)
