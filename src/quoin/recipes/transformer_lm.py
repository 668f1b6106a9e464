"""A decoder-only Transformer language model of characters."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, models, tasks, train
from quoin.options import OwnPart, default, option
from quoin.tasks.sequence_options import LanguageOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("Z11.T",)
KEYWORDS = ("gpt", "language model", "rope", "rotary", "alibi", "performer", "causal lm", "decoder-only")
SUBJECT = "Attention and Transformers"
TARGET = Target("test_bits_per_character", at_most=1.85)
MONITOR = Monitor("validation_bits_per_character")
SIZES = {
    "small": (96, 3, 2),
    "medium": (256, 8, 6),
    "large": (512, 8, 8),
}  # embed_dim, num_heads, num_layers; a larger one needs more text and time


@dataclass(frozen=True)
class Options(LanguageOptions):
    size: Literal["small", "medium", "large"] = option("small", "preset of embedding dimension, heads and layers")
    embed_dim: int = option(
        0,
        "dimension of the token embeddings and of the residual stream; 0 for that of --size",
        at_least=0,
        at_most=100_000,
    )
    num_heads: int = option(
        0, "attention heads per layer; must divide --embed-dim; 0 for that of --size", at_least=0, at_most=10_000
    )
    num_layers: int = option(0, "Transformer blocks; 0 for that of --size", at_least=0, at_most=1000)
    position_embedding: Literal["rotary", "learned", "sinusoidal", "alibi"] = option("rotary", "position embedding")
    attention: Literal["exact", "linear", "performer"] | OwnPart = option(
        "exact",
        "inner attention; alibi needs exact; your own: a class of nn.Module with forward(query, key, value, *, "
        "mask=None, causal=False) of (batch, heads, positions, head_dim)",
    )
    num_features: int = option(64, "random features of Performer attention", at_least=1, at_most=1_000_000)
    dropout: float = option(0.05, "dropout probability", at_least=0.0, below=1.0)
    context_length: int = default(128, "context length in tokens")
    epochs: int = default(14, "epochs: each reads as many tokens as the text has")
    warmup_ratio: float = default(0.05)
    weight_decay: float = default(0.3)
    batch_size: int = default(16)
    lr: float = default(0.008)


def model(options: Options, data_info: "data.TextInfo") -> "models.TransformerLanguageModel":
    from quoin.tasks.transformer_lm import language_transformer

    return language_transformer(options, data_info, SIZES[options.size])


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    return tasks.language_task(model, options, device_context)
