"""VGG: blocks of padded 3 x 3 convolutions, each block closed by a pooling that halves the image, then dense layers.

Two 3 x 3 convolutions see as far as one 5 x 5, with fewer weights and one ReLU more: depth instead of wide kernels.
"""

import re
from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import nn

from quoin.layers import keeps_global_rng
from quoin.models.image_classifier import ImageClassifier
from quoin.models.image_init import ImageShape, check_image_model, init_image_weights
from quoin.models.pretrained import Weights, load_renamed

__all__ = ["load_torchvision_vgg", "small_vgg", "vgg11", "vgg16", "vgg19", "vgg_block"]

_CHANNELS = (64, 128, 256, 512, 512)


def vgg_block(
    num_convolutions: int, in_channels: int, out_channels: int
) -> nn.Sequential:  # (n, in_channels, h, w) -> (n, out_channels, h // 2, w // 2)
    """So many 3 x 3 convolutions with ReLU, which keep the image's size, and a 2 x 2 max pooling, which halves it.

    Notes: M1.
    """
    layers: list[nn.Module] = []
    for number in range(num_convolutions):
        layers += [nn.Conv2d(out_channels if number else in_channels, out_channels, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.MaxPool2d(2))


def vgg11(
    num_classes: int = 1000, *, image_shape: ImageShape = (3, 224, 224), generator: torch.Generator | None = None
) -> ImageClassifier:
    """VGG with eleven layers of weights: blocks of 1, 1, 2, 2, 2 convolutions and three dense layers; see `vgg16`.

    Notes: Z8.0.
    """
    return _full((1, 1, 2, 2, 2), num_classes, image_shape, generator)


def vgg16(
    num_classes: int = 1000, *, image_shape: ImageShape = (3, 224, 224), generator: torch.Generator | None = None
) -> ImageClassifier:
    """VGG with sixteen layers of weights: blocks of 2, 2, 3, 3, 3 convolutions and three dense layers.

    138,357,544 parameters for colour images and 1000 classes: 14,714,688 in the convolutions, 123,642,856 in the dense
    layers. Images have sides of at least 32: what the last block leaves is averaged to 7 x 7, which at 224 x 224 it
    already is.

    Notes: M1, Z8.0.
    """
    return _full((2, 2, 3, 3, 3), num_classes, image_shape, generator)


def vgg19(
    num_classes: int = 1000, *, image_shape: ImageShape = (3, 224, 224), generator: torch.Generator | None = None
) -> ImageClassifier:
    """VGG with nineteen layers of weights: blocks of 2, 2, 4, 4, 4 convolutions and three dense layers; see `vgg16`.

    Notes: Z8.0.
    """
    return _full((2, 2, 4, 4, 4), num_classes, image_shape, generator)


@keeps_global_rng
def small_vgg(
    image_shape: ImageShape, num_classes: int, *, generator: torch.Generator | None = None
) -> ImageClassifier:
    """VGG for small images: as many blocks of two convolutions, 32 channels and up, as leave at least 2 x 2; sides from
    8.

    Args:
        image_shape: (channels, height, width).

    Notes: Z8.0.
    """
    check_image_model(image_shape, num_classes, smallest=8)
    num_blocks = min(image_shape[1:]).bit_length() - 2
    channels = [min(32 * 2**number, 128) for number in range(num_blocks)]
    model = _vgg([2] * num_blocks, channels, 2, 128, num_classes, image_shape)
    return init_image_weights(model, generator)


def load_torchvision_vgg(model: ImageClassifier, weights: Weights) -> None:
    """Fill `vgg11`, `vgg16` or `vgg19` from torchvision's `state_dict` of the same depth, given as such or as a
    safetensors path.

    torchvision counts through all blocks: our `features.1.0` is its `features.5` in VGG-16; our `head` is its
    `classifier`.
    """
    offsets = list(accumulate((len(list(block.children())) for block in model.features.children()), initial=0))

    def theirs(name: str) -> str:
        counted = re.sub(r"^features\.(\d+)\.(\d+)\.", lambda at: f"features.{offsets[int(at[1])] + int(at[2])}.", name)
        return re.sub(r"^head\.", "classifier.", counted)

    load_renamed(model, weights, theirs)


@keeps_global_rng
def _full(
    block_config: Sequence[int], num_classes: int, image_shape: ImageShape, generator: torch.Generator | None
) -> ImageClassifier:
    check_image_model(image_shape, num_classes, smallest=32)
    return init_image_weights(_vgg(block_config, _CHANNELS, 7, 4096, num_classes, image_shape), generator)


def _vgg(
    block_config: Sequence[int],
    channels: Sequence[int],
    side: int,
    hidden_dim: int,
    num_classes: int,
    image_shape: ImageShape,
) -> ImageClassifier:
    """Blocks, an average to `side` x `side`, and an MLP with two hidden layers under dropout."""
    in_channels = [image_shape[0], *channels[:-1]]
    blocks = [vgg_block(*sizes) for sizes in zip(block_config, in_channels, channels, strict=True)]
    features = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(side), nn.Flatten())
    head = nn.Sequential(
        nn.Linear(channels[-1] * side * side, hidden_dim), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(hidden_dim, hidden_dim), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(hidden_dim, num_classes),
    )  # fmt: skip
    return ImageClassifier(features, head, image_shape)
