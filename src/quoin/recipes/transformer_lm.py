"""A decoder-only Transformer language model of characters."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, models, tasks, train
from quoin.options import OwnPart, default, option
from quoin.tasks.target import Target
from quoin.tasks.transformer_options import TransformerOptions
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
    "gpt2": (768, 12, 12),  # OpenAI's smallest, of 124 million parameters with its own tokenizer
}  # embed_dim, num_heads, num_layers; a larger one needs more text and time


@dataclass(frozen=True)
class Options(TransformerOptions):
    size: Literal["small", "medium", "large", "gpt2"] = option(
        "small",
        "preset of embedding dimension, heads and layers; gpt2 is GPT-2 of 124 million parameters, with learned "
        "positions, a context of 1024 tokens, and GELU by tanh",
    )
    attention: Literal["exact", "linear", "performer"] | OwnPart = option(
        "exact",
        "inner attention; alibi needs exact; your own: a class of nn.Module with forward(query, key, value, *, "
        "mask=None, causal=False) of (batch, heads, positions, head_dim)",
    )
    num_features: int = option(64, "random features of Performer attention", at_least=1, at_most=1_000_000)
    dropout: float = option(0.05, "dropout probability", at_least=0.0, below=1.0)
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
