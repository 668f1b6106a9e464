"""How fast momentum converges on a quadratic, by its learning rate and its momentum: the whole phase diagram from two
eigenvalues.

Along a direction of curvature λ, (θ_t, θ_{t-1}) is multiplied each step by the matrix [[1 + m - γλ, -m], [1, 0]].
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor import as_floating

__all__ = ["BestMomentum", "best_momentum", "momentum_convergence_rate", "momentum_convergence_rate_definition"]


def momentum_convergence_rate_definition(
    lr: Real[Tensor, "*#shape"], momentum: Real[Tensor, "*#shape"], curvature: Real[Tensor, "*#shape"]
) -> Float[Tensor, "*#shape"]:
    """ρ, the spectral radius of [[1 + m - γλ, -m], [1, 0]]: errors shrink as ρᵗ, and for every γ and m with ρ < 1 they
    vanish.

    Args:
        lr: γ.
        momentum: m.
        curvature: λ, an eigenvalue of the Hessian.

    Notes: D1.5-9.
    """
    lr, momentum, curvature = (as_floating(each) for each in (lr, momentum, curvature))
    shrink, keep = torch.broadcast_tensors(1 + momentum - lr * curvature, -momentum)
    rows = [torch.stack([shrink, keep], -1), torch.stack([torch.ones_like(keep), torch.zeros_like(keep)], -1)]
    wide = torch.promote_types(keep.dtype, torch.float32)  # torch has no eigenvalues in half precision
    return torch.linalg.eigvals(torch.stack(rows, -2).to(wide)).abs().amax(-1).to(keep.dtype)


def momentum_convergence_rate(
    lr: Real[Tensor, "*#shape"], momentum: Real[Tensor, "*#shape"], curvature: Real[Tensor, "*#shape"]
) -> Float[Tensor, "*#shape"]:
    """`momentum_convergence_rate_definition` from z² - (1 + m - γλ) z + m = 0: √m where the roots are complex, else the
    larger in size.

    Below 1 exactly if 0 < γλ < 2(1 + m) and m < 1.

    Args:
        curvature: λ, an eigenvalue of the Hessian.

    >>> momentum_convergence_rate(torch.tensor(0.2), torch.tensor([0.0, 0.81]), torch.tensor(1.0))
    tensor([0.8000, 0.9000])

    Notes: D1.5-9.
    """
    lr, momentum, curvature = (as_floating(each) for each in (lr, momentum, curvature))
    half = (1 + momentum - lr * curvature) / 2
    discriminant = half**2 - momentum
    real = half.abs() + discriminant.clamp(min=0).sqrt()
    return torch.where(discriminant < 0, momentum.clamp(min=0).sqrt(), real)


@shown
class BestMomentum(NamedTuple):
    """The learning rate and the momentum of the least ρ over a range of curvatures, and that ρ."""

    lr: float
    momentum: float
    convergence_rate: float


def best_momentum(min_curvature: float, max_curvature: float) -> BestMomentum:
    """γ = (2 / (√L + √μ))² and m = ρ² for ρ = (√L - √μ)/(√L + √μ): the fastest on curvatures from μ to L.

    Without momentum the least ρ is (L - μ)/(L + μ), at γ = 2/(L + μ): it takes about √(L/μ) times as many steps.

    >>> best_momentum(1.0, 9.0)
    BestMomentum(lr=0.25, momentum=0.25, convergence_rate=0.5)
    """
    if not (0 < min_curvature <= max_curvature and math.isfinite(max_curvature)):
        raise UserError(
            f"expected curvatures 0 < min_curvature <= max_curvature, got {min_curvature} and {max_curvature}; "
            "give the extreme eigenvalues of the Hessian"
        )
    low, high = math.sqrt(min_curvature), math.sqrt(max_curvature)
    convergence_rate = (high - low) / (high + low)
    return BestMomentum((2 / (high + low)) ** 2, convergence_rate**2, convergence_rate)
