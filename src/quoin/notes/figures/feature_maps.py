"""What the layers of a small convolutional network make of one digit, once it has learned to read."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.data import keyed_generator, load
from quoin.inspect import FeatureMaps, feature_maps, plot_feature_maps
from quoin.losses import cross_entropy
from quoin.models import small_lenet
from quoin.notes.figures.figure import figure
from quoin.plot import Plot

BATCH = 64


def learned(
    model: nn.Module,
    images: Float[Tensor, "n c h w"],
    labels: Int[Tensor, "n"],
    generator: torch.Generator,
    num_epochs: int,
) -> nn.Module:
    """A few passes over the data: enough for the kernels to be about strokes."""
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(num_epochs):
        for rows in torch.randperm(len(images), generator=generator).split(BATCH):
            optimizer.zero_grad()
            cross_entropy(model(images[rows]), labels[rows]).mean().backward()
            optimizer.step()
    return model


@figure(
    "D1.1F1",
    "The feature maps of a small LeNet that reads a 3: strokes first, then smaller, less local maps, then one "
    "score a digit.",
    {"digit": (0, 9), "num_epochs": (0, 50)},
)
def layer_by_layer(digit: int = 3, num_epochs: int = 3) -> Plot:
    generator = keyed_generator("figure D1.1F1", 0)
    digits = load("digits")
    images, labels = digits.features, digits.targets
    row = int((labels == digit).nonzero()[0])
    model = learned(small_lenet((1, 8, 8), 10, generator=generator), images, labels, generator, num_epochs)
    return plot_feature_maps([FeatureMaps("image", "", images[row]), *feature_maps(model, images[row])])
