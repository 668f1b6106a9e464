"""LeNet: two convolutions, each with a pooling, then three dense layers; it read digits on cheques in the nineties."""

import torch
from torch import nn

from quoin.layers import AvgPool2d, Tanh, keeps_global_rng
from quoin.models.image_classifier import ImageClassifier
from quoin.models.image_init import ImageShape, check_image_model, init_image_weights

__all__ = ["lenet", "small_lenet"]


@keeps_global_rng
def lenet(
    image_shape: ImageShape = (1, 28, 28), num_classes: int = 10, *, generator: torch.Generator | None = None
) -> ImageClassifier:
    """LeNet-5: 5 x 5 convolutions to 6 and 16 channels, tanh, average pooling; dense layers of 120 and 84 units; sides
    from 12.

    >>> sum(parameter.numel() for parameter in lenet().parameters())
    61706

    Notes: Z8.0.
    """
    check_image_model(image_shape, num_classes, smallest=12)
    channels, height, width = image_shape
    features = nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=2), Tanh(), AvgPool2d(2),
        nn.Conv2d(6, 16, 5), Tanh(), AvgPool2d(2), nn.Flatten(),
    )  # fmt: skip
    flat = 16 * ((height // 2 - 4) // 2) * ((width // 2 - 4) // 2)
    head = nn.Sequential(nn.Linear(flat, 120), Tanh(), nn.Linear(120, 84), Tanh(), nn.Linear(84, num_classes))
    return init_image_weights(ImageClassifier(features, head, image_shape), generator)


@keeps_global_rng
def small_lenet(
    image_shape: ImageShape, num_classes: int, *, generator: torch.Generator | None = None
) -> ImageClassifier:
    """LeNet as one would lay it today: padded 3 x 3 convolutions, ReLU, max pooling and more channels; sides from 8.

    Args:
        image_shape: (channels, height, width).

    Notes: Z8.0.
    """
    check_image_model(image_shape, num_classes, smallest=8)
    channels, height, width = image_shape
    features = nn.Sequential(
        nn.Conv2d(channels, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    )  # fmt: skip
    flat = 64 * (height // 4) * (width // 4)
    head = nn.Sequential(nn.Linear(flat, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, num_classes))
    return init_image_weights(ImageClassifier(features, head, image_shape), generator)
