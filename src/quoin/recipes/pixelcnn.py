"""A gated PixelCNN of digits: the exact likelihood of an image as a product over its pixels, and images drawn pixel by pixel."""

from dataclasses import dataclass

from quoin import data, generate, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import GenerativeOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("D5.2-8",)
# Exact, for images never seen. Seeds 100 and 101 reach 1.74 and 1.75; the context mix of `quoin compress` needs 2.7 for such images.
TARGET = Target("test_bits_per_dimension", at_most=1.8)
MONITOR = Monitor("validation_bits_per_dimension")


@dataclass(frozen=True)
class Options(GenerativeOptions):
    epochs: int = default(40)
    lr: float = default(0.008)
    warm_up: float = default(0.05)
    clip: float = default(1.0)
    weight_decay: float = default(0.3)
    average: float = option(0.98, "how much of its last value a moving average of the weights keeps at an update", at_least=0.0, below=1.0)
    channels: int = option(32, "channels of each layer of either stack", at_least=1, at_most=10_000)
    layers: int = option(4, "gated layers", at_least=1, at_most=1000)
    kernel: int = option(3, "side of their kernels, odd", at_least=1, at_most=101)
    first_kernel: int = option(7, "side of the first kernel, odd, from 3 on", at_least=3, at_most=101)
    dropout: float = option(0.3, "share of the numbers between layers that is left out while learning", at_least=0.0, below=1.0)
    conditional: bool = option(False, "tell the model the class of each image, and draw images of a class")


def model(options: Options, facts):
    from quoin.errors import Mistake

    if not facts.levels:
        raise Mistake(f"pixelcnn expects images with 2, 17 or 256 grey levels, but those of {facts.source} have others: round them")
    return generate.PixelSampler(
        models.GatedPixelCNN(
            facts.image_shape,
            facts.levels,
            channels=options.channels,
            num_layers=options.layers,
            kernel=options.kernel,
            first_kernel=options.first_kernel,
            num_classes=facts.num_classes if options.conditional else None,
            dropout=options.dropout,
            generator=data.keyed_generator("weights", options.seed),
        )
    )


def build(options: Options, place: "train.Place"):
    import torch

    from quoin.runs.open_classifier import open_classifier
    from quoin.tasks.pixelcnn import PixelTask

    data = tasks.raw_images(options, place)
    net = model(options, data.facts).to(place.device)
    optimiser = torch.optim.AdamW(net.parameters(), options.lr, weight_decay=options.weight_decay)
    return PixelTask(net, optimiser, data, options, place, average=options.average, open_classifier=open_classifier)
