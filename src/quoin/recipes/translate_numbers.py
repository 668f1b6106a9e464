"""A Transformer, encoder and decoder, says numbers in words: it must find out which digit to look at before each word."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, layers, models, train
from quoin.options import default, option
from quoin.tasks.options import TranslationOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("M13", "M14", "Z11.T")
TARGET = Target("test_exact", at_least=0.98)
MONITOR = Monitor("validation_exact", greater_is_better=True)


@dataclass(frozen=True)
class Options(TranslationOptions):
    data: str = default("numbers")
    target_vocabulary: Literal["characters", "words", "bytes", "bpe"] = default("words")
    epochs: int = default(8)
    width: int = option(64, "numbers that stand for a token on its way", at_least=2, at_most=100_000)
    heads: int = option(4, "attention heads of a block; they divide the width", at_least=1, at_most=10_000)
    layers: int = option(2, "blocks of the encoder, and as many of the decoder", at_least=1, at_most=1000)
    dropout: float = option(0.0, "share of what each part adds that is left out while learning", at_least=0.0, below=1.0)


def model(options: Options, facts):
    generator = data.keyed_generator("weights", options.seed)

    how = {"dropout": options.dropout, "generator": generator}
    encoder = [layers.transformer_block(options.width, options.heads, **how) for _ in range(options.layers)]
    decoder = [layers.decoder_block(options.width, options.heads, **how) for _ in range(options.layers)]
    return models.Transformer(facts.source_tokens.size, facts.target_tokens.size, encoder, decoder, **how)


def build(options: Options, place: "train.Place"):
    from quoin.tasks.alignment_panels import cross_attention_alignments
    from quoin.tasks.translation import translation_task

    return translation_task(model, options, place, look=cross_attention_alignments)
