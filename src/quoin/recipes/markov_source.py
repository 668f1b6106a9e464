"""An LSTM reads a source of known entropy, where each symbol depends on the two before it, and comes to the best possible loss."""

from dataclasses import dataclass

from quoin import data, models, train
from quoin.options import default, option
from quoin.tasks.options import SequenceOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("Z9.2", "Z10")
# By how much the bits of a symbol exceed the entropy rate, relative to it. No model can stay below 0 but by the luck of the test text,
# whose own bits under the true source are off by about half a per cent.
TARGET = Target("test_excess", at_most=0.02)
DATA = "generated: a Markov source"
MONITOR = Monitor("validation_bits_per_character")


@dataclass(frozen=True)
class Options(SequenceOptions):
    symbols: int = option(8, "different symbols", at_least=2, at_most=1000)
    order: int = option(2, "symbols before it that the next one depends on", at_least=1, at_most=20)
    sharpness: float = option(2.0, "0 makes all symbols equally likely; the larger, the surer the next", at_least=0.0, at_most=100.0)
    length: int = option(400_000, "symbols of the text, of which a tenth validates and a tenth tests", at_least=10, at_most=10**8)
    width: int = option(32, "numbers that stand for a symbol", at_least=1, at_most=100_000)
    hidden: int = option(64, "units", at_least=1, at_most=100_000)
    lr: float = default(0.01)
    epochs: int = default(4)


def model(options: Options, facts):
    from torch import nn

    weights = data.keyed_generator("weights", options.seed)
    return models.RecurrentLanguageModel(nn.LSTM, facts.vocabulary_size, options.width, options.hidden, generator=weights)


def build(options: Options, place: "train.Place"):
    from quoin.tasks.language_modeling import MarkovSourceTask, adam

    source = data.markov_source(
        options.symbols, options.order, sharpness=options.sharpness, generator=data.keyed_generator("source", options.seed)
    )  # fmt: skip
    text = data.symbol_corpus("a Markov source", source, options.length, generator=data.keyed_generator("symbols", options.seed))
    net = model(options, data.facts_of_text(text)).to(place.device)
    return MarkovSourceTask(net, adam(net, options), text, source, options, place)
