"""Signal (time series) classification by a 1-D convolutional network, a GRU, an LSTM or a Transformer."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import LossOptions, OptimizerName, ScheduleName, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("D1.1-22", "Z7.7", "Z8.7", "Z10", "Z11.T")
KEYWORDS = ("time series", "1-d convolution", "sensor", "gru", "lstm", "waveform")
SUBJECT = "Recurrent networks and language models"
TARGET = Target("test_accuracy", at_least=0.92)
MONITOR = None  # the learning rate falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(LossOptions, SupervisedOptions):
    data: str = default("waves", "signals: waves, signals:PATH, or csv:PATH whose columns are the steps")
    encoder: Literal["conv", "gru", "lstm", "transformer"] = option(
        "conv", "encoder whose outputs are averaged and classified; the recurrent ones read from both ends"
    )
    hidden_dim: int = option(
        32, "channels of each convolution, or units of a recurrent layer in each direction", at_least=1, at_most=100_000
    )
    kernel_size: int = option(7, "steps that a convolution covers; odd", at_least=1, at_most=1_000_001)
    patch_size: int = option(
        8, "steps that a recurrent network or the Transformer reads at once", at_least=1, at_most=1_000_000
    )
    embed_dim: int = option(32, "embedding dimension of the Transformer", at_least=1, at_most=100_000)
    num_heads: int = option(
        4, "attention heads of the Transformer; must divide --embed-dim", at_least=1, at_most=10_000
    )
    num_layers: int = option(2, "convolutional blocks, recurrent layers or Transformer blocks", at_least=1, at_most=100)
    dropout: float = option(0.0, "dropout probability", at_least=0.0, below=1.0)
    epochs: int = default(20)
    batch_size: int = default(64)
    optimizer: OptimizerName = default("adamw")
    lr: float = default(0.005)
    schedule: ScheduleName = default("cosine")
    warmup_ratio: float = default(0.1)
    max_grad_norm: float = default(1.0)
    weight_decay: float = default(0.01)


def model(options: Options, data_info: "data.TabularInfo") -> "models.SignalClassifier":
    from quoin.tasks.signal_classification import signal_encoder

    generator = data.keyed_generator("weights", options.seed)
    encoder = signal_encoder(options.encoder, options, data_info, generator)
    return models.SignalClassifier(encoder, data_info.signal_shape, data_info.num_classes, generator=generator)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    return tasks.signal_classifier(model, options, device_context)
