"""Blocks of Transformers: every position attends to others, then goes through a feed-forward network by itself.

A block is put together from its sublayers, so that any attention, any feed-forward network and any norm may stand in
it; `transformer_block` and `decoder_block` make the usual ones by their sizes. How a sublayer joins the residual stream
is in sublayer.py; stacks of blocks are models.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from quoin.display import shown
from quoin.layers.attention import (
    AttentionCache,
    AttentionStepOutput,
    InnerAttention,
    MultiHeadAttention,
    ProjectedMemory,
)
from quoin.layers.attention.multi_head import RotaryFn
from quoin.layers.attention.seen import show
from quoin.layers.attention.static_cache import StaticAttentionCache
from quoin.layers.fast_call import fast_call, submodules
from quoin.layers.feed_forward import FeedForward
from quoin.layers.sublayer import PreNorm, SublayerConnection, pre_norm_definition

__all__ = [
    "DecoderBlock",
    "DecoderBlockCache",
    "DecoderBlockForward",
    "TransformerBlock",
    "TransformerBlockForward",
    "decoder_block",
    "decoder_block_definition",
    "transformer_block",
    "transformer_block_definition",
]

Map = Callable[[Tensor], Tensor]
ConnectionDefinition = Callable[[Tensor, Map, Map], Tensor]
MakeConnection = Callable[[nn.Module, float], SublayerConnection]
MakeNorm = Callable[[int], nn.Module]


@shown
class TransformerBlockForward(NamedTuple):
    """A block taken apart: its output, and the residual stream between its two sublayers."""

    output: Float[Tensor, "batch seq embed"]
    attended: Float[Tensor, "batch seq embed"]


def transformer_block_definition(
    x: Float[Tensor, "batch seq embed"],
    attend: Map,
    feed_forward: Map,
    norms: tuple[Map, Map],
    connection: ConnectionDefinition = pre_norm_definition,
) -> TransformerBlockForward:
    """y = connection(x, attend, N₁), then z = connection(y, feed_forward, N₂): an encoder's block, and with a causal
    attention a language model's.

    Notes: Z11.T.
    """
    attended = connection(x, attend, norms[0])
    return TransformerBlockForward(connection(attended, feed_forward, norms[1]), attended)


@shown
class DecoderBlockForward(NamedTuple):
    """A block taken apart: its output, and the residual stream after each of its attentions."""

    output: Float[Tensor, "batch seq embed"]
    self_attended: Float[Tensor, "batch seq embed"]
    cross_attended: Float[Tensor, "batch seq embed"]


def decoder_block_definition(
    x: Float[Tensor, "batch seq embed"],
    memory: Float[Tensor, "batch memory_seq memory_dim"],
    attend: Map,
    cross_attend: Callable[[Tensor, Tensor], Tensor],
    feed_forward: Map,
    norms: tuple[Map, Map, Map],
    connection: ConnectionDefinition = pre_norm_definition,
) -> DecoderBlockForward:
    """y = connection(x, attend, N₁), u = connection(y, attend to the memory, N₂), then z = connection(u, feed_forward,
    N₃), where `attend` is causal.

    Args:
        cross_attend: Attention from x, its first argument, to the memory, its second.

    Notes: Z11.T.
    """
    attended = connection(x, attend, norms[0])
    cross_attended = connection(attended, lambda query: cross_attend(query, memory), norms[1])
    return DecoderBlockForward(connection(cross_attended, feed_forward, norms[2]), attended, cross_attended)


class TransformerBlock(nn.Module):
    """`transformer_block_definition` of these sublayers.

    Args:
        connection: `PreNorm` or `PostNorm`.
        norm: Makes a norm of so many features, such as `nn.RMSNorm`.
        dropout: Of the output of each sublayer.

    >>> block = TransformerBlock(MultiHeadAttention(8, num_heads=2), FeedForward(8), norm=nn.RMSNorm)
    >>> block(torch.zeros(3, 5, 8), causal=True).shape
    torch.Size([3, 5, 8])

    Notes: Z11.T.
    """

    checkpoints_activations = False  # see checkpointing.py

    def __init__(
        self,
        attention: MultiHeadAttention,
        feed_forward: nn.Module,
        *,
        connection: MakeConnection = PreNorm,
        norm: MakeNorm = nn.LayerNorm,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.attention_connection, self.feed_forward_connection = (
            connection(norm(attention.embed_dim), dropout) for _ in range(2)
        )
        self.embed_dim, self.make_norm = attention.embed_dim, norm

    def forward(
        self,
        x: Float[Tensor, "batch seq embed"],
        *,
        lengths: Int[Tensor, "batch"] | None = None,
        mask: Bool[Tensor, "... #seq #seq"] | Bool[Tensor, "#seq"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "batch seq embed"]:
        """Lengths, masks and causality are the attention's; padding counts as zeros, whatever it holds."""
        x, *_, mask = show(x, x, x, mask, lengths)
        x = self.attention_connection(x, lambda y: self.attention(y, mask=mask, causal=causal))
        return self.feed_forward_connection(x, self.feed_forward)

    def init_cache(self, batch_size: int, max_seq_len: int) -> AttentionCache:
        """An empty cache for at most `max_seq_len` positions."""
        return self.attention.init_cache(batch_size, max_seq_len)

    def init_static_cache(self, batch_size: int, max_seq_len: int) -> StaticAttentionCache | None:
        """Memory for a `decode_step` that can be captured, or None where the attention has no such form."""
        return self.attention.init_static_cache(batch_size, max_seq_len)

    def decode_step(self, cache: AttentionCache, x: Float[Tensor, "batch new embed"]) -> AttentionStepOutput:
        """What `forward`, causal, gives for new positions, where the cache holds all before them."""
        before, attention, behind, feed_forward = submodules(
            self, "attention_connection", "attention", "feed_forward_connection", "feed_forward"
        )
        attended, cache = attention.decode_step(cache, before.sublayer_input(x))
        x = before.add_output(x, attended)
        return AttentionStepOutput(behind.add_output(x, fast_call(feed_forward, behind.sublayer_input(x))), cache)

    def final_norm(self) -> nn.Module:
        """What a stack of such blocks ends with: a norm, unless they end with one themselves."""
        return nn.Identity() if self.feed_forward_connection.normalizes_output else self.make_norm(self.embed_dim)


@shown
class DecoderBlockCache(NamedTuple):
    """The cache of a decoder's block: the target's positions so far, and the projected source."""

    self_attention: AttentionCache
    cross_attention: ProjectedMemory

    @property
    def seq_len(self) -> int:
        return self.self_attention.seq_len

    def select(self, indices: Int[Tensor, "selected"]) -> "DecoderBlockCache":
        """The cache of these sequences, in this order."""
        return DecoderBlockCache(self.self_attention.select(indices), self.cross_attention.select(indices))


class DecoderBlock(nn.Module):
    """`decoder_block_definition` of these sublayers: causal self-attention, `cross_attention` to a memory, a
    feed-forward network.

    Args:
        connection: `PreNorm` or `PostNorm`.
        norm: Makes a norm of so many features, such as `nn.RMSNorm`.
        dropout: Of the output of each sublayer.

    >>> block = decoder_block(8, num_heads=2)
    >>> block(torch.zeros(3, 5, 8), torch.zeros(3, 7, 8), memory_lengths=torch.tensor([7, 2, 3])).shape
    torch.Size([3, 5, 8])

    Notes: Z11.T.
    """

    checkpoints_activations = False  # see checkpointing.py

    def __init__(
        self,
        attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: nn.Module,
        *,
        connection: MakeConnection = PreNorm,
        norm: MakeNorm = nn.LayerNorm,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.attention, self.cross_attention, self.feed_forward = attention, cross_attention, feed_forward
        self.attention_connection, self.cross_attention_connection, self.feed_forward_connection = (
            connection(norm(attention.embed_dim), dropout) for _ in range(3)
        )
        self.embed_dim, self.make_norm = attention.embed_dim, norm

    def forward(
        self,
        x: Float[Tensor, "batch seq embed"],
        memory: Float[Tensor, "batch memory_seq memory_dim"],
        *,
        lengths: Int[Tensor, "batch"] | None = None,
        memory_lengths: Int[Tensor, "batch"] | None = None,
    ) -> Float[Tensor, "batch seq embed"]:
        """`lengths` count the positions of x that are not padding, `memory_lengths` those of the memory; padding counts
        as zeros."""
        x, *_, mask = show(x, x, x, None, lengths)
        x = self.attention_connection(x, lambda y: self.attention(y, mask=mask, causal=True))
        x = self.cross_attention_connection(x, lambda y: self.cross_attention(y, memory, lengths=memory_lengths))
        return self.feed_forward_connection(x, self.feed_forward)

    def init_cache(
        self,
        memory: Float[Tensor, "batch memory_seq memory_dim"],
        max_seq_len: int,
        *,
        memory_lengths: Int[Tensor, "batch"] | None = None,
    ) -> DecoderBlockCache:
        """An empty cache for at most `max_seq_len` positions; keys and values of the memory are computed here, once."""
        return DecoderBlockCache(
            self.attention.init_cache(memory.shape[0], max_seq_len),
            self.cross_attention.project_memory(memory, lengths=memory_lengths),
        )

    def decode_step(
        self, cache: DecoderBlockCache, x: Float[Tensor, "batch new embed"]
    ) -> tuple[Float[Tensor, "batch new embed"], DecoderBlockCache]:
        """What `forward` gives for new positions, where the cache holds all before them."""
        before, between, behind = (
            self.attention_connection,
            self.cross_attention_connection,
            self.feed_forward_connection,
        )
        attended, self_attention = self.attention.decode_step(cache.self_attention, before.sublayer_input(x))
        x = before.add_output(x, attended)
        attended = self.cross_attention.attend_memory(cache.cross_attention, between.sublayer_input(x), cache.seq_len)
        x = between.add_output(x, attended)
        x = behind.add_output(x, fast_call(self.feed_forward, behind.sublayer_input(x)))
        return x, DecoderBlockCache(self_attention, cache.cross_attention)

    def final_norm(self) -> nn.Module:
        """What a stack of such blocks ends with: a norm, unless they end with one themselves."""
        return nn.Identity() if self.feed_forward_connection.normalizes_output else self.make_norm(self.embed_dim)


def transformer_block(
    embed_dim: int,
    num_heads: int,
    *,
    hidden_dim: int | None = None,
    activation: Map = nn.functional.relu,
    inner_attention: InnerAttention | None = None,
    rotary: RotaryFn | None = None,
    connection: MakeConnection = PreNorm,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> TransformerBlock:
    """A `TransformerBlock` with layer norms by its sizes.

    Args:
        hidden_dim: Hidden units of the feed-forward network; 4 `embed_dim` unless given.
        activation: Of the feed-forward network.
        inner_attention: How it attends; `ExactAttention()` unless given.
        rotary: Rotates queries and keys by their position, such as a `RotaryEmbedding`; None does not.
        connection: `PreNorm` or `PostNorm`.
        dropout: Of the output of each sublayer; that of attention weights is the inner attention's.
    """
    attention = MultiHeadAttention(
        embed_dim, num_heads, inner_attention=inner_attention, rotary=rotary, generator=generator
    )
    feed_forward = FeedForward(embed_dim, hidden_dim, activation=activation, generator=generator)
    return TransformerBlock(attention, feed_forward, connection=connection, dropout=dropout)


def decoder_block(
    embed_dim: int,
    num_heads: int,
    *,
    hidden_dim: int | None = None,
    activation: Map = nn.functional.relu,
    inner_attention: InnerAttention | None = None,
    rotary: RotaryFn | None = None,
    connection: MakeConnection = PreNorm,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> DecoderBlock:
    """A `DecoderBlock` with layer norms by its sizes.

    Args:
        hidden_dim: Hidden units of the feed-forward network; 4 `embed_dim` unless given.
        activation: Of the feed-forward network.
        inner_attention: How the self-attention attends, `ExactAttention()` unless given; attention to the memory is
            exact.
        rotary: Rotates queries and keys of the self-attention by their position; None does not.
        connection: `PreNorm` or `PostNorm`.
        dropout: Of the output of each sublayer; that of attention weights is the inner attention's.
    """
    attention = MultiHeadAttention(
        embed_dim, num_heads, inner_attention=inner_attention, rotary=rotary, generator=generator
    )
    cross_attention = MultiHeadAttention(embed_dim, num_heads, generator=generator)
    feed_forward = FeedForward(embed_dim, hidden_dim, activation=activation, generator=generator)
    return DecoderBlock(attention, cross_attention, feed_forward, connection=connection, dropout=dropout)
