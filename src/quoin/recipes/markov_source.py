"""An LSTM reads a source of known entropy, where each symbol depends on the two before it, and comes to the best possible loss."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import SequenceOptions
from quoin.recipes.running.target import Goal, Target

NOTES = ("Z9.2", "Z10")
# By how much the bits of a symbol exceed the entropy rate, relative to it. No model can stay below 0 but by the luck of the test text,
# whose own bits under the true source are off by about half a per cent.
TARGET = Target("test_excess", at_most=0.02)
DATA = "generated: a Markov source"
GOAL = Goal("validation_bits_per_character")


@dataclass(frozen=True)
class Options(SequenceOptions):
    """Options of the recipe `markov-source`."""

    symbols: int = option(8, "different symbols", at_least=2, at_most=1000)
    order: int = option(2, "symbols before it that the next one depends on", at_least=1, at_most=20)
    sharpness: float = option(2.0, "0 makes all symbols equally likely; the larger, the surer the next", at_least=0.0, at_most=100.0)
    length: int = option(400_000, "symbols of the text, of which a tenth validates and a tenth tests", at_least=10, at_most=10**8)
    width: int = option(32, "numbers that stand for a symbol", at_least=1, at_most=100_000)
    hidden: int = option(64, "units", at_least=1, at_most=100_000)
    lr: float = option(0.01, "the largest learning rate of Adam", above=0.0, at_most=1e38)
    epochs: int = option(4, "passes over the training text", at_least=1, at_most=10**9)


def model(options, facts):
    from torch import nn

    from quoin.data import keyed_generator
    from quoin.models import RecurrentLanguageModel

    weights = keyed_generator("weights", options.seed)
    return RecurrentLanguageModel(nn.LSTM, facts.vocabulary_size, options.width, options.hidden, generator=weights)


def build(options, place):
    import math

    from quoin.data import facts_of_text, keyed_generator, markov_source, symbol_corpus
    from quoin.info import entropy_rate
    from quoin.recipes.running.language import CarriedLanguageTask, adam

    source = markov_source(
        options.symbols, options.order, sharpness=options.sharpness, generator=keyed_generator("source", options.seed)
    )  # fmt: skip
    text = symbol_corpus("a Markov source", source, options.length, generator=keyed_generator("symbols", options.seed))
    rate = float(entropy_rate(source.chain)) / math.log(2)

    class MarkovTask(CarriedLanguageTask):
        """Judged by how far it is from the entropy rate too."""

        def evaluate(self, part):
            found = super().evaluate(part)
            return found | {"entropy_rate": rate, "excess": found["bits_per_character"] / rate - 1} if found else found

    net = model(options, facts_of_text(text)).to(place.device)
    return MarkovTask(net, adam(net, options), text, options, place)
