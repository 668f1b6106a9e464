"""Gradients of random minibatches: what stochastic gradient descent follows instead of the whole gradient."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from quoin.autodiff import gradient
from quoin.display import shown
from quoin.errors import UserError

__all__ = ["MinibatchGradient", "minibatch_gradient"]

Losses = Callable[[Tensor, Tensor], Tensor]  # the point and the examples' numbers (b,) -> their losses (b,)


def minibatch_gradient(
    losses: Losses, x: Float[Tensor, "*shape"], batch: Integer[Tensor, "b"]
) -> Float[Tensor, "*shape"]:
    """g_B = ∇ (1/|B|) sum_{i in B} l_i(θ); over all batches of one size its mean is the gradient of the mean loss.

    Args:
        losses: Takes θ and the numbers of some examples to their losses l_i(θ).
        x: θ.
        batch: B, the numbers of its examples.

    Notes: D1.5-6.
    """
    if batch.ndim != 1 or len(batch) == 0:
        raise UserError(
            f"expected the numbers of one example or more, got shape {tuple(batch.shape)}; leave out empty batches"
        )
    return gradient(lambda x: losses(x, batch).mean(), x)


@shown
class MinibatchGradient:
    """The gradient on a new random minibatch at each call, sampled without replacement: a `gradient` for `descend`.

    Args:
        losses: Takes the point and the numbers of some examples to their losses.
        num_examples: Of all data; they are numbered from 0.

    >>> data = torch.tensor([1.0, 2.0, 6.0])
    >>> gradient = MinibatchGradient(lambda x, i: (x - data[i]) ** 2 / 2, 3, batch_size=3, generator=torch.Generator())
    >>> gradient(torch.tensor(0.0))  # all three: the whole gradient
    tensor(-3.)

    Notes: D1.5-6.
    """

    def __init__(self, losses: Losses, num_examples: int, *, batch_size: int, generator: torch.Generator) -> None:
        if not 1 <= batch_size <= num_examples:
            raise UserError(
                f"expected a batch of 1 to {num_examples} examples, got {batch_size}; choose a size between"
            )
        self.losses, self.num_examples, self.batch_size, self.generator = losses, num_examples, batch_size, generator

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        order = torch.randperm(self.num_examples, generator=self.generator, device=self.generator.device)
        return minibatch_gradient(self.losses, x, order[: self.batch_size].to(x.device))
