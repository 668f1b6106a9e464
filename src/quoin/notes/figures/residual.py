"""Residual blocks: three columns of convolutions, each with the way round it, read from the blocks themselves."""

import torch
from torch import Tensor, nn

from quoin.layers import BasicBlock, Bottleneck, ResNeXtBlock
from quoin.notes.figures.figure import figure
from quoin.plot import Box, Plot, graph
from quoin.plot.palette import LIGHT

CONVOLUTION, SHORTCUT, SUM = LIGHT.tints[0], LIGHT.tints[3], LIGHT.tints[2]


@figure(
    ["Z8.9", "D1.6-15"],
    "Three residual blocks: two 3x3 convolutions; a bottleneck of 1x1, 3x3 and 1x1 that halves the image, its "
    "shortcut a 1x1 convolution; "
    "and a ResNeXt block, whose 3x3 convolution has 32 groups.",
    {"image_size": (2, 512)},
)
def residual_blocks(image_size: int = 56) -> Plot:
    boxes: list[Box] = []
    edges: list[tuple[int, int]] = []
    with torch.device("meta"):  # shapes alone
        _unfold("basic block", BasicBlock(64, 64), torch.zeros(1, 64, image_size, image_size), boxes, edges)
        _unfold("bottleneck", Bottleneck(256, 128, stride=2), torch.zeros(1, 256, image_size, image_size), boxes, edges)
        _unfold("ResNeXt block", ResNeXtBlock(256, 256), torch.zeros(1, 256, image_size, image_size), boxes, edges)
    return graph(boxes, edges, title="Residual blocks: φ(F(x) + s(x))")


def _unfold(name: str, block: nn.Module, x: Tensor, boxes: list[Box], edges: list[tuple[int, int]]) -> None:
    """Boxes for the block's convolutions, each with the shape of its output for x."""
    convolutions = {key: module for key, module in block.named_modules() if isinstance(module, nn.Conv2d)}
    shapes: dict[str, str] = {}

    def record(key: str):
        def hook(module: nn.Module, given: tuple[Tensor, ...], found: Tensor) -> None:
            shapes[key] = _size(found)

        return hook

    for key, module in convolutions.items():
        module.register_forward_hook(record(key))
    output = block(x)
    start = len(boxes)
    boxes.append(Box(name, (f"x: {_size(x)}",)))
    main = [key for key in convolutions if not key.startswith("downsample")]
    for key in main:
        after = "normalize" if key == main[-1] else "normalize, ReLU"
        boxes.append(Box(_words(convolutions[key]), (after, shapes[key]), CONVOLUTION))
        edges.append((len(boxes) - 2, len(boxes) - 1))
    ends = [len(boxes) - 1, start]
    for key in convolutions.keys() - set(main):  # at most one: the shortcut where it is not the identity
        boxes.append(Box(_words(convolutions[key]), ("normalize", shapes[key]), SHORTCUT))
        edges.append((start, len(boxes) - 1))
        ends[1] = len(boxes) - 1
    boxes.append(Box("F(x) + s(x), ReLU", (_size(output),), SUM))
    edges.extend((end, len(boxes) - 1) for end in ends)


def _words(convolution: nn.Conv2d) -> str:
    side = convolution.kernel_size[0]
    stride = f", stride {convolution.stride[0]}" if convolution.stride[0] > 1 else ""
    groups = f", {convolution.groups} groups" if convolution.groups > 1 else ""
    return f"{side}×{side}{stride}{groups}"


def _size(images: Tensor) -> str:
    return " × ".join(str(size) for size in images.shape[1:])
