"""GPT-NeoX as Hugging Face keeps it: its config to our blocks, its names to ours, and back.

With `use_parallel_residual` false and all features rotated it is GPT-2 with rotary positions, as the recipe
`transformer-lm` trains it by default. Each head's queries, keys and values lie together there, and pairs that are
rotated lie half a head apart; here all queries come first, and neighbours are rotated. Rows change their places and
nothing else.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from quoin.errors import UserError, format_value
from quoin.layers import (
    FeedForward,
    MultiHeadAttention,
    RotaryEmbedding,
    TransformerBlock,
    to_half_split,
    to_interleaved,
)
from quoin.models.gpt2 import ACTIVATIONS, activation_name
from quoin.models.hf_config import ConfigReader, language_source, load_language_weights, read_folder
from quoin.models.language_layout import LanguageLayout
from quoin.models.language_transformer import TransformerLanguageModel
from quoin.models.llama import rope_base
from quoin.models.pretrained import Weights, WeightSource, foreign_weights, read_safetensors

__all__ = [
    "gpt_neox_config",
    "gpt_neox_from_config",
    "gpt_neox_from_pretrained",
    "gpt_neox_weights",
    "load_gpt_neox_weights",
]

_SAME = {
    "attention_connection.norm": "input_layernorm",
    "attention.out_proj": "attention.dense",
    "feed_forward_connection.norm": "post_attention_layernorm",
    "feed_forward.up_proj": "mlp.dense_h_to_4h",
    "feed_forward.down_proj": "mlp.dense_4h_to_h",
}
HEAD = "embed_out.weight"  # in files; in memory newer versions call it lm_head
_KINDS = ("weight", "bias")
OUTSIDE = {
    "token_embedding.weight": WeightSource(("embed_in.weight",)),
    **{f"transformer.norm.{kind}": WeightSource((f"final_layer_norm.{kind}",)) for kind in _KINDS},
}


def _inside(num_heads: int) -> dict[str, WeightSource]:
    """The tables of a block of so many heads."""

    def joined(packed: Tensor) -> Tensor:  # (h * 3 * d, ...) -> (3 * h * d, ...)
        query, key, value = packed.unflatten(0, (num_heads, 3, -1)).transpose(0, 1).flatten(1, 2)
        return torch.cat([to_interleaved(query, num_heads), to_interleaved(key, num_heads), value])

    def packed(joined: Tensor) -> Sequence[Tensor]:
        query, key, value = joined.chunk(3)
        parts = torch.stack([to_half_split(query, num_heads), to_half_split(key, num_heads), value])
        return (parts.unflatten(1, (num_heads, -1)).transpose(0, 1).flatten(0, 2),)

    same = {f"{ours}.{kind}": WeightSource((f"{theirs}.{kind}",)) for ours, theirs in _SAME.items() for kind in _KINDS}
    return same | {
        f"attention.in_proj.linear.{kind}": WeightSource((f"attention.query_key_value.{kind}",), joined, packed)
        for kind in _KINDS
    }


def gpt_neox_from_config(config: Mapping[str, Any]) -> TransformerLanguageModel:
    """An untrained model of the sizes of a `config.json` of GPT-NeoX.

    >>> model = gpt_neox_from_config({"vocab_size": 65, "hidden_size": 16, "intermediate_size": 64,
    ...     "num_hidden_layers": 2, "num_attention_heads": 2, "use_parallel_residual": False, "rotary_pct": 1.0})
    >>> model.vocab_size, len(model.transformer.blocks)
    (65, 2)
    """
    reader = ConfigReader(config, "gpt_neox")
    check_gpt_neox(reader)
    embed_dim, num_heads = reader.count("hidden_size", 6144), reader.count("num_attention_heads", 64)

    def block() -> TransformerBlock:
        rotary = RotaryEmbedding(embed_dim // num_heads, base=gpt_neox_base(reader))
        activation = reader.choice("hidden_act", ACTIVATIONS, "gelu")
        return TransformerBlock(
            MultiHeadAttention(embed_dim, num_heads, rotary=rotary),
            FeedForward(embed_dim, reader.count("intermediate_size", 24576), activation=activation),
            norm=lambda dim: nn.LayerNorm(dim, eps=reader.positive("layer_norm_eps", 1e-5)),
        )

    return TransformerLanguageModel(
        reader.count("vocab_size", 50432),
        [block() for _ in range(reader.count("num_hidden_layers", 44))],
        tie_embeddings=reader.flag("tie_word_embeddings", False),
    )


def gpt_neox_base(reader: ConfigReader) -> float:
    """The base of the rotary embeddings, under its newer or its older name."""
    return rope_base(reader) if reader.values.get("rope_parameters") else reader.positive("rotary_emb_base", 10000.0)


def check_gpt_neox(reader: ConfigReader) -> None:
    """Raise an error for what the family may be and our blocks are not."""
    for name, default, wanted in (("use_parallel_residual", True, False), ("attention_bias", True, True)):
        if reader.flag(name, default) != wanted:
            raise UserError(
                f"expected a gpt_neox model with {name} {str(wanted).lower()}, got {str(not wanted).lower()}; "
                "such models cannot be opened here"
            )
    newer = reader.values.get("rope_parameters") or {}
    rotated = newer.get("partial_rotary_factor", reader.values.get("rotary_pct", 0.25))
    if rotated != 1.0:
        raise UserError(
            f"expected a gpt_neox model that rotates all features, rotary_pct 1.0, got {format_value(rotated)}; "
            "such models cannot be opened here"
        )


def load_gpt_neox_weights(model: TransformerLanguageModel, weights: Weights) -> None:
    """Fill `model` from a `state_dict` or safetensors file in Hugging Face's naming of GPT-NeoX, with `gpt_neox.`
    before it or without.

    Strictly: names that lack or are left over and shapes that differ raise an error, and the model is unchanged. Masks
    and rotary frequencies, which files of old kept as buffers, are no weights.
    """
    buffers = (".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq")
    inside = _inside(model.transformer.blocks[0].attention.num_heads)  # pyright: ignore
    state = dict(weights) if isinstance(weights, Mapping) else read_safetensors(weights)
    state = {HEAD if name == "lm_head.weight" else name: tensor for name, tensor in state.items()}
    load_language_weights(model, state, inside, OUTSIDE, prefix="gpt_neox.", block="layers", forget=buffers, head=HEAD)


def gpt_neox_config(layout: LanguageLayout, context_length: int) -> dict[str, Any]:
    """The `config.json` of a model of this layout, without its tokens of beginning and end: it has none."""
    rope = {"rope_type": "default", "rope_theta": layout.rope_base, "partial_rotary_factor": 1.0}
    return {
        "model_type": "gpt_neox",
        "architectures": ["GPTNeoXForCausalLM"],
        "vocab_size": layout.vocab_size,
        "max_position_embeddings": context_length,
        "hidden_size": layout.embed_dim,
        "intermediate_size": layout.hidden_dim,
        "num_hidden_layers": layout.num_layers,
        "num_attention_heads": layout.num_heads,
        "hidden_act": activation_name(layout.activation),
        "layer_norm_eps": layout.norm_eps,
        "use_parallel_residual": False,
        "attention_bias": True,
        "rotary_pct": 1.0,
        "rotary_emb_base": layout.rope_base,
        "rope_parameters": rope,  # as newer versions read it
        "tie_word_embeddings": layout.tie_embeddings,
    }


def gpt_neox_weights(model: TransformerLanguageModel) -> dict[str, Shaped[Tensor, "..."]]:
    """The weights of `model` as Hugging Face names GPT-NeoX's: what `load_gpt_neox_weights` reads."""
    inside = _inside(model.transformer.blocks[0].attention.num_heads)  # pyright: ignore
    return foreign_weights(model, language_source(inside, OUTSIDE, lead="gpt_neox.", block="layers", head=HEAD))


def gpt_neox_from_pretrained(folder: str | Path) -> TransformerLanguageModel:
    """The GPT-NeoX that `save_pretrained` left in `folder`: its `config.json` and its safetensors, whole or in
    shards."""
    config, weights = read_folder(folder)
    model = gpt_neox_from_config(config)
    load_gpt_neox_weights(model, weights)
    return model.eval()
