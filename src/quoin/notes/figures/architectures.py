"""Named networks as diagrams of what they make of an image, plotted from the models themselves."""

import torch
from torch import nn

from quoin.inspect import intermediates
from quoin.models import num_parameters, vgg16
from quoin.notes.figures.figure import figure
from quoin.plot import Plot, Volume, volumes

_KINDS = {nn.Conv2d: "convolution and ReLU", nn.MaxPool2d: "max pooling", nn.Linear: "dense"}


@figure(
    "M1F",
    "VGG-16: five blocks of convolutions, each closed by a pooling; three dense layers; a softmax over the 1000 "
    "scores.",
    {"num_classes": (2, 100000), "image_size": (32, 1024)},
)
def vgg(num_classes: int = 1000, image_size: int = 224) -> Plot:
    with torch.device("meta"):  # shapes are all that is plotted: no number is computed
        model = vgg16(num_classes, image_shape=(3, image_size, image_size))
        steps = intermediates(model, torch.empty(1, *model.image_shape))
    outputs = [Volume(model.image_shape, "image", _size(model.image_shape))]
    for step in steps:
        if kind := _KINDS.get(type(step.module)):
            shape = tuple(step.output.shape[1:])
            inside_block = isinstance(step.module, nn.MaxPool2d) or kind == outputs[-1].kind == _KINDS[nn.Conv2d]
            outputs.append(Volume(shape, kind, "" if inside_block else _size(shape)))
    outputs.append(Volume(outputs[-1].shape, "softmax", "softmax"))
    return volumes(outputs, title=f"VGG-16: {num_parameters(model):,} parameters")


def _size(shape: tuple[int, ...]) -> str:
    """The image's side squared over the channels, which is narrower than height x width; the units alone of a dense
    layer."""
    channels, *sides = shape
    return f"{sides[0]}²\n×{channels}" if sides else str(channels)
