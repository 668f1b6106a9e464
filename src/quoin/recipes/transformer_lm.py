"""A Transformer that learns to say the next character of a text, from as many characters before it as its context holds."""

from dataclasses import dataclass
from typing import Literal

from quoin import tasks, train
from quoin.options import default, option
from quoin.tasks.options import LanguageOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("Z11.T",)
TARGET = Target("test_bits_per_character", at_most=1.85)
MONITOR = Monitor("validation_bits_per_character")
SIZES = {"small": (96, 3, 2), "medium": (256, 8, 6), "large": (512, 8, 8)}  # width, heads, layers; a larger one wants more text and time


@dataclass(frozen=True)
class Options(LanguageOptions):
    size: Literal["small", "medium", "large"] = option("small", "width, heads and layers at once")
    width: int = option(0, "numbers that stand for a token on its way; 0 takes the size's", at_least=0, at_most=100_000)
    heads: int = option(0, "attention heads of a layer, which divide the width; 0 takes the size's", at_least=0, at_most=10_000)
    layers: int = option(0, "blocks of attention and perceptron; 0 takes the size's", at_least=0, at_most=1000)
    positions: Literal["rotary", "learned", "sinusoidal", "alibi"] = option("rotary", "how the model knows where a token stands")
    attention: Literal["exact", "linear", "performer"] = option("exact", "how positions look at each other; alibi needs exact")
    features: int = option(64, "random features of Performer's attention", at_least=1, at_most=1_000_000)
    dropout: float = option(0.05, "share of what each part adds that is left out in training", at_least=0.0, below=1.0)
    context: int = default(128, "tokens that are read at once")
    epochs: int = default(14, "times as many tokens as the text has are read")
    warm_up: float = default(0.05)
    weight_decay: float = default(0.3)
    batch_size: int = default(16)
    lr: float = default(0.008)


def model(options: Options, facts):
    from quoin.tasks.transformer_lm import language_transformer

    return language_transformer(options, facts, SIZES[options.size])


def build(options: Options, place: "train.Place"):
    return tasks.language_task(model, options, place)
