"""Fisher information: how fast a distribution moves with its parameters, the curvature of KL at its minimum.

A family is a function from a vector of parameters to a distribution: a table, or a torch distribution.   d
parameters, n outcomes
"""

from collections.abc import Callable
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from quoin.errors import UserError
from quoin.prob import check_probs, kl_divergence
from quoin.tensor import check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["fisher_information", "fisher_information_definition"]


def fisher_information_definition(
    family: Callable[[Tensor], Tensor], theta: Float[Tensor, "d"] | ArrayLike
) -> Float[Tensor, "d d"]:
    """F(theta) = E[s s^T], s = grad_theta log p_theta(X) the score, for tables: sum_i grad p_i (grad p_i)^T / p_i.

    An outcome of probability zero is left out: its gradient is zero too where the family is smooth on both sides.

    Args:
        family: Takes theta to the table p_theta of probabilities.

    Notes: D1.4-18.
    """
    theta = float_tensor(theta, "theta")
    probs = family(theta)
    check_shapes("d, n", theta=theta, probs=probs)
    check_probs(probs, "the family's distribution")
    gradients = torch.autograd.functional.jacobian(family, theta, create_graph=_followed(theta))  # (n, d)
    possible = probs != 0
    scores = gradients[possible] / probs[possible].sqrt().unsqueeze(-1)  # each with the root of its probability
    return scores.mT @ scores


def fisher_information(
    family: Callable[[Tensor], Tensor | Distribution], theta: Float[Tensor, "d"] | ArrayLike
) -> Float[Tensor, "d d"]:
    """`fisher_information_definition` as the curvature of D(p_theta || p_{theta + delta}) = delta^T F
    delta / 2 + O(|delta|^3) at 0.

    So it serves densities with a closed form too. The distributions of a batch count as independent variables.

    Args:
        family: Takes theta to p_theta, a table of probabilities or a torch distribution.

    >>> def normal(theta):
    ...     return torch.distributions.Normal(theta[0], theta[1])
    >>> fisher_information(normal, torch.tensor([0.0, 2.0]))  # 1 / sigma^2 and 2 / sigma^2
    tensor([[0.2500, 0.0000],
            [0.0000, 0.5000]])

    Notes: D1.4-18.
    """
    theta = float_tensor(theta, "theta")
    check_shapes("d", theta=theta)
    if not theta.is_floating_point():
        raise UserError(f"expected parameters as floats, got {theta.dtype}; convert with .float()")

    def divergence(other: Tensor) -> Tensor:
        return kl_divergence(family(theta), family(other)).sum()

    return cast(Tensor, torch.autograd.functional.hessian(divergence, theta, create_graph=_followed(theta)))


def _followed(theta: Tensor) -> bool:
    return theta.requires_grad and torch.is_grad_enabled()
