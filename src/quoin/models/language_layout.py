"""How a Transformer language model is built, read off its modules: what another library's config must say of it."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers import (
    ExactAttention,
    FeedForward,
    GatedFeedForward,
    HalfSplitRotaryEmbedding,
    LearnedPositionalEmbedding,
    PreNorm,
    RotaryEmbedding,
    SinusoidalPositionalEncoding,
    TransformerBlock,
)
from quoin.models.language_transformer import TransformerLanguageModel

__all__ = ["LanguageLayout", "language_layout"]

Positions = Literal["none", "learned", "sinusoidal", "rotary", "half-split rotary"]


@shown
class LanguageLayout(NamedTuple):
    """The sizes of a model and the parts that all its blocks share."""

    vocab_size: int
    embed_dim: int
    num_heads: int
    num_kv_heads: int
    num_layers: int
    hidden_dim: int
    positions: Positions
    rope_base: float  # of rotary positions
    norm: Literal["layer", "rms"]
    norm_eps: float
    is_gated: bool  # its feed-forward networks
    activation: Callable[[Tensor], Tensor]  # of these
    has_bias: bool
    tie_embeddings: bool


def language_layout(model: TransformerLanguageModel) -> LanguageLayout:
    """The layout of `model`; a UserError says which of its parts no layout describes.

    >>> from quoin.models import GPT
    >>> layout = language_layout(GPT(65, embed_dim=16, num_heads=2, num_layers=3, context_length=32))
    >>> layout.num_layers, layout.hidden_dim, layout.positions, layout.norm
    (3, 64, 'learned', 'layer')
    """
    first, *others = [_block(each) for each in model.transformer.blocks]
    if any(each != first for each in others):
        raise UserError("expected blocks that are all alike, got others; it cannot be described by one config")
    num_heads, num_kv_heads, hidden_dim, rotary, norm, eps, is_gated, activation, has_bias = first
    positions, base = _positions(model.position_embedding, rotary)
    if _norm(model.transformer.norm) != (norm, eps):
        raise UserError(
            "expected a last norm as those of the blocks, got another; it cannot be described by one config"
        )
    return LanguageLayout(
        model.vocab_size, model.embed_dim, num_heads, num_kv_heads, len(others) + 1, hidden_dim, positions, base,
        norm, eps, is_gated, activation, has_bias, model.lm_head is None,
    )  # fmt: skip


class _Block(NamedTuple):
    num_heads: int
    num_kv_heads: int
    hidden_dim: int
    rotary: tuple[Positions, float]
    norm: Literal["layer", "rms"]
    norm_eps: float
    is_gated: bool
    activation: Callable[[Tensor], Tensor]
    has_bias: bool


def _block(block: TransformerBlock) -> _Block:
    attention, feed_forward = block.attention, block.feed_forward
    inner = attention.inner_attention
    if not isinstance(inner, ExactAttention) or inner.bias is not None:
        what = "biases of its scores" if isinstance(inner, ExactAttention) else type(inner).__name__
        raise UserError(f"expected exact attention without biases of its scores, got {what}; it has no such layout")
    if inner.scale is not None and not math.isclose(inner.scale, attention.head_dim**-0.5):
        raise UserError(f"expected scores scaled by 1/√head_dim, got {inner.scale:g}; it has no such layout")
    if not isinstance(feed_forward, FeedForward | GatedFeedForward):
        raise UserError(f"expected a feed-forward network, got {type(feed_forward).__name__}; it has no such layout")
    connections = (block.attention_connection, block.feed_forward_connection)
    norms = {_norm(each.norm) for each in connections}
    if not all(isinstance(each, PreNorm) for each in connections) or len(norms) > 1:
        raise UserError("expected pre-norm blocks with equal norms, got others; they have no such layout")
    biases = {linear.bias is not None for linear in block.modules() if isinstance(linear, nn.Linear)}
    if len(biases) > 1:
        raise UserError("expected biases in all maps or in none, got some; it has no such layout")
    (norm, eps), (has_bias,) = norms.pop(), biases
    return _Block(
        attention.num_heads,
        attention.num_kv_heads,
        feed_forward.down_proj.in_features,
        _rotary(attention.rotary),
        norm,
        eps,
        isinstance(feed_forward, GatedFeedForward),
        feed_forward.activation,
        has_bias,
    )


def _norm(norm: nn.Module) -> tuple[Literal["layer", "rms"], float]:
    if isinstance(norm, nn.LayerNorm) and norm.bias is not None:
        return "layer", norm.eps
    if isinstance(norm, nn.RMSNorm) and norm.eps is not None and norm.elementwise_affine:
        return "rms", norm.eps
    raise UserError(f"expected a layer norm or an RMS norm with a scale, got {norm}; it has no such layout")


def _rotary(rotary: object) -> tuple[Positions, float]:
    if rotary is None:
        return "none", 0.0
    if not isinstance(rotary, RotaryEmbedding | HalfSplitRotaryEmbedding) or rotary.table.clockwise:
        raise UserError(f"expected rotary embeddings counter-clockwise, got {rotary}; they have no such layout")
    return "rotary" if isinstance(rotary, RotaryEmbedding) else "half-split rotary", rotary.table.base


def _positions(embedding: object, rotary: tuple[Positions, float]) -> tuple[Positions, float]:
    if embedding is None:
        return rotary
    if rotary[0] != "none":
        raise UserError("expected one kind of positions, got rotary and added ones; they have no such layout")
    if isinstance(embedding, LearnedPositionalEmbedding):
        return "learned", 0.0
    if isinstance(embedding, SinusoidalPositionalEncoding):
        return "sinusoidal", 0.0
    raise UserError(f"expected positions of Quoin's own, got {type(embedding).__name__}; they have no such layout")
