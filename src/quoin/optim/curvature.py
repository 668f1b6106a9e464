"""Convexity from second derivatives: on an open convex set, f ∈ C² is convex exactly if ∇²f ⪰ 0 everywhere; on the
line, f'' >= 0.

The Hessian at a point decides about that point; a search for segments (convexity.py) needs no derivatives.   n points,
p coordinates
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.autodiff import hessian, hessian_definition
from quoin.display import shown
from quoin.errors import UserError
from quoin.optim.descend import Objective
from quoin.tensor import as_floating, check_floating, symmetric_eigendecomposition

__all__ = ["HessianTest", "hessian_test", "second_difference"]

FEW_COORDINATES = (
    16  # up to here a Hessian row by row is quicker than all rows at once, by half at 10 and ten times at 1
)
ROUNDINGS = 1000  # of the Hessian's largest eigenvalue: what may be left of an eigenvalue 0


def second_difference(
    f: Objective, x: Real[Tensor, "*shape"], direction: Real[Tensor, "*shape"], step: float
) -> Float[Tensor, ""]:
    """(f(x + hv) - 2f(x) + f(x - hv)) / h² → vᵀ∇²f(x)v as h → 0: twice a chord gap over h², so never negative for a
    convex f.

    It needs no derivative to exist: |x| has second difference 2/h at 0.

    >>> second_difference(lambda x: (x**2).sum(), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]), 0.5)
    tensor(2.)

    Notes: Z12.10.
    """
    if not step > 0:
        raise UserError(f"expected a positive step, got {step}; give e.g. 1e-4")
    x, direction = as_floating(x), as_floating(direction)
    if direction.shape != x.shape:
        raise UserError(
            f"expected a direction of the shape of x, {tuple(x.shape)}, got {tuple(direction.shape)}; reshape it"
        )
    return (f(x + step * direction) - 2 * f(x) + f(x - step * direction)) / step**2


@shown
@dataclass(frozen=True)
class HessianTest:
    """The least and the largest eigenvalue of ∇²f at each point tried: true when none is below 0 to rounding, and then
    no proof.

    Otherwise `point` is where f curves down most, and `direction` the unit vector v along which vᵀ∇²f v is that least
    eigenvalue.
    """

    least: Float[Tensor, "n"]
    largest: Float[Tensor, "n"]
    point: Float[Tensor, "*shape"] | None = None
    direction: Float[Tensor, "*shape"] | None = None

    def __bool__(self) -> bool:
        return self.point is None


def hessian_test(f: Objective, points: Float[Tensor, "n *shape"]) -> HessianTest:
    """Look for a point where f ∈ C² curves down: a negative eigenvalue of ∇²f refutes convexity near that point.

    The extreme eigenvalues over all points bound the constants of f: L from below, μ from above.

    >>> found = hessian_test(lambda x: x[0] ** 2 - x[1] ** 2, torch.zeros(1, 2))
    >>> bool(found), found.least, found.direction.abs()
    (False, tensor([-2.]), tensor([0., 1.]))

    Notes: Z12.10.
    """
    check_floating(points, "points")
    if points.dim() < 1 or points.numel() == 0:
        raise UserError(f"expected a stack of points, got shape {tuple(points.shape)}; give at least one")
    size = points[0].numel()
    second_derivatives = hessian_definition if size <= FEW_COORDINATES else hessian
    matrices = torch.stack([second_derivatives(f, point).reshape(size, size) for point in points])
    if not bool(matrices.isfinite().all()):
        where = tuple(points[~matrices.isfinite().flatten(1).all(dim=1)][0].flatten().tolist())
        raise UserError(
            f"expected finite second derivatives, got NaN or infinity at {where}; keep the points where f is in C²"
        )
    values, vectors = symmetric_eigendecomposition((matrices + matrices.mT) / 2)
    least, largest = values[:, 0], values[:, -1]
    short = least + ROUNDINGS * torch.finfo(points.dtype).eps * values.abs().amax(dim=1)
    if bool((short >= 0).all()):
        return HessianTest(least, largest)
    worst = int(short.argmin())
    return HessianTest(least, largest, points[worst], vectors[worst, :, 0].reshape(points.shape[1:]))
