"""ResNeXt: a residual network whose bottlenecks are many narrow ones side by side, computed as one grouped
convolution."""

import torch
from torch import nn

from quoin.layers import ResNeXtBlock, keeps_global_rng
from quoin.models.image_init import ImageShape, check_image_model
from quoin.models.resnet import Block, ResNet, large_pool, large_stem, small_stem

__all__ = ["resnext50", "small_resnext"]


@keeps_global_rng
def resnext50(
    num_classes: int = 1000, *, image_shape: ImageShape = (3, 224, 224), generator: torch.Generator | None = None
) -> ResNet:
    """ResNeXt-50 (32x4d): the depths of ResNet-50, in its first stage 32 branches of 4 channels, twice as wide in each
    next one.

    Notes: Z8.9, Z8.0.
    """
    check_image_model(image_shape, num_classes, smallest=32)
    return ResNet(
        image_shape,
        num_classes,
        stem=large_stem(image_shape[0]),
        pool=large_pool(),
        block=_branches(32, narrowing=2),
        num_blocks=(3, 4, 6, 3),
        out_channels=(256, 512, 1024, 2048),
        generator=generator,
    )


@keeps_global_rng
def small_resnext(image_shape: ImageShape, num_classes: int, *, generator: torch.Generator | None = None) -> ResNet:
    """A ResNeXt for images from 8 x 8 pixels: 3x3 stem, three stages of two blocks with 32, 64 and 128 channels, 8
    branches each.

    >>> model = small_resnext((1, 8, 8), 10, generator=torch.Generator().manual_seed(0))
    >>> model(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])

    Notes: Z8.9, Z8.0.
    """
    check_image_model(image_shape, num_classes, smallest=8)
    return ResNet(
        image_shape,
        num_classes,
        stem=small_stem(image_shape[0], 32),
        pool=nn.Identity(),
        block=_branches(8, narrowing=2),
        num_blocks=(2, 2, 2),
        out_channels=(32, 64, 128),
        generator=generator,
    )


def _branches(groups: int, narrowing: int) -> Block:
    """Blocks whose branches together are `narrowing` times narrower than the output."""

    def block(in_channels: int, out_channels: int, stride: int) -> nn.Module:
        return ResNeXtBlock(
            in_channels,
            out_channels,
            groups=groups,
            width_per_group=out_channels // (narrowing * groups),
            stride=stride,
        )

    return block
