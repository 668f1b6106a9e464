"""GPT-2 as Hugging Face keeps it: its config to our blocks, and its names to ours.

Its maps are kept (inputs, outputs), as convolutions of width one. The model itself is `LanguageTransformer`; `GPT` is the same one by its
sizes, and takes these weights too.
"""

import functools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn
from torch.nn import functional

from quoin.layers import ExactAttention, FeedForward, LearnedPositions, MultiHeadAttention, TransformerBlock
from quoin.models.foreign import Origin, Weights, transposed
from quoin.models.huggingface import ConfigReader, load_language_weights, read_folder
from quoin.models.language_transformer import LanguageTransformer, tanh_gelu

__all__ = ["gpt2_from_config", "load_gpt2", "open_gpt2"]

ACTIVATIONS = {
    "gelu_new": tanh_gelu,
    "gelu_pytorch_tanh": tanh_gelu,
    "gelu": functional.gelu,
    "relu": functional.relu,
    "silu": functional.silu,
    "tanh": functional.tanh,
}


def _linear(own: str, theirs: str) -> dict[str, Origin]:
    return {f"{own}.weight": transposed(f"{theirs}.weight"), f"{own}.bias": Origin((f"{theirs}.bias",))}


def _norm(own: str, theirs: str) -> dict[str, Origin]:
    return {f"{own}.{kind}": Origin((f"{theirs}.{kind}",)) for kind in ("weight", "bias")}


INSIDE = {
    **_norm("attention_wire.norm", "ln_1"),
    **_linear("attention.project.linear", "attn.c_attn"),
    **_linear("attention.f_o", "attn.c_proj"),
    **_norm("feed_forward_wire.norm", "ln_2"),
    **_linear("feed_forward.first", "mlp.c_fc"),
    **_linear("feed_forward.second", "mlp.c_proj"),
}
OUTSIDE = {"codes.weight": Origin(("wte.weight",)), "positions.codes": Origin(("wpe.weight",)), **_norm("stack.norm", "ln_f")}


def gpt2_from_config(config: Mapping[str, Any]) -> LanguageTransformer:
    """An untrained model of the sizes of a `config.json` of GPT-2, in which no dropout is left.

    >>> model = gpt2_from_config({"vocab_size": 65, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2})
    >>> model.vocabulary_size, model.context, len(model.stack.blocks)
    (65, 32, 2)
    """
    said = ConfigReader(config, "gpt2")
    if said.flag("add_cross_attention", False):
        raise said.refused("add_cross_attention", "false", True)
    width, heads, context = said.count("n_embd", 768), said.count("n_head", 12), said.count("n_positions", 1024)
    norm = functools.partial(nn.LayerNorm, eps=said.positive("layer_norm_epsilon", 1e-5))
    by_depth = said.flag("scale_attn_by_inverse_layer_idx", False)
    scale = 1 / math.sqrt(max(1, width // heads)) if said.flag("scale_attn_weights", True) else 1.0

    def block(number: int) -> TransformerBlock:
        core = ExactAttention(scale=scale / number if by_depth else scale)
        perceptron = FeedForward(
            width, said.count("n_inner", 4 * width), activation=said.choice("activation_function", ACTIVATIONS, "gelu_new")
        )
        return TransformerBlock(MultiHeadAttention(width, heads, core=core), perceptron, norm=norm)

    return LanguageTransformer(
        said.count("vocab_size", 50257),
        [block(number) for number in range(1, said.count("n_layer", 12) + 1)],
        positions=LearnedPositions(context, width),
        context=context,
        tied=said.flag("tie_word_embeddings", True),
    )


def load_gpt2(model: LanguageTransformer, weights: Weights) -> None:
    """Fill `model` from a `state_dict` or safetensors file in Hugging Face's naming of GPT-2, with `transformer.` before it or without.

    Strictly: names that lack or are left over and shapes that differ are refused, and the model is unchanged. Causal masks, which
    files of old kept as buffers, are no weights.
    """
    masks = (".attn.bias", ".attn.masked_bias")
    load_language_weights(model, weights, INSIDE, OUTSIDE, prefix="transformer.", block="h", forget=masks)


def open_gpt2(folder: str | Path) -> LanguageTransformer:
    """The GPT-2 that `save_pretrained` left in `folder`: its `config.json` and its safetensors, whole or in shards."""
    config, weights = read_folder(folder)
    model = gpt2_from_config(config)
    load_gpt2(model, weights)
    return model.eval()
