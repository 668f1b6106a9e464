"""An encoder-decoder Transformer that translates numbers in digits into words."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, layers, models, train
from quoin.options import OwnPart, default, option
from quoin.tasks.sequence_options import TranslationOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("M13", "M14", "Z11.T")
KEYWORDS = ("seq2seq", "transformer", "vaswani", "encoder-decoder", "cross-attention", "machine translation")
SUBJECT = "Translation"
TARGET = Target("test_exact_match", at_least=0.98)
MONITOR = Monitor("validation_exact_match", greater_is_better=True)


@dataclass(frozen=True)
class Options(TranslationOptions):
    data: str = default("numbers")
    target_tokenizer: Literal["char", "word", "byte", "bpe"] = default("word")
    epochs: int = default(8)
    embed_dim: int = option(
        64, "dimension of the token embeddings and of the residual stream", at_least=2, at_most=100_000
    )
    num_heads: int = option(4, "attention heads per block; must divide --embed-dim", at_least=1, at_most=10_000)
    num_layers: int = option(2, "blocks of the encoder, and as many of the decoder", at_least=1, at_most=1000)
    attention: Literal["exact", "linear"] | OwnPart = option(
        "exact",
        "inner attention of both sides to themselves, that of the decoder to the source is exact; your own: a class of "
        "nn.Module with forward(query, key, value, *, mask=None, causal=False) of (batch, heads, positions, head_dim)",
    )
    dropout: float = option(0.0, "dropout probability", at_least=0.0, below=1.0)


def model(options: Options, data_info: "data.PairInfo") -> "models.Transformer":
    from quoin.tasks.own_attention import attention_maker

    sizes, blocks = (options.embed_dim, options.num_heads), range(options.num_layers)
    attend = attention_maker(
        options.attention, embed_dim=sizes[0], num_heads=sizes[1], seed=options.seed, causal=True, padded=True
    )
    how = {"dropout": options.dropout, "generator": data.keyed_generator("weights", options.seed)}
    encoder = [layers.transformer_block(*sizes, inner_attention=attend(), **how) for _ in blocks]
    decoder = [layers.decoder_block(*sizes, inner_attention=attend(), **how) for _ in blocks]
    return models.Transformer(
        data_info.source_tokenizer.vocab_size, data_info.target_tokenizer.vocab_size, encoder, decoder, **how
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.alignment_panels import cross_attention_alignments
    from quoin.tasks.translation import translation_task

    return translation_task(model, options, device_context, plot_alignment=cross_attention_alignments)
