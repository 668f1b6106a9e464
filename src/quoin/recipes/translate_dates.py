"""A recurrent encoder-decoder with Bahdanau attention that translates written dates into ISO dates."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, models, train
from quoin.options import default, option
from quoin.tasks.sequence_options import TranslationOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("M13", "M14", "Z10", "Z11.23")
KEYWORDS = ("seq2seq", "bahdanau", "attention", "encoder-decoder", "nmt", "machine translation", "gru", "lstm")
SUBJECT = "Translation"
TARGET = Target("test_exact_match", at_least=0.98)
MONITOR = Monitor("validation_loss")  # exact match is soon 1, and does not distinguish a better model from a good one


@dataclass(frozen=True)
class Options(TranslationOptions):
    epochs: int = default(5)
    cell: Literal["gru", "lstm"] = option("gru", "recurrent cell of encoder and decoder")
    attention: bool = option(
        True, "Bahdanau attention to the source; without it the decoder gets only the last hidden state"
    )
    embed_dim: int = option(32, "dimension of the token embeddings", at_least=1, at_most=100_000)
    hidden_dim: int = option(96, "units of each layer and direction", at_least=1, at_most=100_000)
    num_layers: int = option(1, "recurrent layers", at_least=1, at_most=1000)
    dropout: float = option(0.0, "dropout probability", at_least=0.0, below=1.0)


def model(options: Options, data_info: "data.PairInfo") -> "models.Seq2Seq":
    from torch import nn

    cell = {"gru": nn.GRU, "lstm": nn.LSTM}[options.cell]
    generator = data.keyed_generator("weights", options.seed)
    how = {"num_layers": options.num_layers, "dropout": options.dropout, "generator": generator}
    encoder = models.RecurrentEncoder(
        cell, data_info.source_tokenizer.vocab_size, options.embed_dim, options.hidden_dim, **how
    )
    sizes = (cell, data_info.target_tokenizer.vocab_size, options.embed_dim, options.hidden_dim)
    # Of the special tokens only EOS is predicted: those before it, PAD and BOS, are suppressed.
    if options.attention:
        return models.Seq2Seq(
            encoder, models.BahdanauDecoder(*sizes, encoder.memory_dim, num_suppressed=data.EOS, **how)
        )
    return models.Seq2Seq(encoder, models.RNNDecoder(*sizes, num_suppressed=data.EOS, **how))


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.alignment_panels import bahdanau_alignments
    from quoin.tasks.translation import translation_task

    return translation_task(
        model, options, device_context, plot_alignment=bahdanau_alignments if options.attention else None
    )
