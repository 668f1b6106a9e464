"""A plain recurrent network that learns to say the next character of a text, its state carried along."""

from dataclasses import dataclass

from quoin import tasks, train
from quoin.options import default
from quoin.tasks.options import RecurrentOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("Z9.0", "D1.1-27")
TARGET = Target("test_bits_per_character", at_most=2.05)
MONITOR = Monitor("validation_bits_per_character")


@dataclass(frozen=True)
class Options(RecurrentOptions):
    width: int = default(256)
    lr: float = default(0.0017)
    epochs: int = default(30)


def model(options: Options, facts):
    from torch import nn

    return tasks.recurrent_model(nn.RNN, options, facts)


def build(options: Options, place: "train.Place"):
    return tasks.carried_language_task(model, options, place)
