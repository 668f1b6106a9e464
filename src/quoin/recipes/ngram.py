"""Counting what follows what in a text, and saying the next character by the counts, those of long contexts smoothed with shorter ones."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, models, train
from quoin.options import option
from quoin.tasks.options import RunOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("Z9.3", "Z9.4", "Z9.5", "Z9.6", "Z9.7", "Z9.8")
# Nothing is drawn, so every seed gives the same. The order is where validation gains little more: 1.74, 1.73, 1.72, 1.72 bits at 7 to 10.
TARGET = Target("test_bits_per_character", at_most=1.9)
MONITOR = Monitor("validation_bits_per_character")


@dataclass(frozen=True)
class Options(RunOptions):
    data: str = option("topics", "the text: topics, text:PATH, or tokens:PATH as `quoin tokenize` writes it")
    vocabulary: Literal["characters", "words", "bytes", "bpe"] = option("characters", "what a token is; tokens:PATH brings its own")
    vocabulary_size: int = option(2000, "the most tokens of a vocabulary of words or byte pairs", at_least=1, at_most=10**7)
    order: int = option(8, "tokens of the longest n-gram, the one foretold included", at_least=1, at_most=1000)
    smoothing: Literal["kneser-ney", "laplace"] = option("kneser-ney", "how long contexts are mixed with shorter ones")
    strength: float = option(5.0, "of Laplace smoothing: so many tokens as the shorter context says", at_least=0.0, at_most=1e38)
    epochs: int = option(7, "counts of ever more of the text, each of twice as much; the last of all", at_least=1, at_most=60)


def model(options: Options, facts):
    return models.NgramModel(facts.vocabulary_size, options.order)


def build(options: Options, place: "train.Place"):
    from quoin.tasks.ngram import CountingTask

    return CountingTask(data.load_corpus(options.data, options.vocabulary, options.vocabulary_size), model, options)
