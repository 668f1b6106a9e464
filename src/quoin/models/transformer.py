"""Transformers: an encoder, a decoder, and both together as Vaswani et al. have them, from tokens to scores of the next token.

Blocks come from outside, so that the attention, the position and the order of the norms are the caller's choice (see quoin.layers).
A model of one sequence of tokens is in language_transformer.py.

    b sequences, n source positions, t target positions, w width, v tokens of the target's vocabulary
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.layers import DecoderBlock, DecoderBlockState, SinusoidalPositions, TransformerBlock, keeps_global_rng
from quoin.layers.direct import direct, part
from quoin.layers.dropout import check_probability
from quoin.models.autoregressive import NextToken

__all__ = ["EncodedSource", "Transformer", "TransformerDecoder", "TransformerEncoder", "TransformerState"]

Positions = Callable[[Tensor, int], Tensor]  # what stands at positions from this one on -> the same, told where it stands


class TransformerEncoder(nn.Module):
    """Blocks one after another, then a norm if they end without: every position comes to know of all the others.

    Without positions it does not see the order: rows shuffled give the outputs shuffled.

    >>> from quoin.layers import transformer_block
    >>> encoder = TransformerEncoder(transformer_block(8, heads=2) for _ in range(3))
    >>> encoder(torch.zeros(4, 5, 8), lengths=torch.tensor([5, 1, 2, 3])).shape
    torch.Size([4, 5, 8])

    Notes: Z11.T.
    """

    blocks: list[TransformerBlock] = part()
    norm: nn.Module = part()

    def __init__(self, blocks: Iterable[TransformerBlock]):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)  # pyright: ignore[reportAttributeAccessIssue]
        self.width = common_width(self.blocks)
        self.norm = self.blocks[-1].closing_norm()

    def forward(
        self, x: Tensor, *, lengths: Tensor | None = None, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:  # (b, n, w) -> (b, n, w)
        for block in self.blocks:
            x = block(x, lengths=lengths, mask=mask, causal=causal)
        return self.norm(x)


class TransformerDecoder(nn.Module):
    """Blocks that look back at their own sequence and over to a memory, then a norm if they end without.

    >>> from quoin.layers import decoder_block
    >>> decoder = TransformerDecoder(decoder_block(8, heads=2) for _ in range(3))
    >>> decoder(torch.zeros(4, 5, 8), torch.zeros(4, 7, 8)).shape
    torch.Size([4, 5, 8])

    Notes: Z11.T.
    """

    def __init__(self, blocks: Iterable[DecoderBlock]):
        super().__init__()
        self.blocks: list[DecoderBlock] = nn.ModuleList(blocks)  # pyright: ignore[reportAttributeAccessIssue]
        self.width = common_width(self.blocks)
        self.norm = self.blocks[-1].closing_norm()

    def forward(
        self, x: Tensor, memory: Tensor, *, lengths: Tensor | None = None, memory_lengths: Tensor | None = None
    ) -> Tensor:  # (b, t, w), (b, n, w) -> (b, t, w)
        for block in self.blocks:
            x = block(x, memory, lengths=lengths, memory_lengths=memory_lengths)
        return self.norm(x)

    def start(self, memory: Tensor, capacity: int, *, memory_lengths: Tensor | None = None) -> "TransformerState":
        """The state before the first of at most `capacity` positions."""
        return TransformerState(tuple(block.start(memory, capacity, memory_lengths=memory_lengths) for block in self.blocks))

    def step(self, state: "TransformerState", x: Tensor) -> tuple[Tensor, "TransformerState"]:  # (b, new, w) -> (b, new, w)
        """What `forward` gives for new positions, of which the state has seen all before."""
        after = []
        for block, before in zip(self.blocks, state.blocks, strict=True):
            x, its = block.step(before, x)
            after.append(its)
        return self.norm(x), TransformerState(tuple(after))


@dataclass(frozen=True, eq=False)
class TransformerState:
    """What each block of a decoder remembers."""

    blocks: tuple[DecoderBlockState, ...]

    @property
    def seen(self) -> int:
        return self.blocks[0].seen

    def select(self, rows: Tensor) -> "TransformerState":
        """The state of these sequences, in this order."""
        return TransformerState(tuple(block.select(rows) for block in self.blocks))


@dataclass(frozen=True, eq=False)
class EncodedSource:
    """What an encoder makes of sources, of which the first `lengths` positions are real."""

    memory: Tensor  # (b, n, w)
    lengths: Tensor | None  # (b,)


class Transformer(nn.Module):
    """Scores of each next token of the target, from the source and the target so far: P(y_{t+1} | y_1 .. y_t, x).

    Tokens become codes times √w with the position added; the same codes, transposed, score the target's tokens. `positions` and
    `target_positions` add where a token stands, sinusoidal unless given. With `encode` once, then `start` and `step`, it decodes.

    >>> from quoin.layers import decoder_block, transformer_block
    >>> model = Transformer(11, 13, [transformer_block(8, heads=2)], [decoder_block(8, heads=2)])
    >>> model(torch.zeros(4, 7, dtype=torch.long), torch.zeros(4, 5, dtype=torch.long)).shape
    torch.Size([4, 5, 13])

    Notes: Z11.T.
    """

    def __init__(
        self,
        source_size: int,
        target_size: int,
        encoder: Iterable[TransformerBlock],
        decoder: Iterable[DecoderBlock],
        *,
        positions: Positions | None = None,
        target_positions: Positions | None = None,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        check_probability(dropout)
        self.encoder, self.decoder = TransformerEncoder(encoder), TransformerDecoder(decoder)
        width = self.encoder.width
        if self.decoder.width != width:
            raise Mistake(f"expected a decoder as wide as the encoder, {width}, came {self.decoder.width}; make the blocks alike")
        self.vocabulary_size = target_size
        self.source_codes = codes(source_size, width, generator)
        self.target_codes = codes(target_size, width, generator)
        self.positions = SinusoidalPositions(width) if positions is None else positions
        self.target_positions = SinusoidalPositions(width) if target_positions is None else target_positions
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        *,
        source_lengths: Tensor | None = None,
        target_lengths: Tensor | None = None,
    ) -> Tensor:  # (b, n), (b, t) -> (b, t, v)
        """Teacher forcing: entry t is the law of target token t + 1 given those up to t. Lengths count what is not padding."""
        source_of = self.encode(source, source_lengths)
        x = self._placed(self.target_codes, self.target_positions, target, 0)
        x = self.decoder(x, source_of.memory, lengths=target_lengths, memory_lengths=source_of.lengths)
        return self._scores(x)

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> EncodedSource:  # (b, n)
        """Read the sources."""
        return EncodedSource(self.encoder(self._placed(self.source_codes, self.positions, source, 0), lengths=lengths), lengths)

    def start(self, source: EncodedSource, capacity: int) -> TransformerState:
        """The state before the first of at most `capacity` tokens of the target."""
        return self.decoder.start(source.memory, capacity, memory_lengths=source.lengths)

    def step(self, state: TransformerState, tokens: Tensor) -> NextToken:  # (b, new) -> (b, new, v)
        """Read one or more new tokens of the target; equal to `forward` on all tokens so far, at the new positions."""
        x, state = self.decoder.step(state, self._placed(self.target_codes, self.target_positions, tokens, state.seen))
        return NextToken(self._scores(x), state)

    def _placed(self, table: nn.Embedding, positions: Positions, tokens: Tensor, offset: int) -> Tensor:
        return self.dropout(positions(look_up(table, tokens) * math.sqrt(table.embedding_dim), offset))

    def _scores(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.target_codes.weight)


@keeps_global_rng
def codes(size: int, width: int, generator: torch.Generator | None) -> nn.Embedding:
    """A learned code for each token, of variance 1/w: times √w it has the size of a position's, transposed it gives scores of size one."""
    if size < 1:
        raise Mistake(f"expected a vocabulary of at least one token, came {size}; give the number of different tokens")
    table = nn.Embedding(size, width)
    nn.init.normal_(table.weight, std=width**-0.5, generator=generator)
    return table


def look_up(table: nn.Embedding, tokens: Tensor) -> Tensor:  # (b, n) -> (b, n, w)
    """The codes of tokens, which must be integers from 0 on that the table has."""
    if tokens.ndim != 2 or tokens.is_floating_point() or tokens.dtype == torch.bool:
        came = f"{tokens.dtype} of shape {tuple(tokens.shape)}"
        raise Mistake(f"expected token numbers (batch, positions), came {came}; encode the text first")
    if torch.compiler.is_compiling():
        return table(tokens)
    try:
        return direct(table, tokens)
    except IndexError:  # looked at only once it has failed: a look at every batch would make a GPU wait
        raise Mistake(
            f"expected tokens from 0 to {table.num_embeddings - 1}, came {int(tokens.min())} to {int(tokens.max())}; "
            "encode the text with the vocabulary that the model was made for"
        ) from None


def common_width(blocks: Iterable[TransformerBlock | DecoderBlock]) -> int:
    """The width of all these blocks."""
    widths = [block.width for block in blocks]
    if not widths or len(set(widths)) > 1:
        raise Mistake(f"expected at least one block, and all of one width, came widths {widths}; make the blocks alike")
    return widths[0]
