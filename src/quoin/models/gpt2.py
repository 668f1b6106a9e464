"""GPT-2 as Hugging Face keeps it: its config to our blocks, its names to ours, and back.

Its maps are kept (in_features, out_features), as convolutions of width one. The model itself is
`TransformerLanguageModel`; `GPT` is the same one by its sizes, and takes these weights too.
"""

import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jaxtyping import Shaped
from torch import Tensor, nn
from torch.nn import functional

from quoin.layers import (
    ExactAttention,
    FeedForward,
    LearnedPositionalEmbedding,
    MultiHeadAttention,
    SinusoidalPositionalEncoding,
    TransformerBlock,
)
from quoin.models.hf_config import ConfigReader, language_source, load_language_weights, read_folder
from quoin.models.language_layout import LanguageLayout
from quoin.models.language_transformer import TransformerLanguageModel, tanh_gelu
from quoin.models.pretrained import Weights, WeightSource, foreign_weights, transposed

__all__ = ["gpt2_config", "gpt2_from_config", "gpt2_from_pretrained", "gpt2_weights", "load_gpt2_weights"]

ACTIVATIONS = {
    "gelu_new": tanh_gelu,
    "gelu_pytorch_tanh": tanh_gelu,
    "gelu": functional.gelu,
    "relu": functional.relu,
    "silu": functional.silu,
    "tanh": functional.tanh,
}


def _linear(own: str, theirs: str) -> dict[str, WeightSource]:
    return {f"{own}.weight": transposed(f"{theirs}.weight"), f"{own}.bias": WeightSource((f"{theirs}.bias",))}


def _norm(own: str, theirs: str) -> dict[str, WeightSource]:
    return {f"{own}.{kind}": WeightSource((f"{theirs}.{kind}",)) for kind in ("weight", "bias")}


INSIDE = {
    **_norm("attention_connection.norm", "ln_1"),
    **_linear("attention.in_proj.linear", "attn.c_attn"),
    **_linear("attention.out_proj", "attn.c_proj"),
    **_norm("feed_forward_connection.norm", "ln_2"),
    **_linear("feed_forward.up_proj", "mlp.c_fc"),
    **_linear("feed_forward.down_proj", "mlp.c_proj"),
}
OUTSIDE = {
    "token_embedding.weight": WeightSource(("wte.weight",)),
    "position_embedding.weight": WeightSource(("wpe.weight",)),
    **_norm("transformer.norm", "ln_f"),
}


def gpt2_from_config(config: Mapping[str, Any]) -> TransformerLanguageModel:
    """An untrained model of the sizes of a `config.json` of GPT-2, in which no dropout is left.

    >>> model = gpt2_from_config({"vocab_size": 65, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2})
    >>> model.vocab_size, model.context_length, len(model.transformer.blocks)
    (65, 32, 2)
    """
    reader = ConfigReader(config, "gpt2")
    if reader.flag("add_cross_attention", False):
        raise reader.error("add_cross_attention", "false", True)
    embed_dim, num_heads, context_length = (
        reader.count("n_embd", 768),
        reader.count("n_head", 12),
        reader.count("n_positions", 1024),
    )
    norm = functools.partial(nn.LayerNorm, eps=reader.positive("layer_norm_epsilon", 1e-5))
    by_depth = reader.flag("scale_attn_by_inverse_layer_idx", False)
    scale = 1 / math.sqrt(max(1, embed_dim // num_heads)) if reader.flag("scale_attn_weights", True) else 1.0

    def block(number: int) -> TransformerBlock:
        inner_attention = ExactAttention(scale=scale / number if by_depth else scale)
        feed_forward = FeedForward(
            embed_dim,
            reader.count("n_inner", 4 * embed_dim),
            activation=reader.choice("activation_function", ACTIVATIONS, "gelu_new"),
        )
        return TransformerBlock(
            MultiHeadAttention(embed_dim, num_heads, inner_attention=inner_attention), feed_forward, norm=norm
        )

    return TransformerLanguageModel(
        reader.count("vocab_size", 50257),
        [block(number) for number in range(1, reader.count("n_layer", 12) + 1)],
        position_embedding=LearnedPositionalEmbedding(context_length, embed_dim),
        context_length=context_length,
        tie_embeddings=reader.flag("tie_word_embeddings", True),
    )


def load_gpt2_weights(model: TransformerLanguageModel, weights: Weights) -> None:
    """Fill `model` from a `state_dict` or safetensors file in Hugging Face's naming of GPT-2, with `transformer.`
    before it or without.

    Strictly: names that lack or are left over and shapes that differ raise an error, and the model is unchanged. Causal
    masks, which files of old kept as buffers, are no weights.
    """
    masks = (".attn.bias", ".attn.masked_bias")
    load_language_weights(model, weights, INSIDE, OUTSIDE, prefix="transformer.", block="h", forget=masks)


def gpt2_config(layout: LanguageLayout, context_length: int) -> dict[str, Any]:
    """The `config.json` of a model of this layout, without its tokens of beginning and end: it has none."""
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": layout.vocab_size,
        "n_positions": context_length,
        "n_embd": layout.embed_dim,
        "n_layer": layout.num_layers,
        "n_head": layout.num_heads,
        "n_inner": layout.hidden_dim,
        "activation_function": activation_name(layout.activation),
        "layer_norm_epsilon": layout.norm_eps,
        "tie_word_embeddings": layout.tie_embeddings,
    }


def gpt2_weights(model: TransformerLanguageModel, context_length: int) -> dict[str, Shaped[Tensor, "..."]]:
    """The weights of `model` as Hugging Face names GPT-2's: what `load_gpt2_weights` reads.

    Sinusoidal positions become the table of the first `context_length` of them.
    """
    weights = foreign_weights(model, language_source(INSIDE, OUTSIDE, lead="transformer.", block="h"))
    if isinstance(model.position_embedding, SinusoidalPositionalEncoding):
        embedding = model.token_embedding.weight
        weights["transformer.wpe.weight"] = model.position_embedding(
            embedding.new_zeros(context_length, len(embedding[0]))
        )
    return weights


def activation_name(activation: Callable[[Tensor], Tensor]) -> str:
    """What Hugging Face calls it."""
    return next(name for name, each in ACTIVATIONS.items() if each is activation)


def gpt2_from_pretrained(folder: str | Path) -> TransformerLanguageModel:
    """The GPT-2 that `save_pretrained` left in `folder`: its `config.json` and its safetensors, whole or in shards."""
    config, weights = read_folder(folder)
    model = gpt2_from_config(config)
    load_gpt2_weights(model, weights)
    return model.eval()
