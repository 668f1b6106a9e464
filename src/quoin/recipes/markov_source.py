"""An LSTM language model of a Markov chain of known entropy rate, which its loss approaches."""

from dataclasses import dataclass

from quoin import data, models, train
from quoin.options import default, option
from quoin.tasks.sequence_options import SequenceOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("Z9.2", "Z10")
KEYWORDS = ("entropy rate", "markov chain", "language model")
SUBJECT = "Recurrent networks and language models"
# By how much the bits per symbol exceed the entropy rate, relative to it. No model can stay below 0 but by the luck of
# the test text, whose own bits under the true source differ from the entropy rate by about half a per cent.
TARGET = Target("test_relative_redundancy", at_most=0.02)
DATA = "generated: a Markov source"
MONITOR = Monitor("validation_bits_per_character")


@dataclass(frozen=True)
class Options(SequenceOptions):
    num_symbols: int = option(8, "alphabet size: different symbols", at_least=2, at_most=1000)
    order: int = option(
        2, "order of the Markov chain: how many symbols the next one depends on", at_least=1, at_most=20
    )
    sharpness: float = option(
        2.0,
        "0 makes all symbols equally probable; the larger, the more predictable the next",
        at_least=0.0,
        at_most=100.0,
    )
    sequence_length: int = option(
        400_000, "symbols of the text, a tenth for validation and a tenth for the test", at_least=10, at_most=10**8
    )
    embed_dim: int = option(32, "dimension of the symbol embeddings", at_least=1, at_most=100_000)
    hidden_dim: int = option(64, "units of the LSTM", at_least=1, at_most=100_000)
    lr: float = default(0.01)
    epochs: int = default(4)


def model(options: Options, data_info: "data.TextInfo") -> "models.RecurrentLanguageModel":
    from torch import nn

    weights = data.keyed_generator("weights", options.seed)
    return models.RecurrentLanguageModel(
        nn.LSTM, data_info.vocab_size, options.embed_dim, options.hidden_dim, generator=weights
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.language_modeling import MarkovSourceTask, make_language_optimizer

    source = data.make_markov_source(
        options.num_symbols,
        options.order,
        sharpness=options.sharpness,
        generator=data.keyed_generator("source", options.seed),
    )
    text = data.make_symbol_corpus(
        "a Markov source", source, options.sequence_length, generator=data.keyed_generator("symbols", options.seed)
    )
    net = model(options, data.text_info(text)).to(device_context.device)
    return MarkovSourceTask(net, make_language_optimizer(net, options), text, source, options, device_context)
