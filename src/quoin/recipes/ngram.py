"""An n-gram language model of characters with Kneser-Ney, Laplace or Dirichlet smoothing."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, models, train
from quoin.options import option
from quoin.tasks.options import EpochOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("Z9.3", "Z9.4", "Z9.5", "Z9.6", "Z9.7", "Z9.8")
KEYWORDS = ("kneser-ney", "laplace smoothing", "dirichlet smoothing", "trigram", "language model")
SUBJECT = "Recurrent networks and language models"
# Nothing is random, so every seed gives the same. The order is where validation gains little more: 1.74, 1.73, 1.72,
# 1.72 bits at 7 to 10.
TARGET = Target("test_bits_per_character", at_most=1.9)
MONITOR = Monitor("validation_bits_per_character")


@dataclass(frozen=True)
class Options(EpochOptions):
    data: str = option("topics", "the text: topics, text:PATH, or tokens:PATH as `quoin tokenize` writes it")
    tokenizer: Literal["char", "word", "byte", "bpe"] = option("char", "kind of tokenizer; tokens:PATH has its own")
    vocab_size: int = option(
        2000, "maximum vocabulary size of a word or byte-pair tokenizer", at_least=1, at_most=10**7
    )
    order: int = option(8, "order n of the longest n-gram, the predicted token included", at_least=1, at_most=1000)
    smoothing: Literal["kneser-ney", "laplace", "dirichlet"] = option(
        "kneser-ney",
        "smoothing: laplace adds --pseudo-counts spread as single tokens are distributed, dirichlet as the next "
        "shorter context predicts, kneser-ney discounts",
    )
    pseudo_counts: tuple[float, ...] = option(
        (5.0,),
        "pseudo-counts ε1 ε2 ... of laplace and dirichlet: one for n-grams of each length up to --order, or one for "
        "all",
        at_least=0.0,
        at_most=1e38,
    )
    epochs: int = option(
        7, "fits to ever more of the text, each to twice as much; the last to all of it", at_least=1, at_most=60
    )


def model(options: Options, data_info: "data.TextInfo") -> "models.NgramModel":
    return models.NgramModel(data_info.vocab_size, options.order)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.ngram import NgramTask

    return NgramTask(data.load_corpus(options.data, options.tokenizer, options.vocab_size), model, options)
