"""Gradients of random minibatches: what stochastic gradient descent follows in the place of the whole gradient."""

from collections.abc import Callable

import torch
from torch import Tensor

from quoin.autodiff import gradient
from quoin.errors import Mistake

__all__ = ["MinibatchSlope", "batch_gradient"]

Losses = Callable[[Tensor, Tensor], Tensor]  # the point and the examples' numbers (b,) -> their losses (b,)


def batch_gradient(losses: Losses, x: Tensor, batch: Tensor) -> Tensor:  # (...), (b,) -> (...)
    """g_B = ∇ (1/|B|) sum_{i in B} l_i(θ); over all batches of one size its mean is the gradient of the mean loss.

    Notes: D1.5-6.
    """
    if batch.ndim != 1 or len(batch) == 0:
        raise Mistake(f"expected the numbers of one example or more, came shape {tuple(batch.shape)}; leave out empty batches")
    return gradient(lambda x: losses(x, batch).mean(), x)


class MinibatchSlope:
    """The gradient on a new random minibatch each time it is asked, drawn without replacement: a `slope` for `descend`.

    >>> data = torch.tensor([1.0, 2.0, 6.0])
    >>> slope = MinibatchSlope(lambda x, i: (x - data[i]) ** 2 / 2, 3, batch_size=3, generator=torch.Generator())
    >>> slope(torch.tensor(0.0))  # all three: the whole gradient
    tensor(-3.)

    Notes: D1.5-6.
    """

    def __init__(self, losses: Losses, num_examples: int, *, batch_size: int, generator: torch.Generator) -> None:
        if not 1 <= batch_size <= num_examples:
            raise Mistake(f"expected a batch of 1 to {num_examples} examples, came {batch_size}; choose a size between")
        self.losses, self.num_examples, self.batch_size, self.generator = losses, num_examples, batch_size, generator

    def __call__(self, x: Tensor) -> Tensor:
        order = torch.randperm(self.num_examples, generator=self.generator, device=self.generator.device)
        return batch_gradient(self.losses, x, order[: self.batch_size].to(x.device))
