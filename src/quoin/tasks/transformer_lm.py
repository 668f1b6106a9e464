"""From options to a Transformer that models language: its sizes, how it attends, and how it knows where a token
stands."""

import functools
from typing import Any

from torch import nn
from torch.nn import functional

from quoin.data import TextInfo, keyed_generator
from quoin.errors import UserError
from quoin.layers import (
    ALiBi,
    ExactAttention,
    FeedForward,
    InnerAttention,
    LearnedPositionalEmbedding,
    LinearAttention,
    MultiHeadAttention,
    PerformerAttention,
    RotaryEmbedding,
    SinusoidalPositionalEncoding,
    TransformerBlock,
)
from quoin.models import TransformerLanguageModel, llama_block
from quoin.models.language_transformer import tanh_gelu
from quoin.models.transformer import PositionEmbedding
from quoin.own_code import is_code_reference
from quoin.tasks.own_attention import own_attention_maker

__all__ = ["ACTIVATIONS", "language_transformer"]

ACTIVATIONS = {
    "gelu": functional.gelu,
    "gelu-tanh": tanh_gelu,
    "relu": functional.relu,
    "silu": functional.silu,
    "tanh": functional.tanh,
}  # as `--activation` names them


def language_transformer(options: Any, data_info: TextInfo, sizes: tuple[int, int, int]) -> TransformerLanguageModel:
    """The model that the options of the recipe `transformer-lm` describe, of these sizes where the options name
    none."""
    embed_dim, num_heads, num_layers = (
        given or usual
        for given, usual in zip((options.embed_dim, options.num_heads, options.num_layers), sizes, strict=True)
    )
    if embed_dim % num_heads:
        raise UserError(
            f"--num-heads expects a divisor of --embed-dim {embed_dim}, got {num_heads}: give another --num-heads "
            "or --embed-dim"
        )
    if options.position_embedding == "alibi" and options.attention != "exact":
        raise UserError(
            f"--position-embedding alibi adds to scores, and {options.attention} attention has none: give "
            "--position-embedding rotary"
        )
    weights, directions = keyed_generator("weights", options.seed), keyed_generator("directions", options.seed)

    own, activation = None, ACTIVATIONS[options.activation]
    if options.block == "llama" and options.attention != "exact":
        raise UserError(f"--block llama attends exactly, got --attention {options.attention}: leave one of them out")
    if is_code_reference(options.attention):
        own = own_attention_maker(
            options.attention,
            embed_dim=embed_dim,
            num_heads=num_heads,
            seed=options.seed,
            causal=True,
            padded=False,
            context_length=options.context_length,
        )

    def inner_attention() -> InnerAttention:
        if own is not None:
            return own()
        if options.attention == "linear":
            return LinearAttention()
        if options.attention == "performer":
            return PerformerAttention(embed_dim // num_heads, options.num_features, generator=directions)
        return ExactAttention(bias=ALiBi(num_heads) if options.position_embedding == "alibi" else None)

    def block() -> TransformerBlock:
        if options.block == "llama":
            return llama_block(
                embed_dim,
                num_heads,
                options.hidden_dim or 8 * embed_dim // 3,
                num_kv_heads=options.num_kv_heads or None,
                base=options.rope_theta,
                eps=options.norm_eps,
                activation=activation,
                dropout=options.dropout,
                generator=weights,
            )
        is_rotary = options.position_embedding == "rotary"
        rotary = RotaryEmbedding(embed_dim // num_heads, base=options.rope_theta) if is_rotary else None
        attention = MultiHeadAttention(
            embed_dim, num_heads, inner_attention=inner_attention(), rotary=rotary, generator=weights
        )
        feed_forward = FeedForward(embed_dim, options.hidden_dim or None, activation=activation, generator=weights)
        norm = functools.partial(nn.LayerNorm, eps=options.norm_eps)
        return TransformerBlock(attention, feed_forward, norm=norm, dropout=options.dropout)

    def position_embedding() -> PositionEmbedding | None:
        if options.position_embedding == "learned":
            return LearnedPositionalEmbedding(options.context_length, embed_dim, generator=weights)
        return SinusoidalPositionalEncoding(embed_dim) if options.position_embedding == "sinusoidal" else None

    return TransformerLanguageModel(
        data_info.vocab_size,
        [block() for _ in range(num_layers)],
        position_embedding=position_embedding(),
        context_length=options.context_length if options.position_embedding == "learned" else None,
        tie_embeddings=options.tie_embeddings,
        dropout=options.dropout,
        generator=weights,
    )
