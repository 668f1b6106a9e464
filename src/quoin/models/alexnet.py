"""AlexNet: five convolutions with ReLU and overlapping poolings, then three dense layers under dropout."""

import re

import torch
from torch import nn

from quoin.layers import keeps_global_rng
from quoin.models.image_classifier import ImageClassifier
from quoin.models.image_init import ImageShape, check_image_model, init_image_weights
from quoin.models.pretrained import Weights, load_renamed

__all__ = ["alexnet", "load_torchvision_alexnet", "small_alexnet"]


@keeps_global_rng
def alexnet(
    num_classes: int = 1000, *, image_shape: ImageShape = (3, 224, 224), generator: torch.Generator | None = None
) -> ImageClassifier:
    """AlexNet as torchvision has it (one tower, no local response normalization): 61,100,840 parameters for 1000
    classes.

    Images have sides of at least 63, below which the last pooling has nothing to pool; what it leaves is averaged to 6
    x 6, which at 224 x 224 it already is.

    Notes: D1-8b, Z8.0.
    """
    check_image_model(image_shape, num_classes, smallest=63)
    features = nn.Sequential(
        nn.Conv2d(image_shape[0], 64, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, stride=2),
        nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, stride=2),
        nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(),
        nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, stride=2),
        nn.AdaptiveAvgPool2d(6), nn.Flatten(),
    )  # fmt: skip
    model = ImageClassifier(features, _head(256 * 6 * 6, 4096, num_classes), image_shape)
    return init_image_weights(model, generator)


@keeps_global_rng
def small_alexnet(
    image_shape: ImageShape, num_classes: int, *, generator: torch.Generator | None = None
) -> ImageClassifier:
    """AlexNet for small images: 3 x 3 kernels, no stride, half the channels or fewer, one pooling less; sides from 8.

    Args:
        image_shape: (channels, height, width).

    Notes: D1-8b, Z8.0.
    """
    check_image_model(image_shape, num_classes, smallest=8)
    features = nn.Sequential(
        nn.Conv2d(image_shape[0], 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1),
        nn.Conv2d(64, 96, 3, padding=1), nn.ReLU(),
        nn.Conv2d(96, 64, 3, padding=1), nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(),
    )  # fmt: skip
    model = ImageClassifier(features, _head(64 * 2 * 2, 128, num_classes), image_shape)
    return init_image_weights(model, generator)


def load_torchvision_alexnet(model: ImageClassifier, weights: Weights) -> None:
    """Fill `alexnet` from torchvision's `state_dict`, given as such or as the path of a safetensors file.

    The names differ in that our `head` is its `classifier`.
    """
    load_renamed(model, weights, lambda name: re.sub(r"^head\.", "classifier.", name))


def _head(in_features: int, hidden_dim: int, num_classes: int) -> nn.Sequential:
    """An MLP with two hidden layers, dropout before each."""
    return nn.Sequential(
        nn.Dropout(0.5), nn.Linear(in_features, hidden_dim), nn.ReLU(),
        nn.Dropout(0.5), nn.Linear(hidden_dim, hidden_dim), nn.ReLU(),
        nn.Linear(hidden_dim, num_classes),
    )  # fmt: skip
