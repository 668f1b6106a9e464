"""From a loss of one example to the loss of many."""

from collections.abc import Callable

from torch import Tensor

from quoin.errors import Mistake

__all__ = ["empirical_risk"]


def empirical_risk(loss: Callable[[Tensor, Tensor], Tensor], prediction: Tensor, target: Tensor) -> Tensor:
    """The training loss: the mean over the examples, (1/n) sum_i l_i.

    >>> import torch
    >>> from quoin.objectives import squared_loss
    >>> empirical_risk(squared_loss, torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0]))
    tensor(2.5000)

    Notes: Z3.6, Z3.22.
    """
    losses = loss(prediction, target)
    if losses.numel() == 0:
        raise Mistake("expected at least one example to average over, came none; leave out empty batches")
    return losses.mean()
