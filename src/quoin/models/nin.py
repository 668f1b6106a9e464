"""Network in network: after each convolution a small MLP at every pixel, and no dense layer at the end.

A 1 x 1 convolution is a dense layer over the channels, the same at every pixel. The last block has one channel for each
class, whose mean over the image is the logit.
"""

import torch
from torch import nn

from quoin.layers import keeps_global_rng
from quoin.models.image_classifier import ImageClassifier
from quoin.models.image_init import ImageShape, check_image_model, init_image_weights

__all__ = ["nin", "nin_block", "small_nin"]


def nin_block(
    in_channels: int, out_channels: int, kernel_size: int, *, stride: int = 1, padding: int = 0
) -> nn.Sequential:
    """A convolution and two 1 x 1 convolutions, each with ReLU: an MLP with two further layers slid over the image.

    Notes: Z8.0.
    """
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel_size, stride=stride, padding=padding), nn.ReLU(),
        nn.Conv2d(out_channels, out_channels, 1), nn.ReLU(),
        nn.Conv2d(out_channels, out_channels, 1), nn.ReLU(),
    )  # fmt: skip


@keeps_global_rng
def nin(
    num_classes: int = 1000, *, image_shape: ImageShape = (3, 224, 224), generator: torch.Generator | None = None
) -> ImageClassifier:
    """NiN at the scale of AlexNet: blocks of 96, 256, 384 and `num_classes` channels with poolings between; sides from
    67.

    Notes: Z8.0.
    """
    check_image_model(image_shape, num_classes, smallest=67)
    features = nn.Sequential(
        nin_block(image_shape[0], 96, 11, stride=4), nn.MaxPool2d(3, stride=2),
        nin_block(96, 256, 5, padding=2), nn.MaxPool2d(3, stride=2),
        nin_block(256, 384, 3, padding=1), nn.MaxPool2d(3, stride=2),
        nn.Dropout(0.5), nin_block(384, num_classes, 3, padding=1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip
    return init_image_weights(ImageClassifier(features, nn.Identity(), image_shape), generator)


@keeps_global_rng
def small_nin(
    image_shape: ImageShape, num_classes: int, *, generator: torch.Generator | None = None
) -> ImageClassifier:
    """NiN for small images: 3 x 3 blocks of 32, 64 and `num_classes` channels, two poolings; sides from 8.

    Args:
        image_shape: (channels, height, width).

    Notes: Z8.0.
    """
    check_image_model(image_shape, num_classes, smallest=8)
    features = nn.Sequential(
        nin_block(image_shape[0], 32, 3, padding=1), nn.MaxPool2d(2),
        nin_block(32, 64, 3, padding=1), nn.MaxPool2d(2),
        nn.Dropout(0.5), nin_block(64, num_classes, 3, padding=1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip
    return init_image_weights(ImageClassifier(features, nn.Identity(), image_shape), generator)
