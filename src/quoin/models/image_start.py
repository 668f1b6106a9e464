"""How the image models begin: the images they are built for, checked, and the weights they start from, drawn."""

import math
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import nn

from quoin.errors import Mistake, shown

__all__ = ["check_image_model", "start_image_weights"]

ImageShape = tuple[int, int, int]  # (channels, height, width)
Model = TypeVar("Model", bound=nn.Module)


def start_image_weights(model: Model, generator: torch.Generator | None = None) -> Model:
    """`model` with new weights, layer by layer in the order of `modules()`; every draw comes from `generator`.

    Convolutions: N(0, 2 / n), n = (output channels / groups) · (kernel area), the number of outputs that an input goes to: He's
    rule for the way back. Dense layers: N(0, 2 / inputs), He's rule for the way forward. Biases: zero. Normalisations: scale
    one, shift zero, and running averages as if nothing had run. Without a generator torch's own is used.
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
    """Refuse to build a model for what is no image, for images with a side under `smallest`, or for no class."""
    sizes = tuple(image_shape) if isinstance(image_shape, Sequence) else ()
    if len(sizes) != 3 or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise Mistake(f"expected image_shape as (channels, height, width), came {shown(image_shape)}; give e.g. (1, 28, 28)")
    if min(image_shape[1:]) < smallest:
        raise Mistake(
            f"expected images of at least {smallest} x {smallest} pixels, came {image_shape[1]} x {image_shape[2]}; "
            "enlarge them or choose a smaller model"
        )
    if not isinstance(num_classes, int) or num_classes < 1:
        raise Mistake(f"expected at least one class, came {shown(num_classes)}; give a whole number, e.g. 10")


def _draw(layer: nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.Linear, fan: int, generator: torch.Generator | None) -> None:
    if isinstance(layer.weight, nn.UninitializedParameter):
        raise Mistake("expected layers of known widths, came a lazy one; send one batch through the model first")
    layer.weight.normal_(0, math.sqrt(2 / fan), generator=generator)
    if layer.bias is not None:
        layer.bias.zero_()
