"""What is added to a loss to keep weights small: squared (l2, weight decay), absolute (l1), and what dropout on the
inputs amounts to.

The biases are left out: pass the weights only. As an optimizer's setting, l2 of strength λ is `torch.optim.SGD(...,
weight_decay=λ)`.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor import check_floating, check_shapes

__all__ = ["input_dropout_penalty", "l1_penalty", "l2_penalty", "l2_regularized_loss"]


def l2_penalty(weights: Float[Tensor, "..."] | Iterable[Float[Tensor, "..."]], l2: float) -> Float[Tensor, ""]:
    """(λ / 2) |w|^2, the sum over all entries of all weights given; its gradient is λ w.

    Notes: Z3.31, D1.6-4.
    """
    return l2 / 2 * torch.stack([each.square().sum() for each in _checked(weights, l2)]).sum()


def l1_penalty(weights: Float[Tensor, "..."] | Iterable[Float[Tensor, "..."]], l1: float) -> Float[Tensor, ""]:
    """λ sum_j |w_j|: pulls every weight towards zero by the same force, so that small ones reach it; at 0 the gradient
    is 0.

    Notes: D1.6-4.
    """
    return l1 * torch.stack([each.abs().sum() for each in _checked(weights, l1)]).sum()


def l2_regularized_loss(
    loss: Float[Tensor, ""], weights: Float[Tensor, "..."] | Iterable[Float[Tensor, "..."]], l2: float
) -> Float[Tensor, ""]:
    """L(w, b) + (λ / 2) |w|^2: what weight decay minimises.

    A gradient step of learning rate η on it multiplies w by 1 - ηλ and then takes the step of L.

    >>> w = torch.tensor([3.0, 4.0])
    >>> l2_regularized_loss(torch.tensor(1.0), w, 0.1)
    tensor(2.2500)

    Notes: Z3.31.
    """
    check_shapes("()", loss=loss)
    return loss + l2_penalty(weights, l2)


def input_dropout_penalty(X: Float[Tensor, "n d"], weight: Float[Tensor, "d"], probability: float) -> Float[Tensor, ""]:
    """What dropout of the inputs adds, on average, to the squares of a linear model: p / (1 - p) sum_j w_j^2 sum_i
    X_ij^2.

    For M of independent entries, 0 with probability p and else 1 / (1 - p): E |y - (X * M) w|^2 = |y - X w|^2 + this.
    It is an l2 penalty in which a feature that is large in the data weighs more.

    Notes: D1.6-16.
    """
    check_shapes("n d, d", X=X, weight=weight)
    check_floating(X, "X")
    if not 0 <= probability < 1:
        raise UserError(f"expected a dropout probability of at least 0 and below 1, got {probability}; give e.g. 0.2")
    return probability / (1 - probability) * (weight.square() * X.square().sum(dim=0)).sum()


def _checked(weights: Tensor | Iterable[Tensor], penalty: float) -> list[Tensor]:
    found = [weights] if isinstance(weights, Tensor) else list(weights)
    if not found:
        raise UserError("expected at least one weight to penalise, got none; give e.g. [layer.weight]")
    for each in found:
        check_floating(each, "weights")
    if not 0 <= penalty < float("inf"):
        raise UserError(f"expected a penalty of at least 0 and finite, got {penalty}; a negative one has no minimum")
    return found
