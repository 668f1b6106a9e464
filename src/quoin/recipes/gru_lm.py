"""Gated recurrent units that learn to say the next character of a text, their state carried along."""

from dataclasses import dataclass

from quoin import tasks, train
from quoin.options import default
from quoin.tasks.options import RecurrentOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("Z9.0", "Z10")
TARGET = Target("test_bits_per_character", at_most=1.85)
MONITOR = Monitor("validation_bits_per_character")


@dataclass(frozen=True)
class Options(RecurrentOptions):
    lr: float = default(0.006)
    epochs: int = default(16)


def model(options: Options, facts):
    from torch import nn

    return tasks.recurrent_model(nn.GRU, options, facts)


def build(options: Options, place: "train.Place"):
    return tasks.carried_language_task(model, options, place)
