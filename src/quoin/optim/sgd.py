"""One step of minibatch gradient descent as a pure function; `torch.optim.SGD` is the same step taken in place."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor import check_shapes

__all__ = ["sgd_step", "sgd_step_definition"]


def sgd_step_definition(
    parameters: Sequence[Float[Tensor, "..."]], losses: Float[Tensor, "n"], lr: float
) -> tuple[Float[Tensor, "..."], ...]:
    """θ - (η / |B|) sum_{i in B} ∂l_i/∂θ, the gradient of each example's loss taken by itself.

    Args:
        losses: l_i of each example of the batch B, differentiable in `parameters`.

    Notes: Z3.8.
    """
    _check(losses, lr)
    gradients = [_gradient(loss, parameters) for loss in losses]
    scale = lr / len(losses)
    return tuple(theta - scale * sum(each) for theta, each in zip(parameters, zip(*gradients)))


def sgd_step(
    parameters: Sequence[Float[Tensor, "..."]], losses: Float[Tensor, "n"], lr: float
) -> tuple[Float[Tensor, "..."], ...]:
    """`sgd_step_definition` by one gradient of the mean loss. The new parameters keep the graph that made them.

    So they can be differentiated once more, in the old parameters or in the data; detach them to go on without.

    Args:
        losses: l_i of each example of the batch B, differentiable in `parameters`.

    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> sgd_step([w], (w - torch.tensor([0.0, 4.0])).square() / 2, 0.5)[0].item()
    1.5

    Notes: Z3.8.
    """
    _check(losses, lr)
    return tuple(theta - lr * each for theta, each in zip(parameters, _gradient(losses.mean(), parameters)))


def _gradient(loss: Tensor, parameters: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, list(parameters), create_graph=True)


def _check(losses: Tensor, lr: float) -> None:
    check_shapes("n", losses=losses)
    if len(losses) == 0:
        raise UserError("expected the losses of at least one example, got none; leave out empty batches")
    if not losses.requires_grad:
        raise UserError(
            "expected losses that depend on the parameters, got ones without a gradient; compute them with gradients on"
        )
    if not (lr > 0 and math.isfinite(lr)):
        raise UserError(f"expected a positive, finite learning rate, got {lr}; give e.g. 0.1")
