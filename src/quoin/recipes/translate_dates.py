"""A recurrent encoder and a decoder that looks back at the source turn dates as people write them into ISO dates."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, models, train
from quoin.options import default, option
from quoin.tasks.options import TranslationOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("M13", "M14", "Z10", "Z11.23")
TARGET = Target("test_exact", at_least=0.98)
MONITOR = Monitor("validation_loss")  # the share that is right is soon 1, and tells no better from a good one


@dataclass(frozen=True)
class Options(TranslationOptions):
    epochs: int = default(5)
    cell: Literal["gru", "lstm"] = option("gru", "the cell of encoder and decoder")
    attention: bool = option(True, "look back at the source before each token; otherwise its last state is all the decoder gets")
    width: int = option(32, "numbers that stand for a token", at_least=1, at_most=100_000)
    hidden: int = option(96, "units of each layer and direction", at_least=1, at_most=100_000)
    layers: int = option(1, "layers of cells", at_least=1, at_most=1000)
    dropout: float = option(0.0, "share of the numbers between layers that is left out while learning", at_least=0.0, below=1.0)


def model(options: Options, facts):
    from torch import nn

    cell = {"gru": nn.GRU, "lstm": nn.LSTM}[options.cell]
    generator = data.keyed_generator("weights", options.seed)
    how = {"layers": options.layers, "dropout": options.dropout, "generator": generator}
    encoder = models.RecurrentEncoder(cell, facts.source_tokens.size, options.width, options.hidden, **how)
    sizes = (cell, facts.target_tokens.size, options.width, options.hidden)
    # Of the marks only the end is said: those before it, padding and beginning, have no chance.
    if options.attention:
        return models.Seq2Seq(encoder, models.BahdanauDecoder(*sizes, encoder.width, silent=data.EOS, **how))
    return models.Seq2Seq(encoder, models.PlainDecoder(*sizes, silent=data.EOS, **how))


def build(options: Options, place: "train.Place"):
    from quoin.tasks.alignment_panels import bahdanau_alignments
    from quoin.tasks.translation import translation_task

    return translation_task(model, options, place, look=bahdanau_alignments if options.attention else None)
