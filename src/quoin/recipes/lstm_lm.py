"""An LSTM language model of characters, trained by truncated BPTT with a stateful hidden state."""

from dataclasses import dataclass

from quoin import data, models, tasks, train
from quoin.options import default
from quoin.tasks.sequence_options import RecurrentOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("Z9.0", "Z10")
KEYWORDS = ("char-rnn", "language model", "bptt", "recurrent")
SUBJECT = "Recurrent networks and language models"
# 1.719 from seed 100; the settings were chosen by the validation text, among those that end in two minutes on two
# cores.
TARGET = Target("test_bits_per_character", at_most=1.75)
MONITOR = Monitor("validation_bits_per_character")


@dataclass(frozen=True)
class Options(RecurrentOptions):
    embed_dim: int = default(256)
    lr: float = default(0.0125)
    epochs: int = default(18)


def model(options: Options, data_info: "data.TextInfo") -> "models.RecurrentLanguageModel":
    from torch import nn

    return tasks.recurrent_model(nn.LSTM, options, data_info)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    return tasks.stateful_language_task(model, options, device_context)
