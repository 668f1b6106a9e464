"""Fit linear scores X W + b under a smooth convex loss: a quasi-Newton method that reads X twice a step.

n examples, d features, k scores an example. Along a direction the scores are linear too, so that a line search needs no
X at all.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.optim.line import line_search
from quoin.optim.products import gram_matrix, matmul, transposed_matmul
from quoin.tensor import check_shapes
from quoin.tensor.single_thread import single_thread

__all__ = ["ScoreLoss", "ScoresFit", "fit_linear_scores"]

ScoreLoss = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Scores (n, k) to the loss of each example (n,) and its gradient in each of its scores (n, k)."""

ROUNDINGS = 32  # of the data's type: the gradient is known no better
MEMORY = 20  # pairs of steps and changes of gradient
PATIENCE = 20  # steps after which a problem is held to be ill-conditioned, and worth its matrix X^T X
FEW_FEATURES, MOST_FEATURES = 128, 4096  # up to these X^T X is built at once, beyond those never


@shown
class ScoresFit(NamedTuple):
    """What `fit_linear_scores` finds, in float64, and where it stopped."""

    weight: Float64[Tensor, "d k"]
    bias: Float64[Tensor, "k"]
    loss: float
    gradient_norm: (
        float  # the largest of the gradient, each entry for a feature of unit curvature; zero at the minimiser
    )
    num_steps: int
    converged: bool  # whether the gradient fell below the tolerance


@single_thread()  # numpy has the others: products.py
def fit_linear_scores(
    X: Float[Tensor, "n d"],
    loss: ScoreLoss,
    num_scores: int,
    *,
    curvature: float,
    weights: Float[Tensor, "n"],
    l2: float = 0.0,
    bias: bool = True,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> ScoresFit:
    """argmin sum_i s_i loss_i(x_i W + b) + (l2 / 2) |W|^2, by L-BFGS from zero; the bias is not penalised.

    curvature · X^T S X + l2 bounds the Hessian: its diagonal, and for few features or slow problems the whole of it, is
    the matrix that the quasi-Newton steps start from. Centre X where there is a bias. If there is no minimiser, as in
    logistic regression on separable data without l2, the loss still falls until its gradient is below the tolerance,
    and the weights mean nothing but their direction.

    Args:
        loss: Takes the scores (n, k) of all examples to their losses (n,) and the gradients in their scores (n, k).
        num_scores: k, the columns of W.
        curvature: A bound on the second derivative of every loss in its scores.
        weights: s_i of each example; 1/n for a mean.
        bias: Whether b is fitted; else it is 0.
        tol: What no entry of the gradient exceeds in size at convergence, features scaled to unit curvature.
    """
    check_shapes("n d, n", X=X, weights=weights)
    if X.numel() == 0 or not X.is_floating_point():
        raise UserError(
            f"expected float examples with features, got {X.dtype} of shape {tuple(X.shape)}; give at least one "
            "row and column"
        )
    if not (l2 >= 0 and tol > 0 and max_iter >= 1):
        raise UserError(
            f"expected l2 >= 0, tol > 0, max_iter >= 1, got {l2}, {tol}, {max_iter}; give e.g. 1e-4, 1e-6, 500"
        )
    d = X.shape[1]
    tol = max(tol, ROUNDINGS * torch.finfo(X.dtype).eps)
    at = torch.zeros(d + 1, num_scores, dtype=torch.float64)  # the bias is the last row
    scores = X.new_zeros(len(X), num_scores)
    l2_column = torch.full((d + 1, 1), l2, dtype=torch.float64)
    l2_column[-1] = 0.0
    gradients = moved = scores
    seen = 0.0

    def apply(step: Tensor) -> Tensor:
        return matmul(X, step[:-1].to(X.dtype)) + step[-1:].to(X.dtype)

    def evaluate(moved: Tensor) -> float:
        nonlocal gradients
        losses, gradients = loss(moved)
        gradients = gradients * weights.unsqueeze(-1)
        return float((weights * losses).sum(dtype=torch.float64))

    def gradient() -> Tensor:
        found = torch.empty_like(at)
        found[:-1] = transposed_matmul(X, gradients)
        found[-1] = gradients.sum(dim=0, dtype=torch.float64) if bias else 0.0
        return found + l2_column * at

    # By pieces that stay in the cache: the square of all of X would be written out and read back.
    squares = sum(coefficient @ rows.square() for rows, coefficient in zip(X.split(512), weights.split(512)))
    diagonal = curvature * torch.cat([torch.as_tensor(squares), weights.sum()[None]]).double().unsqueeze(-1) + l2_column
    diagonal.clamp_(min=torch.finfo(torch.float64).tiny)
    precondition = diagonal.reciprocal().mul if d > FEW_FEATURES else _whole(X, weights, curvature, l2_column)
    memory: deque[tuple[Tensor, Tensor]] = deque(maxlen=MEMORY)
    value = evaluate(scores)
    downhill = -gradient()
    num_steps = 0
    while (largest := float((downhill / diagonal.sqrt()).abs().max())) > tol and num_steps < max_iter:
        if num_steps == PATIENCE and FEW_FEATURES < d <= MOST_FEATURES:
            precondition = _whole(X, weights, curvature, l2_column)
        step = _two_loops(downhill, memory, precondition)
        way = apply(step)
        l2_slope, stretch = float((l2_column * at * step).sum()), float((l2_column * step * step).sum())

        def derivative_along(t: float, scores=scores, way=way, l2_slope=l2_slope, stretch=stretch) -> float:
            nonlocal moved, seen, value
            moved, seen = torch.add(scores, way, alpha=t), t
            value = evaluate(moved)
            return float((gradients * way).sum(dtype=torch.float64)) + l2_slope + t * stretch

        t = line_search(derivative_along, -float((downhill * step).sum()), derivative_ratio=0.5)
        if t == 0.0:
            break  # rounding: the gradient no longer shows which way is down
        if seen != t:
            derivative_along(t)
        scores = moved
        at += t * step
        before, downhill = downhill, -gradient()
        memory.append((t * step, before - downhill))
        num_steps += 1
    penalty = float((l2_column * at * at).sum()) / 2
    return ScoresFit(at[:-1].clone(), at[-1].clone(), value + penalty, largest, num_steps, largest <= tol)


def _whole(X: Tensor, weights: Tensor, curvature: float, l2_column: Tensor) -> Callable[[Tensor], Tensor]:
    """Multiply by the inverse of the bound on the Hessian; X is centred, so the bias decouples."""
    matrix = curvature * gram_matrix(X, weights).double()
    size = float(matrix.diagonal().mean()) + float(l2_column[0])
    matrix.diagonal().add_(float(l2_column[0]) + 1e-12 * size)
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if int(failed):  # rounding of a float32 matrix: a little more on the diagonal leaves it a fair guess
        matrix.diagonal().add_(1e-5 * size)
        factor = torch.linalg.cholesky(matrix)
    last = curvature * float(weights.sum())

    def multiply(vector: Tensor) -> Tensor:
        return torch.cat([torch.cholesky_solve(vector[:-1], factor), vector[-1:] / last])

    return multiply


def _two_loops(
    downhill: Tensor, memory: deque[tuple[Tensor, Tensor]], precondition: Callable[[Tensor], Tensor]
) -> Tensor:
    """The direction H g of L-BFGS (Nocedal): H is `precondition`, scaled and corrected to explain the stored
    changes."""
    found = downhill
    coefficients = []
    for step, change in reversed(memory):
        coefficient = (step * found).sum() / (step * change).sum()
        found = found - coefficient * change
        coefficients.append(coefficient)
    found = precondition(found)
    if memory:
        step, change = memory[-1]
        found = found * ((step * change).sum() / (change * precondition(change)).sum())
    for (step, change), coefficient in zip(memory, reversed(coefficients)):
        found = found + (coefficient - (change * found).sum() / (step * change).sum()) * step
    return found
