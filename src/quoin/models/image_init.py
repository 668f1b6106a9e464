"""How the image models begin: the images they are built for, checked, and their initial weights."""

import math
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import nn

from quoin.errors import UserError, format_value

__all__ = ["check_image_model", "init_image_weights"]

ImageShape = tuple[int, int, int]  # (channels, height, width)
Model = TypeVar("Model", bound=nn.Module)


def init_image_weights(model: Model, generator: torch.Generator | None = None) -> Model:
    """`model` with new weights, layer by layer in the order of `modules()`; every random number comes from `generator`.

    Convolutions: N(0, 2 / n), n = (output channels / groups) · (kernel area), the number of outputs that an input goes
    to: He's rule for the backward pass. Dense layers: N(0, 2 / inputs), He's rule for the forward pass. Biases: zero.
    Normalizations: scale one, shift zero, and running averages as if nothing had run. Without a generator torch's own
    is used.
    """
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d):
                fan_out = layer.out_channels // layer.groups * math.prod(layer.kernel_size)
                _draw(layer, fan_out, generator)
            elif isinstance(layer, nn.Linear):
                _draw(layer, layer.in_features, generator)
            elif isinstance(layer, nn.modules.batchnorm._NormBase | nn.GroupNorm | nn.LayerNorm):
                layer.reset_parameters()
    return model


def check_image_model(image_shape: ImageShape, num_classes: int, *, smallest: int) -> None:
    """Raise an error for what is no image shape, for images with a side under `smallest`, or for no class."""
    sizes = tuple(image_shape) if isinstance(image_shape, Sequence) else ()
    if len(sizes) != 3 or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise UserError(
            f"expected image_shape as (channels, height, width), got {format_value(image_shape)}; give e.g. (1, 28, 28)"
        )
    if min(image_shape[1:]) < smallest:
        raise UserError(
            f"expected images of at least {smallest} x {smallest} pixels, got {image_shape[1]} x {image_shape[2]}; "
            "enlarge them or choose a smaller model"
        )
    if not isinstance(num_classes, int) or num_classes < 1:
        raise UserError(f"expected at least one class, got {format_value(num_classes)}; give a whole number, e.g. 10")


def _draw(layer: nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.Linear, fan: int, generator: torch.Generator | None) -> None:
    if isinstance(layer.weight, nn.UninitializedParameter):
        raise UserError("expected layers of known sizes, got a lazy one; send one batch through the model first")
    layer.weight.normal_(0, math.sqrt(2 / fan), generator=generator)
    if layer.bias is not None:
        layer.bias.zero_()
