"""Batch normalization in a model: added from outside, and an error for batches too small for it before they are met.

What it computes is in norm.py.
"""

import copy
from typing import TypeVar

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.tensor.eval_mode import eval_mode

__all__ = ["add_batch_norm", "check_batch_norm"]

Model = TypeVar("Model", bound=nn.Module)

KINDS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


def add_batch_norm(model: Model) -> Model:
    """A copy of `model`, same weights, in which every `Conv2d` is followed by a `BatchNorm2d` and has no bias, for that
    would cancel.

    >>> model = add_batch_norm(nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU()))
    >>> [type(module).__name__ for module in model[0]], model[0][0].bias
    (['Conv2d', 'BatchNorm2d'], None)

    Notes: Z8.7.
    """
    if any(isinstance(module, KINDS) for module in model.modules()):
        raise UserError(
            f"expected a model without batch normalization, got {type(model).__name__} with some; use it as it is"
        )
    model = copy.deepcopy(model)
    found = [
        (holder, name, each)
        for holder in model.modules()
        for name, each in holder.named_children()
        if isinstance(each, nn.Conv2d)
    ]
    if not found:
        raise UserError(
            f"expected a model with a torch.nn.Conv2d inside, got {type(model).__name__} with none; give a "
            "convolutional one"
        )
    for holder, name, convolution in found:
        convolution.register_parameter("bias", None)
        norm = nn.BatchNorm2d(convolution.out_channels).to(convolution.weight)
        setattr(holder, name, nn.Sequential(convolution, norm))
    return model


@torch.no_grad()
def check_batch_norm(model: nn.Module, batch: Shaped[Tensor, "..."]) -> None:
    """Raise an error for a training batch that leaves a batch normalization of `model` one value a channel: each would
    be its own mean.

    Nothing is learned on the way: the model runs in evaluation mode, and every module is left in the mode it was in.

    >>> check_batch_norm(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), torch.zeros(2, 3))
    """

    def check(name: str):
        def hook(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            if inputs[0].numel() == inputs[0].shape[1]:
                where = f"layer {name} ({type(layer).__name__})" if name else type(layer).__name__
                raise UserError(
                    f"expected more than one value a channel in {where} while training, got one: a batch of "
                    f"{batch.shape[0]} is too small "
                    "for its mean and variance; choose a --batch-size that leaves no such rest"
                )

        return hook

    hooks = [
        module.register_forward_pre_hook(check(name))
        for name, module in model.named_modules()
        if isinstance(module, KINDS)
    ]
    try:
        if hooks:
            with eval_mode(model):
                model(batch)
    finally:
        for hook in hooks:
            hook.remove()
