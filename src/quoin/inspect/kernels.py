"""What a model has learnt to look for: the kernels of a convolution, or the weights of a dense layer on the pixels, as small pictures."""

from typing import NamedTuple

from torch import Tensor, nn

from quoin.errors import Mistake, nearest, shown
from quoin.inspect.layer_outputs import find_layer
from quoin.plot import Drawing, map_rows

__all__ = ["Kernels", "draw_kernels", "kernels", "pixel_weights"]

_UNITS, _CHANNELS = 32, 8  # as many as a picture has room for


class Kernels(NamedTuple):
    """The weights of one layer, each unit's as an image of small numbers."""

    path: str
    weight: Tensor  # (units, input channels a unit reads, height, width)


def kernels(model: nn.Module, path: str | None = None) -> Kernels:
    """The learnt kernels of the convolution `path`, or of the model's first one."""
    found = {name: module for name, module in model.named_modules() if isinstance(module, nn.Conv2d)}
    if path is None:
        if not found:
            raise Mistake(f"expected a model with torch.nn.Conv2d modules, came {type(model).__name__} with none; see pixel_weights")
        path = next(iter(found))
    elif path not in found:
        kind = type(find_layer(model, path)).__name__
        hint = nearest(path, found) if found else "there is none"
        raise Mistake(f"expected the name of a convolution, came {shown(path)}, a {kind}; {hint}")
    return Kernels(path, found[path].weight.detach())


def pixel_weights(model: nn.Module, image_shape: tuple[int, int, int]) -> Kernels:  # (c, h, w)
    """The weights of the model's first dense layer that reads whole images, as images: what each of its units looks for."""
    channels, height, width = image_shape
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            if module.in_features != channels * height * width:
                break  # a later one of the right width reads something else
            return Kernels(name, module.weight.detach().reshape(-1, *image_shape))
    raise Mistake(f"expected a first dense layer of {channels * height * width} inputs, came {type(model).__name__} without; see kernels")


def draw_kernels(found: Kernels) -> Drawing:
    """Red weights are negative, blue ones positive. Layers that read one channel as a grid; else a row a unit, a column a channel."""
    units, channels = found.weight.shape[:2]
    if channels == 1:
        return map_rows({f"{found.path}\n{units} units": found.weight[:_UNITS, 0]})
    return map_rows({f"unit {unit}": found.weight[unit, :_CHANNELS] for unit in range(min(units, _CHANNELS))})
