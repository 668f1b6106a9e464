"""The linear support vector machine to a stated gap: Newton's method on a hinge whose corner is rounded.

n examples, d features. Only examples on the corner curve the loss, and near the end they are few: a Newton step is cheap.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.optim.line import lowest_along
from quoin.optim.products import gram, times, transposed_times
from quoin.tensor import check_shapes
from quoin.tensor.single_thread import single_thread

__all__ = ["HingeFit", "fit_hinge"]

SHARPEN, SHARPEST = 0.3, 0.03  # factor on the width of the corner from stage to stage, and where it stops
STEPS_A_STAGE = 20


class HingeFit(NamedTuple):
    """What `fit_hinge` finds, in float64, with a bound on what is left to gain."""

    weight: Tensor  # (d,)
    bias: Tensor  # ()
    loss: float
    gap: float  # the loss less a lower bound on every loss: the value of the dual problem
    steps: int
    converged: bool  # whether the gap is at most the tolerance times the loss


@single_thread()  # numpy has the others: products.py
def fit_hinge(
    X: Tensor, y: Tensor, *, weights: Tensor, l2: float, bias: bool = True, tolerance: float = 1e-4, max_steps: int = 500
) -> HingeFit:  # (n, d), (n,) of -1 and 1, (n,)
    """argmin sum_i s_i max(0, 1 - m_i) + (l2 / 2) |w|^2 with m_i = y_i (x_i w + b); the bias is not penalised.

    max(0, 1 - m) = max_{0 <= a <= 1} a (1 - m). Taking (width / 2) (a - anchor)^2 off rounds the corner, and the best a is then
    clip(anchor + (1 - m) / width, 0, 1). Each stage minimises this by Newton's method and makes its a the next anchor (the method of
    multipliers, or a proximal point method in a). Every a in [0, 1] bounds all losses from below, by
    sum_i s_i a_i - |sum_i s_i a_i y_i x_i|^2 / (2 l2), if sum_i s_i a_i y_i = 0 where there is a bias.
    """
    check_shapes("n d, n, n", X=X, y=y, weights=weights)
    if X.numel() == 0 or not X.is_floating_point():
        raise Mistake(f"expected float examples with features, came {X.dtype} of shape {tuple(X.shape)}; give at least one row and column")
    if not (l2 > 0 and tolerance > 0 and max_steps >= 1):
        raise Mistake(f"expected l2 > 0, tolerance > 0, max_steps >= 1, came {l2}, {tolerance}, {max_steps}; give e.g. 1e-4, 1e-4, 500")
    signed = weights * y  # (n,)
    at = torch.zeros(X.shape[1] + 1, dtype=torch.float64)  # the bias is the last entry
    scores, anchor = X.new_zeros(len(X)), X.new_zeros(len(X))
    width, steps, stage_steps = 0.3, 0, 0
    while True:
        short = 1 - y * scores
        dual = (anchor + short / width).clamp(0, 1)
        forces = signed * dual
        sides = forces.clamp(min=0), forces.clamp(max=0)  # of either class
        pulls = torch.stack([transposed_times(X, side) for side in sides], dim=-1).double()  # two columns at once would go a slower way
        sums = _total(sides[0]), -_total(sides[1])
        lower = _lower_bound(pulls, sums, l2, bias)
        downhill = torch.cat([pulls.sum(dim=1), at.new_full((1,), sums[0] - sums[1] if bias else 0.0)])
        loss = _total(weights * short.clamp(min=0)) + l2 / 2 * float(at[:-1].square().sum())
        downhill[:-1] -= l2 * at[:-1]
        unbalanced = float(downhill[:-1].square().sum()) / (2 * l2) + abs(float(downhill[-1])) * (1 + abs(float(at[-1])))
        gap = loss - lower
        if gap <= tolerance * loss or steps == max_steps:
            return HingeFit(at[:-1].clone(), at[-1].clone(), loss, gap, steps, gap <= tolerance * loss)
        if stage_steps and (unbalanced <= max(0.1 * (gap - unbalanced), 0.01 * tolerance * loss) or stage_steps >= STEPS_A_STAGE):
            width, stage_steps, anchor = max(SHARPEN * width, SHARPEST), 0, dual
            continue
        step = _newton_step(X, weights / width, (dual > 0) & (dual < 1), downhill, l2, bias)
        way = times(X, step[:-1].to(X.dtype)) + step[-1:].to(X.dtype)
        pull, stretch = l2 * float(at[:-1] @ step[:-1]), l2 * float(step[:-1] @ step[:-1])

        def slope_along(t: float, short=short, way=way, pull=pull, stretch=stretch, width=width, anchor=anchor) -> float:
            dual = (anchor + (short - t * (y * way)) / width).clamp(0, 1)
            return pull + t * stretch - _total(signed * dual * way)

        t = lowest_along(slope_along, -float(downhill @ step), share=0.01)
        at += t * step
        scores += t * way
        steps, stage_steps = steps + 1, stage_steps + 1 if t else STEPS_A_STAGE  # where rounding hides the way down, move the anchor


def _lower_bound(pulls: Tensor, sums: tuple[float, float], l2: float, bias: bool) -> float:  # (d, 2)
    """The dual value at a; where there is a bias, at that a with the heavier class scaled down to the weight of the other."""
    least = min(sums)
    scales = [least / each if each else 0.0 for each in sums] if bias else [1.0, 1.0]
    pull = pulls @ pulls.new_tensor(scales)
    return sum(scale * each for scale, each in zip(scales, sums)) - float(pull.square().sum()) / (2 * l2)


def _total(values: Tensor) -> float:
    return float(values.sum(dtype=torch.float64))


def _newton_step(X: Tensor, curvatures: Tensor, on_corner: Tensor, downhill: Tensor, l2: float, bias: bool) -> Tensor:
    """H^-1 downhill for H = l2 I + sum over the corner of c_i x_i x_i^T, x_i with a 1 for the bias."""
    corner = on_corner.nonzero().squeeze(-1)
    rows, share = X.index_select(0, corner), curvatures.index_select(0, corner)
    d = X.shape[1]
    matrix = torch.zeros(d + 1, d + 1, dtype=torch.float64)
    matrix[:d, :d] = gram(rows, share)
    matrix[:d, d] = matrix[d, :d] = rows.mT @ share if bias else 0.0
    # The bias has no penalty: beside a (nearly) empty corner it would leap to where the loss is flat.
    matrix[d, d] = max(_total(share), 0.01 * _total(curvatures)) * (1 + 1e-9) if bias else 1.0
    matrix.diagonal()[:d] += l2
    factor, failed = torch.linalg.cholesky_ex(matrix)
    while int(failed):  # rounding of a float32 matrix
        matrix.diagonal().mul_(1.001)
        factor, failed = torch.linalg.cholesky_ex(matrix)
    return torch.cholesky_solve(downhill.unsqueeze(-1), factor).squeeze(-1)
