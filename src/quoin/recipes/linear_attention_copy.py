"""Linear attention on the copy task, compared with exact softmax attention and Performer attention."""

from dataclasses import dataclass

from quoin import models, train
from quoin.tasks.sequence_options import CopyOptions
from quoin.tasks.target import Target

NOTES = ("D4.1-3", "D4.1-4", "D4.1-5")
KEYWORDS = ("linear attention", "linear transformer", "efficient attention", "copy task")
SUBJECT = "Attention and Transformers"
# Of the symbols that linear attention copies. Its state is a matrix of 32 x 32 numbers per head, for 16 symbols; exact
# attention, which keeps all keys and values, gets every one.
TARGET = Target("test_accuracy_linear", at_least=0.97)
DATA = "generated: symbols to copy"
MONITOR = None  # all are compared as they end


@dataclass(frozen=True)
class Options(CopyOptions):
    """All as they are shared."""


def model(options: Options, data_info: None) -> "models.CopyTransformer":
    from quoin.tasks.copying import copy_transformer

    return copy_transformer("linear", options)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.copying import CopyTask

    return CopyTask("linear", options, device_context)
