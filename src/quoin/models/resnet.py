"""Residual networks: a stem, stages of residual blocks that halve the image, the mean over the pixels, a linear head.

The blocks are in quoin.layers. Names of weights are torchvision's (`conv1.weight`, `layer2.0.downsample.0.weight`,
`fc.bias`), and so is the stride of a bottleneck, on its 3x3 convolution.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.layers import BasicBlock, Bottleneck, keeps_global_rng
from quoin.models.image_init import ImageShape, check_image_model, init_image_weights
from quoin.models.pretrained import Weights, load_renamed
from quoin.tensor import check_image_batch

__all__ = [
    "ResNet",
    "cifar_resnet18",
    "huggingface_resnet_name",
    "load_huggingface_resnet",
    "load_torchvision_resnet",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "small_resnet",
]

Block = Callable[[int, int, int], nn.Module]  # (in_channels, out_channels, stride)

_KINDS = {"conv": "convolution", "bn": "normalization"}  # as Hugging Face calls them
WIDTHS = (64, 128, 256, 512)  # of the four stages; a bottleneck gives out four times as much


class ResNet(nn.Module):
    """fc(mean over pixels of stage_4(... stage_1(pool(relu(bn1(conv1(x))))))), for images of one shape.

    `block(in_channels, out_channels, stride)` builds a block, and stage i holds `num_blocks[i]` of them, with
    `out_channels[i]` channels; all stages but the first begin with stride 2. Any stem and block will do, so ResNeXt is
    this class too. Weights start as `init_image_weights` says.

    Notes: Z8.9, Z8.0.
    """

    @keeps_global_rng
    def __init__(
        self,
        image_shape: ImageShape,
        num_classes: int,
        *,
        stem: nn.Conv2d,
        pool: nn.Module,
        block: Block,
        num_blocks: Sequence[int],
        out_channels: Sequence[int],
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.image_shape = image_shape
        self.conv1 = stem
        self.bn1 = nn.BatchNorm2d(stem.out_channels)
        self.relu = nn.ReLU()
        self.maxpool = pool
        channels = [stem.out_channels, *out_channels]
        for number, ((before, after), depth) in enumerate(zip(pairwise(channels), num_blocks, strict=True), start=1):
            first = block(before, after, 1 if number == 1 else 2)
            self.add_module(f"layer{number}", nn.Sequential(first, *(block(after, after, 1) for _ in range(depth - 1))))
        self.num_stages = len(num_blocks)
        self.fc = nn.Linear(channels[-1], num_classes)
        init_image_weights(self, generator)

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        check_image_batch(x, self.image_shape)
        h = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for number in range(1, self.num_stages + 1):
            h = getattr(self, f"layer{number}")(h)
        return self.fc(h.mean(dim=(2, 3)))


def large_stem(channels: int) -> nn.Conv2d:
    """The 7x7 convolution that large images begin with; with the pooling after it they have a quarter of their side
    left."""
    return nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)


def large_pool() -> nn.Module:
    return nn.MaxPool2d(3, stride=2, padding=1)


def small_stem(channels: int, out_channels: int) -> nn.Conv2d:
    """A 3x3 convolution, for images that have no pixels to spare."""
    return nn.Conv2d(channels, out_channels, 3, padding=1, bias=False)


def _basic(in_channels: int, out_channels: int, stride: int) -> nn.Module:
    return BasicBlock(in_channels, out_channels, stride=stride)


def _bottleneck(in_channels: int, out_channels: int, stride: int) -> nn.Module:
    return Bottleneck(in_channels, out_channels // 4, stride=stride)


@keeps_global_rng
def _large(
    block: Block,
    num_blocks: Sequence[int],
    expansion: int,
    num_classes: int,
    image_shape: ImageShape,
    generator: torch.Generator | None,
) -> ResNet:
    check_image_model(image_shape, num_classes, smallest=32)
    out_channels = [expansion * width for width in WIDTHS]
    stem = large_stem(image_shape[0])
    return ResNet(
        image_shape,
        num_classes,
        stem=stem,
        pool=large_pool(),
        block=block,
        num_blocks=num_blocks,
        out_channels=out_channels,
        generator=generator,
    )


def resnet18(
    num_classes: int = 1000, *, image_shape: ImageShape = (3, 224, 224), generator: torch.Generator | None = None
) -> ResNet:
    """ResNet-18: two basic blocks in each of four stages; images of 32 x 32 pixels or more.

    Notes: Z8.9, Z8.0.
    """
    return _large(_basic, (2, 2, 2, 2), 1, num_classes, image_shape, generator)


def resnet34(
    num_classes: int = 1000, *, image_shape: ImageShape = (3, 224, 224), generator: torch.Generator | None = None
) -> ResNet:
    """ResNet-34: 3, 4, 6 and 3 basic blocks.

    Notes: Z8.9, Z8.0.
    """
    return _large(_basic, (3, 4, 6, 3), 1, num_classes, image_shape, generator)


def resnet50(
    num_classes: int = 1000, *, image_shape: ImageShape = (3, 224, 224), generator: torch.Generator | None = None
) -> ResNet:
    """ResNet-50: 3, 4, 6 and 3 bottlenecks.

    Notes: Z8.9, Z8.0.
    """
    return _large(_bottleneck, (3, 4, 6, 3), 4, num_classes, image_shape, generator)


def resnet101(
    num_classes: int = 1000, *, image_shape: ImageShape = (3, 224, 224), generator: torch.Generator | None = None
) -> ResNet:
    """ResNet-101: 3, 4, 23 and 3 bottlenecks.

    Notes: Z8.9, Z8.0.
    """
    return _large(_bottleneck, (3, 4, 23, 3), 4, num_classes, image_shape, generator)


@keeps_global_rng
def cifar_resnet18(num_classes: int = 10, *, generator: torch.Generator | None = None) -> ResNet:
    """ResNet-18 for 3 x 32 x 32 images: a 3x3 stem and no pooling before the stages, so that the last one still sees 4
    x 4 pixels.

    Notes: Z8.9, Z8.0.
    """
    image_shape = (3, 32, 32)
    check_image_model(image_shape, num_classes, smallest=32)
    stem, pool = small_stem(3, 64), nn.Identity()
    return ResNet(
        image_shape,
        num_classes,
        stem=stem,
        pool=pool,
        block=_basic,
        num_blocks=(2, 2, 2, 2),
        out_channels=WIDTHS,
        generator=generator,
    )


@keeps_global_rng
def small_resnet(image_shape: ImageShape, num_classes: int, *, generator: torch.Generator | None = None) -> ResNet:
    """A residual network for images from 8 x 8 pixels: 3x3 stem, three stages of two basic blocks with 16, 32 and 64
    channels.

    >>> model = small_resnet((1, 8, 8), 10, generator=torch.Generator().manual_seed(0))
    >>> model(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])

    Notes: Z8.9, Z8.0.
    """
    check_image_model(image_shape, num_classes, smallest=8)
    stem, pool = small_stem(image_shape[0], 16), nn.Identity()
    return ResNet(
        image_shape,
        num_classes,
        stem=stem,
        pool=pool,
        block=_basic,
        num_blocks=(2, 2, 2),
        out_channels=(16, 32, 64),
        generator=generator,
    )


def load_torchvision_resnet(model: ResNet, weights: Weights) -> None:
    """Fill a ResNet or ResNeXt from torchvision's `state_dict` of the same depth, given as such or as a safetensors
    path.

    The names are ours, letter for letter.
    """
    load_renamed(model, weights, str)


def load_huggingface_resnet(model: ResNet, weights: Weights) -> None:
    """Fill a ResNet from the `state_dict` of a `ResNetForImageClassification` of the same sizes, or from a safetensors
    file of one."""
    load_renamed(model, weights, huggingface_resnet_name)


def huggingface_resnet_name(name: str) -> str:
    """What Hugging Face calls a tensor of ours.

    >>> huggingface_resnet_name("layer2.0.bn1.bias")
    'resnet.encoder.stages.1.layers.0.layer.0.normalization.bias'
    """
    part, kind = name.rsplit(".", 1)
    if part == "fc":
        return f"classifier.1.{kind}"
    if part in ("conv1", "bn1"):
        return f"resnet.embedder.embedder.{_KINDS[part[:-1]]}.{kind}"
    stage, block, rest = part.removeprefix("layer").split(".", 2)
    home = f"resnet.encoder.stages.{int(stage) - 1}.layers.{block}"
    if rest.startswith("downsample."):
        return f"{home}.shortcut.{('convolution', 'normalization')[int(rest[-1])]}.{kind}"
    return f"{home}.layer.{int(rest[-1]) - 1}.{_KINDS[rest[:-1]]}.{kind}"
