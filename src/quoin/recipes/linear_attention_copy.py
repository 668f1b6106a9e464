"""Linear attention learns to copy symbols through a memory of fixed size, beside exact attention and Performer's on the same task."""

from dataclasses import dataclass

from quoin.recipes.running.copying import CopyOptions
from quoin.recipes.running.target import Target

NOTES = ("D4.1-3", "D4.1-4", "D4.1-5")
# Of the symbols that linear attention repeats. Its memory is a table of 32 features by 32 numbers a head, for 16 symbols; exact
# attention, which keeps them all, gets every one.
TARGET = Target("test_accuracy_linear", at_least=0.97)
DATA = "generated: symbols to copy"
GOAL = None  # all are compared as they end


@dataclass(frozen=True)
class Options(CopyOptions):
    """Options of the recipe `linear-attention-copy`."""


def model(options, facts):
    from quoin.recipes.running.copying import reader

    return reader("linear", options)


def build(options, place):
    from quoin.recipes.running.copying import copying

    return copying("linear", options, place)
