"""A network with long short-term memory that learns to say the next character of a text, its state carried along."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import RecurrentOptions
from quoin.recipes.running.target import Goal, Target

NOTES = ("Z9.0", "Z10")
# 1.719 from seed 100; the settings were chosen by the validation text, among those that end in two minutes on two cores.
TARGET = Target("test_bits_per_character", at_most=1.75)
GOAL = Goal("validation_bits_per_character")


@dataclass(frozen=True)
class Options(RecurrentOptions):
    """Options of the recipe `lstm-lm`."""

    width: int = option(256, "numbers that stand for a token", at_least=1, at_most=100_000)
    lr: float = option(0.0125, "the largest learning rate of Adam", above=0.0, at_most=1e38)
    epochs: int = option(18, "passes over the training text", at_least=1, at_most=10**9)


def model(options, facts):
    from torch import nn

    from quoin.recipes.running.language import recurrent_model

    return recurrent_model(nn.LSTM, options, facts)


def build(options, place):
    from quoin.recipes.running.language import carried_language_task

    return carried_language_task(model, options, place)
