"""Update rules that use curvature: Newton's, and the preconditioning that keeps only the diagonal of the Hessian.

They carry the function they descend on, for its Hessian at each point; else they are rules as in rules.py.   p numbers
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.autodiff import hessian
from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.optim.rules import check_lr

__all__ = ["DiagonalNewton", "Newton"]


@shown
@dataclass(frozen=True)
class Newton:
    """θ_{t+1} = θ_t - η H⁻¹ ∇C(θ_t) with H the Hessian of C at θ_t: for η = 1, to where the second-order Taylor
    polynomial is flat.

    That is its minimum only where H is positive definite; elsewhere the rule converges to saddles and maxima as well.

    Notes: Z12.11.
    """

    f: Callable[[Tensor], Tensor]
    lr: float = 1.0

    def __post_init__(self):
        check_lr(self.lr)

    def init(self, x: Float[Tensor, "..."]) -> None:
        return None

    def step(
        self, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], state: None
    ) -> tuple[Float[Tensor, "*shape"], None]:
        curvature = _hessian(self.f, x)
        move, singular = torch.linalg.solve_ex(curvature, gradient.reshape(-1))
        if singular or not move.isfinite().all():
            raise UserError(
                f"expected a Hessian with an inverse, got one without at {format_value(x.tolist())}; "
                "start elsewhere, or use GradientDescent"
            )
        return x - self.lr * move.reshape(x.shape), None


@shown
@dataclass(frozen=True)
class DiagonalNewton:
    """θ_{t+1} = θ_t - η |diag H|⁻¹ ∇C(θ_t): a learning rate for every coordinate by its own curvature, in p numbers
    instead of p².

    The absolute value keeps it going down where a coordinate curves down.

    Notes: Z12.11.
    """

    f: Callable[[Tensor], Tensor]
    lr: float = 1.0

    def __post_init__(self):
        check_lr(self.lr)

    def init(self, x: Float[Tensor, "..."]) -> None:
        return None

    def step(
        self, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], state: None
    ) -> tuple[Float[Tensor, "*shape"], None]:
        diagonal = _hessian(self.f, x).diagonal().abs().reshape(x.shape)
        if not (diagonal > 0).all():
            raise UserError(
                f"expected curvature in every coordinate, got none in some at {format_value(x.tolist())}; "
                "start elsewhere, or use GradientDescent"
            )
        return x - self.lr * gradient / diagonal, None


def _hessian(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:  # (...) -> (p, p)
    return hessian(f, x).reshape(x.numel(), x.numel())
