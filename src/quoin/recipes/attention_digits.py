"""A self-attention classifier that reads handwritten digits row by row: every row looks at all rows."""

from dataclasses import dataclass

from quoin import data, models, tasks, train
from quoin.options import option
from quoin.tasks.options import AttendingImageOptions
from quoin.tasks.target import Target

NOTES = ("D2.2-5", "D2.2-6", "D2.2-9", "Z11.17", "D3-4", "D3-6")
TARGET = Target("test_accuracy", at_least=0.96)
MONITOR = None  # the rate falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(AttendingImageOptions):
    width: int = option(64, "features of a row between the layers", at_least=1, at_most=1_000_000)


def model(options: Options, facts):
    return models.AttentionClassifier(
        facts.feature_shape,
        facts.num_classes,
        width=options.width,
        heads=options.heads,
        layers=options.layers,
        dropout=options.dropout,
        generator=data.keyed_generator("weights", options.seed),
    )


def build(options: Options, place: "train.Place"):
    return tasks.attending_classifier(model, options, place)
