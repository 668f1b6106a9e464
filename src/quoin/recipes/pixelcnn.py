"""A gated PixelCNN of digits: the exact likelihood of an image as a product over its pixels, and images drawn pixel by pixel."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import GenerativeOptions
from quoin.recipes.running.target import Goal, Target

NOTES = ("D5.2-8",)
# Exact, for images never seen. Seeds 100 and 101 reach 1.74 and 1.75; the context mix of `quoin compress` needs 2.7 for such images.
TARGET = Target("test_bits_per_dimension", at_most=1.8)
GOAL = Goal("validation_bits_per_dimension")


@dataclass(frozen=True)
class Options(GenerativeOptions):
    """Options of the recipe `pixelcnn`."""

    epochs: int = option(40, "passes over the training images", at_least=1, at_most=10**9)
    lr: float = option(0.008, "the largest learning rate of Adam", above=0.0, at_most=1e38)
    warm_up: float = option(0.05, "share of the run over which the learning rate rises to its full size", at_least=0.0, below=1.0)
    clip: float = option(1.0, "bound on the norm of the gradient; 0 sets none", at_least=0.0)
    weight_decay: float = option(0.3, "pull of the weights towards zero", at_least=0.0, at_most=1e38)
    average: float = option(0.98, "how much of its last value a moving average of the weights keeps at an update", at_least=0.0, below=1.0)
    channels: int = option(32, "channels of each layer of either stack", at_least=1, at_most=10_000)
    layers: int = option(4, "gated layers", at_least=1, at_most=1000)
    kernel: int = option(3, "side of their kernels, odd", at_least=1, at_most=101)
    first_kernel: int = option(7, "side of the first kernel, odd, from 3 on", at_least=3, at_most=101)
    dropout: float = option(0.3, "share of the numbers between layers that is left out while learning", at_least=0.0, below=1.0)
    conditional: bool = option(False, "tell the model the class of each image, and draw images of a class")


def model(options, facts):
    from quoin.data import keyed_generator
    from quoin.errors import Mistake
    from quoin.generate import PixelSampler
    from quoin.models import GatedPixelCNN

    if not facts.levels:
        raise Mistake(f"pixelcnn expects images with 2, 17 or 256 grey levels, but those of {facts.source} have others: round them")
    return PixelSampler(
        GatedPixelCNN(
            facts.image_shape,
            facts.levels,
            channels=options.channels,
            num_layers=options.layers,
            kernel=options.kernel,
            first_kernel=options.first_kernel,
            num_classes=facts.num_classes if options.conditional else None,
            dropout=options.dropout,
            generator=keyed_generator("weights", options.seed),
        )
    )


def build(options, place):
    import torch

    from quoin.recipes.running.parts import raw_images
    from quoin.recipes.running.pixels import PixelTask

    data = raw_images(options, place)
    net = model(options, data.facts).to(place.device)
    optimiser = torch.optim.AdamW(net.parameters(), options.lr, weight_decay=options.weight_decay)
    return PixelTask(net, optimiser, data, options, place, average=options.average)
