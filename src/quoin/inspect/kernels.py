"""What a model has learnt to look for: the kernels of a convolution, or the weights of a dense layer on the pixels, as
small images.
"""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError, did_you_mean, format_value
from quoin.inspect.layer_outputs import find_layer
from quoin.plot import Plot, feature_map_rows

__all__ = ["Kernels", "kernels", "pixel_weights", "plot_kernels"]

_UNITS, _CHANNELS = 32, 8  # as many as fit into a plot


@shown
class Kernels(NamedTuple):
    """The weights of one layer, each unit's as an image of small numbers."""

    layer: str
    weight: Float[Tensor, "units channels height width"]  # the channels are those that a unit reads


def kernels(model: nn.Module, layer: str | None = None) -> Kernels:
    """The learnt kernels of the convolution `layer`, or of the model's first one."""
    found = {name: module for name, module in model.named_modules() if isinstance(module, nn.Conv2d)}
    if layer is None:
        if not found:
            raise UserError(
                f"expected a model with torch.nn.Conv2d modules, got {type(model).__name__} with none; see "
                "pixel_weights"
            )
        layer = next(iter(found))
    elif layer not in found:
        kind = type(find_layer(model, layer)).__name__
        hint = did_you_mean(layer, found) if found else "there is none"
        raise UserError(f"expected the name of a convolution, got {format_value(layer)}, a {kind}; {hint}")
    return Kernels(layer, found[layer].weight.detach())


def pixel_weights(model: nn.Module, image_shape: tuple[int, int, int]) -> Kernels:
    """The weights of the model's first dense layer that reads whole images (channels, height, width), as images: what
    each of its units looks for."""
    channels, height, width = image_shape
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            if module.in_features != channels * height * width:
                break  # a later one of the right in_features reads something else
            return Kernels(name, module.weight.detach().reshape(-1, *image_shape))
    raise UserError(
        f"expected a first dense layer of {channels * height * width} inputs, got {type(model).__name__} without; "
        "see kernels"
    )


def plot_kernels(found: Kernels) -> Plot:
    """Red weights are negative, blue ones positive. Layers that read one channel as a grid; else a row a unit, a column
    a channel."""
    units, channels = found.weight.shape[:2]
    if channels == 1:
        return feature_map_rows({f"{found.layer}\n{units} units": found.weight[:_UNITS, 0]})
    return feature_map_rows({f"unit {unit}": found.weight[unit, :_CHANNELS] for unit in range(min(units, _CHANNELS))})
