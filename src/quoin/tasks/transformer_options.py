"""The options of a Transformer language model: its sizes, and what its blocks are made of. Imports no torch."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, Self

from quoin.errors import UserError, format_value
from quoin.options import default, flag_name, option
from quoin.tasks.sequence_options import SequenceOptions, TextOptions

__all__ = ["ARCHITECTURE", "TransformerOptions"]

ARCHITECTURE = (
    "size", "embed_dim", "num_heads", "num_layers", "block", "hidden_dim", "num_kv_heads", "activation", "norm_eps",
    "tie_embeddings", "position_embedding", "rope_theta", "context_length", "attention", "num_features",
)  # the options that fine-tuning takes over  # fmt: skip
_OF_LLAMA = ("num_kv_heads",)  # what only its blocks have


@dataclass(frozen=True)
class TransformerOptions(TextOptions, SequenceOptions):
    """What describes the architecture; None and 0 leave it to `--size` and `--block`."""

    size: str = option("small", "preset of embedding dimension, heads and layers")
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
    block: Literal["gpt", "llama"] = option(
        "gpt",
        "kind of the blocks: gpt has layer norms and biases; llama has RMS norms, gated feed-forward networks (SwiGLU) "
        "and no biases, and rotates pairs half a head apart",
    )
    hidden_dim: int = option(
        0,
        "units of each feed-forward network; 0 for 4 times --embed-dim, two thirds of that in llama blocks",
        at_least=0,
        at_most=1_000_000,
    )
    num_kv_heads: int = option(
        0,
        "of llama blocks: heads of keys and values (grouped-query attention); must divide --num-heads; 0 for as many",
        at_least=0,
        at_most=10_000,
    )
    activation: Literal["gelu", "gelu-tanh", "relu", "silu", "tanh"] | None = option(
        None,
        "activation of the feed-forward networks; unless given gelu-tanh for gpt2, silu in llama blocks, else gelu",
    )
    norm_eps: float = option(1e-5, "added to the variance in the norms", above=0.0, at_most=1.0)
    tie_embeddings: bool = option(True, "tie input and output embeddings")
    position_embedding: Literal["rotary", "learned", "sinusoidal", "alibi"] | None = option(
        None, "position embedding; unless given that of --size: learned for gpt2, else rotary"
    )
    rope_theta: float = option(10000.0, "base of the frequencies of rotary positions", above=0.0, at_most=1e12)
    context_length: int | None = default(None, "context length in tokens; unless given 1024 for --size gpt2, else 128")  # pyright: ignore

    pretrained: str = option(
        "",
        "fine-tune: start from the weights of a run of this recipe, such as `quoin import` makes; its tokenizer and "
        "its architecture are taken over",
    )
    pretrained_sha256: str = option("", "SHA-256 that these weights must have; a run records it")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pretrained_sha256 and not self.pretrained:
            raise UserError("--pretrained-sha256 is about the weights of --pretrained, got none: give both or neither")
        is_gpt2, is_llama = self.size == "gpt2", self.block == "llama"
        self._unless_given("position_embedding", "learned" if is_gpt2 and not is_llama else "rotary")
        self._unless_given("context_length", 1024 if is_gpt2 else 128)
        self._unless_given("activation", "silu" if is_llama else "gelu-tanh" if is_gpt2 else "gelu")
        if is_llama and self.position_embedding != "rotary":
            raise UserError(
                f"--block llama knows positions by rotating alone, got --position-embedding {self.position_embedding}: "
                "leave it out, or give --block gpt"
            )
        for name in _OF_LLAMA:
            if not is_llama and getattr(self, name):
                raise UserError(f"{flag_name(name)} is of --block llama, got --block {self.block}: leave it out")

    def resolved(self) -> Self:
        """The options of a new run: the architecture is that of the weights it starts from."""
        if not self.pretrained:
            return self
        from quoin.tasks.pretrained_files import read_pretrained_language_model

        found = read_pretrained_language_model(self.pretrained, "transformer-lm")
        if self.pretrained_sha256 not in ("", found.sha256):
            raise UserError(
                f"--pretrained-sha256: expected {format_value(self.pretrained_sha256, 80)}, but the weights at "
                f"{format_value(self.pretrained, 200)} have {found.sha256}: get the right ones, or leave it out"
            )
        usual, theirs = type(self)(), {name: found.options[name] for name in ARCHITECTURE if name in found.options}
        for name, value in theirs.items():
            if (given := getattr(self, name)) not in (getattr(usual, name), value):
                raise UserError(
                    f"{flag_name(name)} {given}: the weights of --pretrained {format_value(self.pretrained, 200)} are "
                    f"of a model with {value}; leave it out"
                )
        return dataclasses.replace(self, **theirs, pretrained=found.path, pretrained_sha256=found.sha256)

    def _unless_given(self, name: str, value: Any) -> None:
        if getattr(self, name) is None:
            object.__setattr__(self, name, value)
