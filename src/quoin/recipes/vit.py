"""A Vision Transformer that reads handwritten digits: each is cut into small patches, and every patch looks at all patches."""

from dataclasses import dataclass

from quoin import data, models, tasks, train
from quoin.options import option
from quoin.tasks.options import AttendingImageOptions
from quoin.tasks.target import Target

NOTES = ("Z11.T",)
TARGET = Target("test_accuracy", at_least=0.95)
MONITOR = None  # the rate falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(AttendingImageOptions):
    side: int = option(2, "pixels along the side of a patch, which divides that of the images", at_least=1, at_most=1_000_000)
    width: int = option(48, "numbers that stand for a patch on its way", at_least=1, at_most=1_000_000)


def model(options: Options, facts):
    return models.ViT(
        facts.feature_shape,
        facts.num_classes,
        side=options.side,
        width=options.width,
        heads=options.heads,
        layers=options.layers,
        dropout=options.dropout,
        generator=data.keyed_generator("weights", options.seed),
    )


def build(options: Options, place: "train.Place"):
    return tasks.attending_classifier(model, options, place)
