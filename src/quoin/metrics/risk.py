"""From a loss of one example to the loss of many: of those learned from, and of those held out."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Float64, Shaped
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor.eval_mode import eval_mode

__all__ = ["empirical_risk", "held_out_loss", "held_out_losses"]


def empirical_risk(
    loss: Callable[[Tensor, Tensor], Tensor], prediction: Shaped[Tensor, "..."], target: Shaped[Tensor, "..."]
) -> Float[Tensor, ""]:
    """The training loss: the mean over the examples, (1/n) sum_i l_i.

    Args:
        loss: Takes predictions and targets to one number for each example, not to their mean.

    >>> import torch
    >>> from quoin.losses import squared_loss
    >>> empirical_risk(squared_loss, torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0]))
    tensor(2.5000)

    Notes: Z3.6, Z3.22, D1.3-3.
    """
    losses = loss(prediction, target)
    if losses.numel() == 0:
        raise UserError("expected at least one example to average over, got none; leave out empty batches")
    return losses.mean()


def held_out_loss(
    model: Callable[[Tensor], Tensor],
    loss: Callable[[Tensor, Tensor], Tensor],
    x: Shaped[Tensor, "n ..."],
    y: Shaped[Tensor, "n ..."],
    *,
    batch_size: int = 4096,
) -> float:
    """The test loss: (1/n) sum_i loss(f(x_i), y_i) over examples that training did not see, worked off in batches.

    A module is put into evaluation mode meanwhile; every example counts once, whatever the batches.

    Args:
        loss: Takes predictions and targets to one number for each example, not to their mean.

    Notes: D1.3-5.
    """
    return float(held_out_losses(model, loss, x, y, batch_size=batch_size).mean())


@torch.no_grad()
def held_out_losses(
    model: Callable[[Tensor], Tensor],
    loss: Callable[[Tensor, Tensor], Tensor],
    x: Shaped[Tensor, "n ..."],
    y: Shaped[Tensor, "n ..."],
    *,
    batch_size: int = 4096,
) -> Float64[Tensor, "n ..."]:
    """The losses of which `held_out_loss` is the mean, one for each example, in float64 on the CPU."""
    if len(x) != len(y) or len(y) == 0 or batch_size < 1:
        raise UserError(
            "expected as many targets as examples, at least one, in batches of at least one, got x of shape "
            f"{tuple(x.shape)}, "
            f"y of shape {tuple(y.shape)} and batches of {batch_size}; pair them up"
        )
    with eval_mode(model):
        losses = [
            loss(model(some), targets) for some, targets in zip(x.split(batch_size), y.split(batch_size), strict=True)
        ]
    if any(each.shape[:1] != targets.shape[:1] for each, targets in zip(losses, y.split(batch_size), strict=True)):
        raise UserError(
            f"expected one loss for each example, got shape {tuple(losses[0].shape)}; give a loss that is not averaged"
        )
    return torch.cat(losses).cpu().double()
