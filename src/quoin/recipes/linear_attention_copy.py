"""Linear attention learns to copy symbols through a memory of fixed size, beside exact attention and Performer's on the same task."""

from dataclasses import dataclass

from quoin import train
from quoin.tasks.options import CopyOptions
from quoin.tasks.target import Target

NOTES = ("D4.1-3", "D4.1-4", "D4.1-5")
# Of the symbols that linear attention repeats. Its memory is a table of 32 features by 32 numbers a head, for 16 symbols; exact
# attention, which keeps them all, gets every one.
TARGET = Target("test_accuracy_linear", at_least=0.97)
DATA = "generated: symbols to copy"
MONITOR = None  # all are compared as they end


@dataclass(frozen=True)
class Options(CopyOptions):
    """All as they are shared."""


def model(options: Options, facts):
    from quoin.tasks.copying import reader

    return reader("linear", options)


def build(options: Options, place: "train.Place"):
    from quoin.tasks.copying import CopyTask

    return CopyTask("linear", options, place)
