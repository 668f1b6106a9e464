"""The linear support vector machine to a stated duality gap: Newton's method on a hinge whose corner is rounded.

n examples, d features. Only examples on the corner curve the loss, and near the end they are few: a Newton step is
cheap.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Float64, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.optim.line import line_search
from quoin.optim.products import gram_matrix, matmul, transposed_matmul
from quoin.tensor import check_shapes
from quoin.tensor.single_thread import single_thread

__all__ = ["HingeFit", "fit_linear_svm"]

SHARPEN, SHARPEST = 0.3, 0.03  # factor on the smoothing width of the corner from stage to stage, and where it stops
STEPS_A_STAGE = 20


@shown
class HingeFit(NamedTuple):
    """What `fit_linear_svm` finds, in float64, with a bound on what is left to gain."""

    weight: Float64[Tensor, "d"]
    bias: Float64[Tensor, ""]
    loss: float
    suboptimality_bound: float  # the loss less a lower bound on every loss: the value of the dual problem
    num_steps: int
    converged: bool  # whether the gap is at most the tolerance times the loss


@single_thread()  # numpy has the others: products.py
def fit_linear_svm(
    X: Float[Tensor, "n d"],
    y: Real[Tensor, "n"],
    *,
    weights: Float[Tensor, "n"],
    l2: float,
    bias: bool = True,
    tol: float = 1e-4,
    max_iter: int = 500,
) -> HingeFit:
    """argmin sum_i s_i max(0, 1 - m_i) + (l2 / 2) |w|^2 with m_i = y_i (x_i w + b), y_i -1 or 1; the bias is not
    penalised.

    max(0, 1 - m) = max_{0 <= a <= 1} a (1 - m). Subtracting (width / 2) (a - anchor)^2 smooths the corner, and the best
    a is then clip(anchor + (1 - m) / width, 0, 1). Each stage minimises this by Newton's method and makes its a the
    next anchor (the method of multipliers, or a proximal point method in a). Every a in [0, 1] bounds all losses from
    below, by sum_i s_i a_i - |sum_i s_i a_i y_i x_i|^2 / (2 l2), if sum_i s_i a_i y_i = 0 where there is a bias.

    Args:
        weights: s_i of each example; 1/n for a mean.
        bias: Whether b is fitted; else it is 0.
        tol: Stop once the loss exceeds its lower bound by no more than this fraction of itself.
        max_iter: Newton steps over all stages.
    """
    check_shapes("n d, n, n", X=X, y=y, weights=weights)
    if X.numel() == 0 or not X.is_floating_point():
        raise UserError(
            f"expected float examples with features, got {X.dtype} of shape {tuple(X.shape)}; give at least one "
            "row and column"
        )
    if not (l2 > 0 and tol > 0 and max_iter >= 1):
        raise UserError(
            f"expected l2 > 0, tol > 0, max_iter >= 1, got {l2}, {tol}, {max_iter}; give e.g. 1e-4, 1e-4, 500"
        )
    signed = weights * y  # (n,)
    at = torch.zeros(X.shape[1] + 1, dtype=torch.float64)  # the bias is the last entry
    scores, anchor = X.new_zeros(len(X)), X.new_zeros(len(X))
    width, num_steps, stage_steps = 0.3, 0, 0
    while True:
        short = 1 - y * scores
        dual = (anchor + short / width).clamp(0, 1)
        forces = signed * dual
        class_forces = forces.clamp(min=0), forces.clamp(max=0)  # of either class
        class_sums = torch.stack(
            [transposed_matmul(X, force) for force in class_forces], dim=-1
        ).double()  # two columns at once would go a slower way
        sums = _total(class_forces[0]), -_total(class_forces[1])
        lower = _lower_bound(class_sums, sums, l2, bias)
        downhill = torch.cat([class_sums.sum(dim=1), at.new_full((1,), sums[0] - sums[1] if bias else 0.0)])
        loss = _total(weights * short.clamp(min=0)) + l2 / 2 * float(at[:-1].square().sum())
        downhill[:-1] -= l2 * at[:-1]
        unbalanced = float(downhill[:-1].square().sum()) / (2 * l2) + abs(float(downhill[-1])) * (
            1 + abs(float(at[-1]))
        )
        gap = loss - lower
        if gap <= tol * loss or num_steps == max_iter:
            return HingeFit(at[:-1].clone(), at[-1].clone(), loss, gap, num_steps, gap <= tol * loss)
        if stage_steps and (
            unbalanced <= max(0.1 * (gap - unbalanced), 0.01 * tol * loss) or stage_steps >= STEPS_A_STAGE
        ):
            width, stage_steps, anchor = max(SHARPEN * width, SHARPEST), 0, dual
            continue
        step = _newton_step(X, weights / width, (dual > 0) & (dual < 1), downhill, l2, bias)
        way = matmul(X, step[:-1].to(X.dtype)) + step[-1:].to(X.dtype)
        l2_slope, stretch = l2 * float(at[:-1] @ step[:-1]), l2 * float(step[:-1] @ step[:-1])

        def derivative_along(
            t: float, short=short, way=way, l2_slope=l2_slope, stretch=stretch, width=width, anchor=anchor
        ) -> float:
            dual = (anchor + (short - t * (y * way)) / width).clamp(0, 1)
            return l2_slope + t * stretch - _total(signed * dual * way)

        t = line_search(derivative_along, -float(downhill @ step), derivative_ratio=0.01)
        at += t * step
        scores += t * way
        num_steps += 1
        stage_steps = stage_steps + 1 if t else STEPS_A_STAGE  # where rounding hides the way down, move the anchor


def _lower_bound(class_sums: Tensor, sums: tuple[float, float], l2: float, bias: bool) -> float:  # (d, 2)
    """The dual value at a; where there is a bias, at that a with the heavier class scaled down to the weight of the
    other."""
    least = min(sums)
    scales = [least / each if each else 0.0 for each in sums] if bias else [1.0, 1.0]
    combined = class_sums @ class_sums.new_tensor(scales)
    return sum(scale * each for scale, each in zip(scales, sums)) - float(combined.square().sum()) / (2 * l2)


def _total(values: Tensor) -> float:
    return float(values.sum(dtype=torch.float64))


def _newton_step(X: Tensor, curvatures: Tensor, on_corner: Tensor, downhill: Tensor, l2: float, bias: bool) -> Tensor:
    """H^-1 downhill for H = l2 I + sum over the corner of c_i x_i x_i^T, x_i with a 1 for the bias."""
    corner = on_corner.nonzero().squeeze(-1)
    rows, curvature = X.index_select(0, corner), curvatures.index_select(0, corner)
    d = X.shape[1]
    matrix = torch.zeros(d + 1, d + 1, dtype=torch.float64)
    matrix[:d, :d] = gram_matrix(rows, curvature)
    matrix[:d, d] = matrix[d, :d] = rows.mT @ curvature if bias else 0.0
    # The bias has no penalty: beside a (nearly) empty corner it would leap to where the loss is flat.
    matrix[d, d] = max(_total(curvature), 0.01 * _total(curvatures)) * (1 + 1e-9) if bias else 1.0
    matrix.diagonal()[:d] += l2
    factor, failed = torch.linalg.cholesky_ex(matrix)
    while int(failed):  # rounding of a float32 matrix
        matrix.diagonal().mul_(1.001)
        factor, failed = torch.linalg.cholesky_ex(matrix)
    return torch.cholesky_solve(downhill.unsqueeze(-1), factor).squeeze(-1)
