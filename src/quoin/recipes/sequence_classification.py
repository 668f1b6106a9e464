"""Classify texts of different lengths; in those that are generated the order of the symbols alone tells, and the best accuracy is known."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, train
from quoin.options import default, option
from quoin.tasks.options import OptimizerOptions, RunOptions, ScheduleName
from quoin.tasks.target import Target

NOTES = ("Z10", "Z11.T", "Z11.18p", "D5.1-2")
# By how much less of the test texts it classifies than Bayes' rule does, which knows the chain. Nobody stays below 0 but by luck.
TARGET = Target("test_shortfall", at_most=0.02)
MONITOR = None  # the rate falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(OptimizerOptions, RunOptions):
    data: str = option("directions", "the texts: directions, or tsv:PATH with a text, a tab and its class in each line")
    reader: Literal["recurrent", "transformer", "bag"] = option("recurrent", "the model that is kept; bag knows no order")
    rivals: bool = option(True, "train the other readers beside it, for the report")
    texts: int = option(10_000, "texts to draw, where they are generated", at_least=10, at_most=1_000_000)
    symbols: int = option(8, "different symbols of generated texts", at_least=2, at_most=1000)
    sharpness: float = option(0.7, "the larger, the sooner a generated text tells its class", at_least=0.0, at_most=100.0)
    longest: int = option(40, "symbols of the longest generated text", at_least=4, at_most=100_000)
    vocabulary: Literal["characters", "words", "bytes", "bpe"] = option("characters", "what a token is")
    vocabulary_size: int = option(2000, "the most tokens of a vocabulary of words or byte pairs", at_least=1, at_most=10**7)
    width: int = option(32, "numbers that stand for a token", at_least=2, at_most=100_000)
    hidden: int = option(32, "units of the recurrent reader in each direction", at_least=1, at_most=100_000)
    heads: int = option(2, "attention heads of the Transformer; they divide the width", at_least=1, at_most=10_000)
    layers: int = option(1, "layers of cells, or blocks of the Transformer", at_least=1, at_most=1000)
    dropout: float = option(0.0, "share of the numbers that is left out while learning", at_least=0.0, below=1.0)
    epochs: int = default(5)
    batch_size: int = default(64, "texts per update")
    lr: float = default(0.005)
    schedule: ScheduleName = default("cosine")
    warm_up: float = default(0.05)
    clip: float = default(1.0)
    weight_decay: float = default(0.01)


def model(options: Options, facts):
    from quoin.tasks.sequence_classification import sequence_classifier

    return sequence_classifier(options.reader, options, facts)


def build(options: Options, place: "train.Place"):
    from quoin.tasks.sequence_classification import READERS, LabellingTask, labelled_corpus, sequence_classifier

    corpus, posterior = labelled_corpus(options, place)
    names = [options.reader, *(name for name in READERS if options.rivals and name != options.reader)]
    models = {name: sequence_classifier(name, options, data.labelled_facts(corpus)) for name in names}
    return LabellingTask(models, options.reader, corpus, options, place, posterior)
