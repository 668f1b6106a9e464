"""Performer's attention learns to copy symbols with a few random features, beside exact and linear attention on the same task."""

from dataclasses import dataclass

from quoin import train
from quoin.options import option
from quoin.tasks.options import CopyOptions
from quoin.tasks.target import Target

NOTES = ("D4.1-8", "D4.1-11", "D4.1-12")
# Of the symbols that the reader with 128 random features, drawn once, repeats; exact attention gets every one.
TARGET = Target("test_accuracy_performer", at_least=0.97)
DATA = "generated: symbols to copy"
MONITOR = None  # all are compared as they end


@dataclass(frozen=True)
class Options(CopyOptions):
    swaps: tuple[int, ...] = option((16, 64, 256, 1024), "features to try exact attention's weights with", at_least=1, at_most=1_000_000)


def model(options: Options, facts):
    from quoin.tasks.copying import reader

    return reader("performer", options)


def build(options: Options, place: "train.Place"):
    from quoin.tasks.copying import CopyTask

    return CopyTask("performer", options, place, options.swaps)
