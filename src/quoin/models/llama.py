"""Llama as Hugging Face keeps it: its config to our blocks, its names to ours, and back.

Against GPT-2: RMS norms, a gated feed-forward network, no biases, fewer heads of keys and values than of queries, and
positions by rotating queries and keys in pairs half a head apart. Queries, keys and values are kept one by one, and so
are the gate and up projections.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.nn import functional

from quoin.errors import UserError, format_value
from quoin.layers import GatedFeedForward, HalfSplitRotaryEmbedding, MultiHeadAttention, TransformerBlock
from quoin.models.gpt2 import ACTIVATIONS, activation_name
from quoin.models.hf_config import ConfigReader, language_source, load_language_weights, read_folder
from quoin.models.language_layout import LanguageLayout
from quoin.models.language_transformer import TransformerLanguageModel
from quoin.models.pretrained import Weights, WeightSource, foreign_weights, stacked

__all__ = [
    "llama_block",
    "llama_config",
    "llama_from_config",
    "llama_from_pretrained",
    "llama_weights",
    "load_llama_weights",
    "rope_base",
]

INSIDE = {
    "attention_connection.norm.weight": WeightSource(("input_layernorm.weight",)),
    "attention.in_proj.linear.weight": WeightSource(
        tuple(f"self_attn.{each}_proj.weight" for each in "qkv"),
        lambda *matrices: torch.cat(matrices),
        lambda matrix: _queries_keys_values(matrix),
    ),
    "attention.out_proj.weight": WeightSource(("self_attn.o_proj.weight",)),
    "feed_forward_connection.norm.weight": WeightSource(("post_attention_layernorm.weight",)),
    "feed_forward.gate_up_proj.weight": stacked("mlp.gate_proj.weight", "mlp.up_proj.weight"),
    "feed_forward.down_proj.weight": WeightSource(("mlp.down_proj.weight",)),
}
OUTSIDE = {
    "token_embedding.weight": WeightSource(("embed_tokens.weight",)),
    "transformer.norm.weight": WeightSource(("norm.weight",)),
}


def _queries_keys_values(matrix: Tensor) -> Sequence[Tensor]:
    """Queries have as many features as they are made of; keys and values share the other rows."""
    of_keys = (len(matrix) - matrix.shape[1]) // 2
    return matrix.split([matrix.shape[1], of_keys, of_keys])


def llama_block(
    embed_dim: int,
    num_heads: int,
    hidden_dim: int,
    *,
    num_kv_heads: int | None = None,
    base: float = 10000.0,
    eps: float = 1e-6,
    activation: Callable[[Tensor], Tensor] = functional.silu,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> TransformerBlock:
    """A block of Llama: x + attend(RMSNorm(x)), then x + SwiGLU(RMSNorm(x)), without biases, positions by half-split
    rotary embeddings.

    Args:
        num_kv_heads: Heads of keys and values; `num_heads` unless given.
        base: Of the rotary embeddings; Hugging Face's `rope_theta`.
        eps: Of the RMS norms.
        activation: Of the gates.
        dropout: Of the output of each sublayer.

    >>> import torch
    >>> llama_block(8, 4, 21, num_kv_heads=2)(torch.zeros(3, 5, 8), causal=True).shape
    torch.Size([3, 5, 8])
    """
    if num_heads < 1 or embed_dim % num_heads or (embed_dim // num_heads) % 2:
        raise UserError(
            f"expected num_heads that divide embed_dim {embed_dim} into an even head_dim, got {num_heads}; choose "
            "such a number"
        )
    rotary = HalfSplitRotaryEmbedding(embed_dim // num_heads, base=base)
    attention = MultiHeadAttention(
        embed_dim, num_heads, num_kv_heads=num_kv_heads, rotary=rotary, bias=False, generator=generator
    )
    return TransformerBlock(
        attention,
        GatedFeedForward(embed_dim, hidden_dim, activation=activation, generator=generator),
        norm=functools.partial(nn.RMSNorm, eps=eps),
        dropout=dropout,
    )


def llama_from_config(config: Mapping[str, Any]) -> TransformerLanguageModel:
    """An untrained model of the sizes of a `config.json` of Llama.

    >>> model = llama_from_config({"vocab_size": 65, "hidden_size": 16, "intermediate_size": 40, "num_hidden_layers": 2,
    ...                            "num_attention_heads": 4, "num_key_value_heads": 2})
    >>> model.vocab_size, len(model.transformer.blocks)
    (65, 2)
    """
    reader = ConfigReader(config, "llama")
    for name in ("attention_bias", "mlp_bias"):
        if reader.flag(name, False):
            raise UserError(
                f"expected a llama model without biases, got {name} true; such models cannot be opened here"
            )
    embed_dim, num_heads = reader.count("hidden_size", 4096), reader.count("num_attention_heads", 32)
    if reader.count("head_dim", max(1, embed_dim // num_heads)) != embed_dim // num_heads:
        raise UserError(
            f"expected head_dim {embed_dim // num_heads}, embed_dim by num_heads, got {reader.count('head_dim')}; "
            "models of another head_dim cannot be opened here"
        )
    block = functools.partial(
        llama_block,
        embed_dim,
        num_heads,
        reader.count("intermediate_size", 11008),
        num_kv_heads=reader.count("num_key_value_heads", num_heads),
        base=rope_base(reader),
        eps=reader.positive("rms_norm_eps", 1e-6),
        activation=reader.choice("hidden_act", ACTIVATIONS, "silu"),
    )
    return TransformerLanguageModel(
        reader.count("vocab_size", 32000),
        [block() for _ in range(reader.count("num_hidden_layers", 32))],
        tie_embeddings=reader.flag("tie_word_embeddings", False),
    )


def rope_base(reader: ConfigReader) -> float:
    """The base of the rotary embeddings: newer files keep it among `rope_parameters`, older ones as `rope_theta` beside
    `rope_scaling`.
    """
    for name in ("rope_parameters", "rope_scaling"):
        found = reader.values.get(name) or {}
        kind = found.get("rope_type", found.get("type", "default")) if isinstance(found, Mapping) else found
        if kind != "default":
            raise UserError(
                f"expected rotary embeddings of the default kind, got {name} of kind {format_value(kind)}; "
                "such models cannot be opened here"
            )
        if "rope_theta" in found:
            return ConfigReader(found, reader.family).positive("rope_theta", 10000.0)
    return reader.positive("rope_theta", 10000.0)


def load_llama_weights(model: TransformerLanguageModel, weights: Weights) -> None:
    """Fill `model` from a `state_dict` or safetensors file in Hugging Face's naming of Llama, with `model.` before it
    or without.

    Strictly: names that lack or are left over and shapes that differ raise an error, and the model is unchanged. Rotary
    frequencies, which files of old kept as buffers, are no weights.
    """
    load_language_weights(
        model, weights, INSIDE, OUTSIDE, prefix="model.", block="layers", forget=(".rotary_emb.inv_freq",)
    )


def llama_config(layout: LanguageLayout, context_length: int) -> dict[str, Any]:
    """The `config.json` of a model of this layout, without its tokens of beginning and end: it has none."""
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": layout.vocab_size,
        "max_position_embeddings": context_length,
        "hidden_size": layout.embed_dim,
        "intermediate_size": layout.hidden_dim,
        "num_hidden_layers": layout.num_layers,
        "num_attention_heads": layout.num_heads,
        "num_key_value_heads": layout.num_kv_heads,
        "hidden_act": activation_name(layout.activation),
        "rms_norm_eps": layout.norm_eps,
        "rope_theta": layout.rope_base,
        "rope_parameters": {"rope_type": "default", "rope_theta": layout.rope_base},  # as newer versions read it
        "tie_word_embeddings": layout.tie_embeddings,
    }


def llama_weights(model: TransformerLanguageModel) -> dict[str, Shaped[Tensor, "..."]]:
    """The weights of `model` as Hugging Face names Llama's: what `load_llama_weights` reads."""
    return foreign_weights(model, language_source(INSIDE, OUTSIDE, lead="model.", block="layers"))


def llama_from_pretrained(folder: str | Path) -> TransformerLanguageModel:
    """The Llama that `save_pretrained` left in `folder`: its `config.json` and its safetensors, whole or in shards."""
    config, weights = read_folder(folder)
    model = llama_from_config(config)
    load_llama_weights(model, weights)
    return model.eval()
