"""A vanilla RNN language model of characters, trained by truncated BPTT with a stateful hidden state."""

from dataclasses import dataclass

from quoin import data, models, tasks, train
from quoin.options import default
from quoin.tasks.sequence_options import RecurrentOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("Z9.0", "D1.1-27")
KEYWORDS = ("char-rnn", "language model", "bptt", "recurrent")
SUBJECT = "Recurrent networks and language models"
TARGET = Target("test_bits_per_character", at_most=2.05)
MONITOR = Monitor("validation_bits_per_character")


@dataclass(frozen=True)
class Options(RecurrentOptions):
    embed_dim: int = default(256)
    lr: float = default(0.0017)
    epochs: int = default(30)


def model(options: Options, data_info: "data.TextInfo") -> "models.RecurrentLanguageModel":
    from torch import nn

    return tasks.recurrent_model(nn.RNN, options, data_info)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    return tasks.stateful_language_task(model, options, device_context)
