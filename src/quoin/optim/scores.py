"""Fit linear scores X W + b under a smooth convex loss: a quasi-Newton method that looks at X twice a step.

n examples, d features, k scores an example. Along a direction the scores are linear too, so that a line search needs no X at all.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.optim.line import lowest_along
from quoin.optim.products import gram, times, transposed_times
from quoin.tensor import check_shapes
from quoin.tensor.single_thread import single_thread

__all__ = ["ScoreLoss", "ScoresFit", "fit_scores"]

ScoreLoss = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Scores (n, k) to the loss of each example (n,) and its slope in each of its scores (n, k)."""

ROUNDINGS = 32  # of the data's type: the gradient is known no better
MEMORY = 20  # pairs of steps and changes of gradient
PATIENCE = 20  # steps after which a problem is held to be ill-conditioned, and worth its matrix X^T X
FEW_FEATURES, MOST_FEATURES = 128, 4096  # up to these X^T X is built at once, beyond those never


class ScoresFit(NamedTuple):
    """What `fit_scores` finds, in float64, and where it stopped."""

    weight: Tensor  # (d, k)
    bias: Tensor  # (k,)
    loss: float
    slope: float  # the largest of the gradient, each entry for a feature of unit curvature; zero at the minimiser
    steps: int
    converged: bool  # whether the slope came below the tolerance


@single_thread()  # numpy has the others: products.py
def fit_scores(
    X: Tensor,
    loss: ScoreLoss,
    num_scores: int,
    *,
    curvature: float,
    weights: Tensor,
    l2: float = 0.0,
    bias: bool = True,
    tolerance: float = 1e-6,
    max_steps: int = 500,
) -> ScoresFit:  # X (n, d), weights (n,)
    """argmin sum_i s_i loss_i(x_i W + b) + (l2 / 2) |W|^2, by L-BFGS from zero; the bias is not penalised.

    `curvature` bounds the second derivative of every loss in its scores, so that curvature · X^T S X + l2 bounds the Hessian: its
    diagonal, and for few features or slow problems the whole of it, is the matrix that the quasi-Newton steps start from. Centre X
    where there is a bias. If there is no minimiser, as in logistic regression on separable data without l2, the loss
    still falls until its slope is below the tolerance, and the weights mean nothing but their direction.
    """
    check_shapes("n d, n", X=X, weights=weights)
    if X.numel() == 0 or not X.is_floating_point():
        raise Mistake(f"expected float examples with features, came {X.dtype} of shape {tuple(X.shape)}; give at least one row and column")
    if not (l2 >= 0 and tolerance > 0 and max_steps >= 1):
        raise Mistake(f"expected l2 >= 0, tolerance > 0, max_steps >= 1, came {l2}, {tolerance}, {max_steps}; give e.g. 1e-4, 1e-6, 500")
    d = X.shape[1]
    tolerance = max(tolerance, ROUNDINGS * torch.finfo(X.dtype).eps)
    at = torch.zeros(d + 1, num_scores, dtype=torch.float64)  # the bias is the last row
    scores = X.new_zeros(len(X), num_scores)
    decay = torch.full((d + 1, 1), l2, dtype=torch.float64)
    decay[-1] = 0.0
    slopes = moved = scores
    seen = 0.0

    def apply(step: Tensor) -> Tensor:
        return times(X, step[:-1].to(X.dtype)) + step[-1:].to(X.dtype)

    def look(moved: Tensor) -> float:
        nonlocal slopes
        losses, slopes = loss(moved)
        slopes = slopes * weights.unsqueeze(-1)
        return float((weights * losses).sum(dtype=torch.float64))

    def gradient() -> Tensor:
        found = torch.empty_like(at)
        found[:-1] = transposed_times(X, slopes)
        found[-1] = slopes.sum(dim=0, dtype=torch.float64) if bias else 0.0
        return found + decay * at

    # By pieces that stay in the cache: the square of all of X would be written out and read back.
    squares = sum(share @ rows.square() for rows, share in zip(X.split(512), weights.split(512)))
    diagonal = curvature * torch.cat([torch.as_tensor(squares), weights.sum()[None]]).double().unsqueeze(-1) + decay
    diagonal.clamp_(min=torch.finfo(torch.float64).tiny)
    precondition = diagonal.reciprocal().mul if d > FEW_FEATURES else _whole(X, weights, curvature, decay)
    memory: deque[tuple[Tensor, Tensor]] = deque(maxlen=MEMORY)
    value = look(scores)
    downhill = -gradient()
    steps = 0
    while (slope := float((downhill / diagonal.sqrt()).abs().max())) > tolerance and steps < max_steps:
        if steps == PATIENCE and FEW_FEATURES < d <= MOST_FEATURES:
            precondition = _whole(X, weights, curvature, decay)
        step = _two_loops(downhill, memory, precondition)
        way = apply(step)
        pull, stretch = float((decay * at * step).sum()), float((decay * step * step).sum())

        def slope_along(t: float, scores=scores, way=way, pull=pull, stretch=stretch) -> float:
            nonlocal moved, seen, value
            moved, seen = torch.add(scores, way, alpha=t), t
            value = look(moved)
            return float((slopes * way).sum(dtype=torch.float64)) + pull + t * stretch

        t = lowest_along(slope_along, -float((downhill * step).sum()), share=0.5)
        if t == 0.0:
            break  # rounding: the gradient no longer says which way is down
        if seen != t:
            slope_along(t)
        scores = moved
        at += t * step
        before, downhill = downhill, -gradient()
        memory.append((t * step, before - downhill))
        steps += 1
    penalty = float((decay * at * at).sum()) / 2
    return ScoresFit(at[:-1].clone(), at[-1].clone(), value + penalty, slope, steps, slope <= tolerance)


def _whole(X: Tensor, weights: Tensor, curvature: float, decay: Tensor) -> Callable[[Tensor], Tensor]:
    """Multiply by the inverse of the bound on the Hessian; X is centred, so the bias stands apart."""
    matrix = curvature * gram(X, weights).double()
    size = float(matrix.diagonal().mean()) + float(decay[0])
    matrix.diagonal().add_(float(decay[0]) + 1e-12 * size)
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if int(failed):  # rounding of a float32 matrix: a little more on the diagonal leaves it a fair guess
        matrix.diagonal().add_(1e-5 * size)
        factor = torch.linalg.cholesky(matrix)
    last = curvature * float(weights.sum())

    def multiply(vector: Tensor) -> Tensor:
        return torch.cat([torch.cholesky_solve(vector[:-1], factor), vector[-1:] / last])

    return multiply


def _two_loops(downhill: Tensor, memory: deque[tuple[Tensor, Tensor]], precondition: Callable[[Tensor], Tensor]) -> Tensor:
    """The direction H g of L-BFGS (Nocedal): H is `precondition`, scaled and corrected to explain the remembered changes."""
    found = downhill
    shares = []
    for step, change in reversed(memory):
        share = (step * found).sum() / (step * change).sum()
        found = found - share * change
        shares.append(share)
    found = precondition(found)
    if memory:
        step, change = memory[-1]
        found = found * ((step * change).sum() / (change * precondition(change)).sum())
    for (step, change), share in zip(memory, reversed(shares)):
        found = found + (share - (change * found).sum() / (step * change).sum()) * step
    return found
