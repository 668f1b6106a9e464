"""Performer attention (FAVOR+ random features) on the copy task, compared with exact and linear attention."""

from dataclasses import dataclass

from quoin import models, train
from quoin.options import option
from quoin.tasks.sequence_options import CopyOptions
from quoin.tasks.target import Target

NOTES = ("D4.1-8", "D4.1-11", "D4.1-12")
KEYWORDS = ("favor+", "linear attention", "efficient attention", "copy task")
SUBJECT = "Attention and Transformers"
# Of the symbols that Performer attention with 128 random features, sampled once, copies; exact attention gets every
# one.
TARGET = Target("test_accuracy_performer", at_least=0.97)
DATA = "generated: symbols to copy"
MONITOR = None  # all are compared as they end


@dataclass(frozen=True)
class Options(CopyOptions):
    performer_features: tuple[int, ...] = option(
        (16, 64, 256, 1024),
        "numbers of random features to approximate the weights of exact attention with",
        at_least=1,
        at_most=1_000_000,
    )


def model(options: Options, data_info: None) -> "models.CopyTransformer":
    from quoin.tasks.copying import copy_transformer

    return copy_transformer("performer", options)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.copying import CopyTask

    return CopyTask("performer", options, device_context, options.performer_features)
