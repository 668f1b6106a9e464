"""Blocks of Transformers: every position looks at others, then goes through a perceptron by itself.

A block is put together from its parts, so that any attention, any perceptron and any norm may stand in it; `transformer_block` and
`decoder_block` make the usual ones by their sizes. How a part joins the stream is in wire.py; stacks of blocks are models.

    b sequences, n positions, m positions of the memory, w width
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from quoin.layers.attention import AttentionCore, AttentionState, MultiHeadAttention, Remembered, Stepped
from quoin.layers.attention.heads import Turn
from quoin.layers.attention.seen import show
from quoin.layers.direct import direct, part
from quoin.layers.feed_forward import FeedForward
from quoin.layers.wire import PreNorm, Wire, pre_norm_definition

__all__ = [
    "DecoderBlock",
    "DecoderBlockForward",
    "DecoderBlockState",
    "TransformerBlock",
    "TransformerBlockForward",
    "decoder_block",
    "decoder_block_definition",
    "transformer_block",
    "transformer_block_definition",
]

Map = Callable[[Tensor], Tensor]
WireDefinition = Callable[[Tensor, Map, Map], Tensor]
MakeWire = Callable[[nn.Module, float], Wire]
MakeNorm = Callable[[int], nn.Module]


class TransformerBlockForward(NamedTuple):
    """A block taken apart: its output, and the stream between its two parts."""

    output: Tensor  # (b, n, w)
    attended: Tensor  # (b, n, w)


def transformer_block_definition(
    x: Tensor, attend: Map, feed_forward: Map, norms: tuple[Map, Map], wire: WireDefinition = pre_norm_definition
) -> TransformerBlockForward:  # (b, n, w) -> (b, n, w)
    """y = wire(x, attend, N₁), then z = wire(y, feed_forward, N₂): an encoder's block, and with a causal attention a language model's.

    Notes: Z11.T.
    """
    attended = wire(x, attend, norms[0])
    return TransformerBlockForward(wire(attended, feed_forward, norms[1]), attended)


class DecoderBlockForward(NamedTuple):
    """A block taken apart: its output, and the stream after each of its attentions."""

    output: Tensor  # (b, n, w)
    attended: Tensor  # (b, n, w)
    informed: Tensor  # (b, n, w)


def decoder_block_definition(
    x: Tensor,
    memory: Tensor,
    attend: Map,
    look: Callable[[Tensor, Tensor], Tensor],
    feed_forward: Map,
    norms: tuple[Map, Map, Map],
    wire: WireDefinition = pre_norm_definition,
) -> DecoderBlockForward:  # (b, n, w), (b, m, w) -> (b, n, w)
    """y = wire(x, attend, N₁), u = wire(y, look at the memory, N₂), then z = wire(u, feed_forward, N₃), where `attend` is causal.

    Notes: Z11.T.
    """
    attended = wire(x, attend, norms[0])
    informed = wire(attended, lambda query: look(query, memory), norms[1])
    return DecoderBlockForward(wire(informed, feed_forward, norms[2]), attended, informed)


class TransformerBlock(nn.Module):
    """`transformer_block_definition` of these parts; `wire` is `PreNorm` or `PostNorm`, `norm` makes a norm of a width.

    >>> block = TransformerBlock(MultiHeadAttention(8, heads=2), FeedForward(8), norm=nn.RMSNorm)
    >>> block(torch.zeros(3, 5, 8), causal=True).shape
    torch.Size([3, 5, 8])

    Notes: Z11.T.
    """

    attention: MultiHeadAttention = part()
    feed_forward: nn.Module = part()
    attention_wire: Wire = part()
    feed_forward_wire: Wire = part()

    def __init__(
        self,
        attention: MultiHeadAttention,
        feed_forward: nn.Module,
        *,
        wire: MakeWire = PreNorm,
        norm: MakeNorm = nn.LayerNorm,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.attention_wire, self.feed_forward_wire = (wire(norm(attention.width), dropout) for _ in range(2))
        self.width, self.make_norm = attention.width, norm

    def forward(
        self, x: Tensor, *, lengths: Tensor | None = None, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:  # (b, n, w) -> (b, n, w)
        """Lengths, masks and causality are the attention's; padding counts as zeros, whatever it holds."""
        x, *_, mask = show(x, x, x, mask, lengths)
        attended = self.attention(self.attention_wire.enter(x), mask=mask, causal=causal)
        return self.feed_forward_wire(self.attention_wire.leave(x, attended), self.feed_forward)

    def start(self, batch: int, capacity: int) -> AttentionState:
        """The state before the first of at most `capacity` positions."""
        return self.attention.start(batch, capacity)

    def step(self, state: AttentionState, x: Tensor) -> Stepped:  # (b, new, w) -> (b, new, w)
        """What `forward`, causal, gives for new positions, of which the state has seen all before."""
        before, behind = self.attention_wire, self.feed_forward_wire
        attended, state = self.attention.step(state, before.enter(x))
        x = before.leave(x, attended)
        return Stepped(behind.leave(x, direct(self.feed_forward, behind.enter(x))), state)

    def closing_norm(self) -> nn.Module:
        """What a stack of such blocks ends with: a norm, unless they end with one themselves."""
        return nn.Identity() if self.feed_forward_wire.leaves_normalised else self.make_norm(self.width)


class DecoderBlockState(NamedTuple):
    """What a decoder's block remembers: the target's positions so far, and the source."""

    target: AttentionState
    source: Remembered

    @property
    def seen(self) -> int:
        return self.target.seen

    def select(self, rows: Tensor) -> "DecoderBlockState":
        """The state of these sequences, in this order."""
        return DecoderBlockState(self.target.select(rows), self.source.select(rows))


class DecoderBlock(nn.Module):
    """`decoder_block_definition` of these parts: causal self-attention, `cross` attention to a memory, and a perceptron.

    >>> block = decoder_block(8, heads=2)
    >>> block(torch.zeros(3, 5, 8), torch.zeros(3, 7, 8), memory_lengths=torch.tensor([7, 2, 3])).shape
    torch.Size([3, 5, 8])

    Notes: Z11.T.
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        cross: MultiHeadAttention,
        feed_forward: nn.Module,
        *,
        wire: MakeWire = PreNorm,
        norm: MakeNorm = nn.LayerNorm,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.attention, self.cross, self.feed_forward = attention, cross, feed_forward
        self.attention_wire, self.cross_wire, self.feed_forward_wire = (wire(norm(attention.width), dropout) for _ in range(3))
        self.width, self.make_norm = attention.width, norm

    def forward(
        self, x: Tensor, memory: Tensor, *, lengths: Tensor | None = None, memory_lengths: Tensor | None = None
    ) -> Tensor:  # (b, n, w), (b, m, w) -> (b, n, w)
        """`lengths` count the positions of x that are not padding, `memory_lengths` those of the memory; padding counts as zeros."""
        x, *_, mask = show(x, x, x, None, lengths)
        attended = self.attention(self.attention_wire.enter(x), mask=mask, causal=True)
        x = self.attention_wire.leave(x, attended)
        x = self.cross_wire.leave(x, self.cross(self.cross_wire.enter(x), memory, lengths=memory_lengths))
        return self.feed_forward_wire(x, self.feed_forward)

    def start(self, memory: Tensor, capacity: int, *, memory_lengths: Tensor | None = None) -> DecoderBlockState:
        """The state before the first of at most `capacity` positions; keys and values of the memory are computed here, once."""
        return DecoderBlockState(self.attention.start(len(memory), capacity), self.cross.remember(memory, lengths=memory_lengths))

    def step(self, state: DecoderBlockState, x: Tensor) -> tuple[Tensor, DecoderBlockState]:  # (b, new, w) -> (b, new, w)
        """What `forward` gives for new positions, of which the state has seen all before."""
        attended, target = self.attention.step(state.target, self.attention_wire.enter(x))
        x = self.attention_wire.leave(x, attended)
        x = self.cross_wire.leave(x, self.cross.recall(state.source, self.cross_wire.enter(x), state.seen))
        return self.feed_forward_wire(x, self.feed_forward), DecoderBlockState(target, state.source)

    def closing_norm(self) -> nn.Module:
        """What a stack of such blocks ends with: a norm, unless they end with one themselves."""
        return nn.Identity() if self.feed_forward_wire.leaves_normalised else self.make_norm(self.width)


def transformer_block(
    width: int,
    heads: int,
    *,
    hidden: int | None = None,
    activation: Map = nn.functional.relu,
    core: AttentionCore | None = None,
    turn: Turn | None = None,
    wire: MakeWire = PreNorm,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> TransformerBlock:
    """A `TransformerBlock` with layer norms by its sizes; `core` is how it attends, `turn` turns queries and keys by position."""
    attention = MultiHeadAttention(width, heads, core=core, turn=turn, generator=generator)
    feed_forward = FeedForward(width, hidden, activation=activation, generator=generator)
    return TransformerBlock(attention, feed_forward, wire=wire, dropout=dropout)


def decoder_block(
    width: int,
    heads: int,
    *,
    hidden: int | None = None,
    activation: Map = nn.functional.relu,
    core: AttentionCore | None = None,
    turn: Turn | None = None,
    wire: MakeWire = PreNorm,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> DecoderBlock:
    """A `DecoderBlock` with layer norms by its sizes; `core` and `turn` are of its self-attention, the other is exact."""
    attention = MultiHeadAttention(width, heads, core=core, turn=turn, generator=generator)
    cross = MultiHeadAttention(width, heads, generator=generator)
    feed_forward = FeedForward(width, hidden, activation=activation, generator=generator)
    return DecoderBlock(attention, cross, feed_forward, wire=wire, dropout=dropout)
