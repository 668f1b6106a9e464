"""Llama as Hugging Face keeps it: its config to our blocks, and its names to ours.

Against GPT-2: RMS norms, a gated perceptron, no biases, fewer heads of keys and values than of queries, and positions by turning
queries and keys in pairs half a head apart. Queries, keys and values are kept one by one, and so are the perceptron's two maps inward.
"""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from quoin.errors import Mistake, shown
from quoin.layers import GatedFeedForward, HalfSplitRotary, MultiHeadAttention, TransformerBlock
from quoin.models.foreign import Origin, Weights, stacked
from quoin.models.gpt2 import ACTIVATIONS
from quoin.models.huggingface import ConfigReader, load_language_weights, read_folder
from quoin.models.language_transformer import LanguageTransformer

__all__ = ["llama_block", "llama_from_config", "load_llama", "open_llama"]

INSIDE = {
    "attention_wire.norm.weight": Origin(("input_layernorm.weight",)),
    "attention.project.linear.weight": stacked(*(f"self_attn.{each}_proj.weight" for each in "qkv")),
    "attention.f_o.weight": Origin(("self_attn.o_proj.weight",)),
    "feed_forward_wire.norm.weight": Origin(("post_attention_layernorm.weight",)),
    "feed_forward.first.weight": stacked("mlp.gate_proj.weight", "mlp.up_proj.weight"),
    "feed_forward.second.weight": Origin(("mlp.down_proj.weight",)),
}
OUTSIDE = {"codes.weight": Origin(("embed_tokens.weight",)), "stack.norm.weight": Origin(("norm.weight",))}


def llama_block(
    width: int,
    heads: int,
    hidden: int,
    *,
    key_value_heads: int | None = None,
    base: float = 10000.0,
    eps: float = 1e-6,
    activation: Callable[[Tensor], Tensor] = functional.silu,
) -> TransformerBlock:
    """A block of Llama: x + attend(RMSNorm(x)), then x + SwiGLU(RMSNorm(x)), without biases, positions by half-split rotary turns.

    >>> import torch
    >>> llama_block(8, 4, 21, key_value_heads=2)(torch.zeros(3, 5, 8), causal=True).shape
    torch.Size([3, 5, 8])
    """
    if heads < 1 or width % heads or (width // heads) % 2:
        raise Mistake(f"expected heads that divide the width {width} into even parts, came {heads}; choose such a number")
    turn = HalfSplitRotary(width // heads, base=base)
    attention = MultiHeadAttention(width, heads, key_value_heads=key_value_heads, turn=turn, bias=False)
    return TransformerBlock(attention, GatedFeedForward(width, hidden, activation=activation), norm=functools.partial(nn.RMSNorm, eps=eps))


def llama_from_config(config: Mapping[str, Any]) -> LanguageTransformer:
    """An untrained model of the sizes of a `config.json` of Llama.

    >>> model = llama_from_config({"vocab_size": 65, "hidden_size": 16, "intermediate_size": 40, "num_hidden_layers": 2,
    ...                            "num_attention_heads": 4, "num_key_value_heads": 2})
    >>> model.vocabulary_size, len(model.stack.blocks)
    (65, 2)
    """
    said = ConfigReader(config, "llama")
    for name in ("attention_bias", "mlp_bias"):
        if said.flag(name, False):
            raise Mistake(f"expected a llama model without biases, came {name} true; such models cannot be opened here")
    width, heads = said.count("hidden_size", 4096), said.count("num_attention_heads", 32)
    if said.count("head_dim", max(1, width // heads)) != width // heads:
        raise Mistake(
            f"expected heads of width {width // heads}, the model's by their number, came head_dim {said.count('head_dim')}; "
            "models whose heads are wider than that cannot be opened here"
        )
    block = functools.partial(
        llama_block,
        width,
        heads,
        said.count("intermediate_size", 11008),
        key_value_heads=said.count("num_key_value_heads", heads),
        base=_base(said),
        eps=said.positive("rms_norm_eps", 1e-6),
        activation=said.choice("hidden_act", ACTIVATIONS, "silu"),
    )
    return LanguageTransformer(
        said.count("vocab_size", 32000),
        [block() for _ in range(said.count("num_hidden_layers", 32))],
        tied=said.flag("tie_word_embeddings", False),
    )


def _base(said: ConfigReader) -> float:
    """The base of the turns: newer files keep it among `rope_parameters`, older ones as `rope_theta` beside `rope_scaling`."""
    for name in ("rope_parameters", "rope_scaling"):
        found = said.values.get(name) or {}
        kind = found.get("rope_type", found.get("type", "default")) if isinstance(found, Mapping) else found
        if kind != "default":
            raise Mistake(f"expected turns at the plain speeds, came {name} of kind {shown(kind)}; such models cannot be opened here")
        if "rope_theta" in found:
            return ConfigReader(found, said.family).positive("rope_theta", 10000.0)
    return said.positive("rope_theta", 10000.0)


def load_llama(model: LanguageTransformer, weights: Weights) -> None:
    """Fill `model` from a `state_dict` or safetensors file in Hugging Face's naming of Llama, with `model.` before it or without.

    Strictly: names that lack or are left over and shapes that differ are refused, and the model is unchanged. Speeds of the turns,
    which files of old kept as buffers, are no weights.
    """
    load_language_weights(model, weights, INSIDE, OUTSIDE, prefix="model.", block="layers", forget=(".rotary_emb.inv_freq",))


def open_llama(folder: str | Path) -> LanguageTransformer:
    """The Llama that `save_pretrained` left in `folder`: its `config.json` and its safetensors, whole or in shards."""
    config, weights = read_folder(folder)
    model = llama_from_config(config)
    load_llama(model, weights)
    return model.eval()
