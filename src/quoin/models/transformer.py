"""Transformers: an encoder, a decoder, and both together as Vaswani et al. have them, from tokens to next-token logits.

Blocks come from outside, so that the attention, the position and the order of the norms are the caller's choice (see
quoin.layers). A model of one sequence of tokens is in language_transformer.py.

    w embed_dim
"""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers import DecoderBlock, DecoderBlockCache, SinusoidalPositionalEncoding, TransformerBlock
from quoin.layers.checkpointing import call_block
from quoin.layers.dropout import check_probability
from quoin.models.embedding import embed, make_embedding
from quoin.models.language_model import NextTokenOutput

__all__ = ["DecoderCache", "EncoderOutput", "Transformer", "TransformerDecoder", "TransformerEncoder"]

PositionEmbedding = Callable[
    [Tensor, int], Tensor
]  # tokens at positions from this one on -> the same with their positions


class TransformerEncoder(nn.Module):
    """Blocks one after another, then a norm if they end without: every position attends to all the others.

    Without positions it does not see the order: rows shuffled give the outputs shuffled.

    >>> from quoin.layers import transformer_block
    >>> encoder = TransformerEncoder(transformer_block(8, num_heads=2) for _ in range(3))
    >>> encoder(torch.zeros(4, 5, 8), lengths=torch.tensor([5, 1, 2, 3])).shape
    torch.Size([4, 5, 8])

    Notes: Z11.T.
    """

    def __init__(self, blocks: Iterable[TransformerBlock]):
        super().__init__()
        self.blocks: list[TransformerBlock] = nn.ModuleList(blocks)  # pyright: ignore[reportAttributeAccessIssue]
        self.embed_dim = common_embed_dim(self.blocks)
        self.norm = self.blocks[-1].final_norm()

    def forward(
        self,
        x: Float[Tensor, "batch seq embed"],
        *,
        lengths: Int[Tensor, "batch"] | None = None,
        mask: Bool[Tensor, "... #seq #seq"] | Bool[Tensor, "#seq"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "batch seq embed"]:
        for block in self.blocks:
            x = call_block(block, functools.partial(block, lengths=lengths, mask=mask, causal=causal), x)
        return self.norm(x)


class TransformerDecoder(nn.Module):
    """Blocks that attend to what came before in their own sequence and to a memory, then a norm if they end without.

    >>> from quoin.layers import decoder_block
    >>> decoder = TransformerDecoder(decoder_block(8, num_heads=2) for _ in range(3))
    >>> decoder(torch.zeros(4, 5, 8), torch.zeros(4, 7, 8)).shape
    torch.Size([4, 5, 8])

    Notes: Z11.T.
    """

    def __init__(self, blocks: Iterable[DecoderBlock]):
        super().__init__()
        self.blocks: list[DecoderBlock] = nn.ModuleList(blocks)  # pyright: ignore[reportAttributeAccessIssue]
        self.embed_dim = common_embed_dim(self.blocks)
        self.norm = self.blocks[-1].final_norm()

    def forward(
        self,
        x: Float[Tensor, "batch target_seq embed"],
        memory: Float[Tensor, "batch source_seq embed"],
        *,
        lengths: Int[Tensor, "batch"] | None = None,
        memory_lengths: Int[Tensor, "batch"] | None = None,
    ) -> Float[Tensor, "batch target_seq embed"]:
        for block in self.blocks:
            call = functools.partial(block, lengths=lengths, memory_lengths=memory_lengths)
            x = call_block(block, call, x, memory)
        return self.norm(x)

    def init_cache(
        self,
        memory: Float[Tensor, "batch source_seq embed"],
        max_seq_len: int,
        *,
        memory_lengths: Int[Tensor, "batch"] | None = None,
    ) -> "DecoderCache":
        """An empty cache for at most `max_seq_len` positions."""
        return DecoderCache(
            tuple(block.init_cache(memory, max_seq_len, memory_lengths=memory_lengths) for block in self.blocks)
        )

    def decode_step(
        self, cache: "DecoderCache", x: Float[Tensor, "batch new embed"]
    ) -> tuple[Float[Tensor, "batch new embed"], "DecoderCache"]:
        """What `forward` gives for new positions, where the cache holds all before them."""
        after = []
        for block, before in zip(self.blocks, cache.blocks, strict=True):
            x, its = block.decode_step(before, x)
            after.append(its)
        return self.norm(x), DecoderCache(tuple(after))


@shown
@dataclass(frozen=True, eq=False)
class DecoderCache:
    """The cache of each block of a decoder."""

    blocks: tuple[DecoderBlockCache, ...]

    @property
    def seq_len(self) -> int:
        return self.blocks[0].seq_len

    def select(self, indices: Int[Tensor, "selected"]) -> "DecoderCache":
        """The cache of these sequences, in this order."""
        return DecoderCache(tuple(block.select(indices) for block in self.blocks))


@shown
@dataclass(frozen=True, eq=False)
class EncoderOutput:
    """What an encoder makes of sources, of which the first `lengths` positions are real."""

    memory: Float[Tensor, "batch source_seq embed"]
    lengths: Int[Tensor, "batch"] | None


class Transformer(nn.Module):
    """Logits of each next token of the target, from the source and the target so far: P(y_{t+1} | y_1 .. y_t, x).

    Tokens become embeddings times √w with the position added; the target's embedding, transposed, gives the logits.
    With `encode` once, then `init_cache` and `decode_step`, it decodes.

    Args:
        encoder: Blocks of the encoder, in the order in which they are called.
        decoder: Blocks of the decoder, of the same `embed_dim`.
        position_embedding: Adds where a token of the source stands; sinusoidal unless given.
        target_position_embedding: The same for the target.
        dropout: Of the embeddings; the blocks have their own.

    >>> from quoin.layers import decoder_block, transformer_block
    >>> model = Transformer(11, 13, [transformer_block(8, num_heads=2)], [decoder_block(8, num_heads=2)])
    >>> model(torch.zeros(4, 7, dtype=torch.long), torch.zeros(4, 5, dtype=torch.long)).shape
    torch.Size([4, 5, 13])

    Notes: Z11.T.
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        encoder: Iterable[TransformerBlock],
        decoder: Iterable[DecoderBlock],
        *,
        position_embedding: PositionEmbedding | None = None,
        target_position_embedding: PositionEmbedding | None = None,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        check_probability(dropout)
        self.encoder, self.decoder = TransformerEncoder(encoder), TransformerDecoder(decoder)
        embed_dim = self.encoder.embed_dim
        if self.decoder.embed_dim != embed_dim:
            raise UserError(
                f"expected a decoder of the encoder's embed_dim {embed_dim}, got {self.decoder.embed_dim}; make "
                "the blocks alike"
            )
        self.vocab_size = target_vocab_size
        self.source_embedding = make_embedding(source_vocab_size, embed_dim, std=embed_dim**-0.5, generator=generator)
        self.target_embedding = make_embedding(target_vocab_size, embed_dim, std=embed_dim**-0.5, generator=generator)
        self.position_embedding = (
            SinusoidalPositionalEncoding(embed_dim) if position_embedding is None else position_embedding
        )
        self.target_position_embedding = (
            SinusoidalPositionalEncoding(embed_dim) if target_position_embedding is None else target_position_embedding
        )
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        source: Int[Tensor, "batch source_seq"],
        target: Int[Tensor, "batch target_seq"],
        *,
        source_lengths: Int[Tensor, "batch"] | None = None,
        target_lengths: Int[Tensor, "batch"] | None = None,
    ) -> Float[Tensor, "batch target_seq vocab"]:
        """Teacher forcing: entry t is the distribution of target token t + 1 given those up to t. Lengths count what is
        not padding."""
        source_of = self.encode(source, source_lengths)
        x = self._embed(self.target_embedding, self.target_position_embedding, target, 0)
        x = self.decoder(x, source_of.memory, lengths=target_lengths, memory_lengths=source_of.lengths)
        return self._logits(x)

    def encode(
        self, source: Int[Tensor, "batch source_seq"], lengths: Int[Tensor, "batch"] | None = None
    ) -> EncoderOutput:
        """Encode the sources."""
        return EncoderOutput(
            self.encoder(self._embed(self.source_embedding, self.position_embedding, source, 0), lengths=lengths),
            lengths,
        )

    def init_cache(self, source: EncoderOutput, max_seq_len: int) -> DecoderCache:
        """An empty cache for at most `max_seq_len` tokens of the target."""
        return self.decoder.init_cache(source.memory, max_seq_len, memory_lengths=source.lengths)

    def decode_step(self, cache: DecoderCache, tokens: Int[Tensor, "batch new"]) -> NextTokenOutput:
        """Read one or more new tokens of the target; equal to `forward` on all tokens so far, at the new positions."""
        x, cache = self.decoder.decode_step(
            cache, self._embed(self.target_embedding, self.target_position_embedding, tokens, cache.seq_len)
        )
        return NextTokenOutput(self._logits(x), cache)

    def _embed(self, table: nn.Embedding, position_embedding: PositionEmbedding, tokens: Tensor, offset: int) -> Tensor:
        return self.dropout(position_embedding(embed(table, tokens) * math.sqrt(table.embedding_dim), offset))

    def _logits(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.target_embedding.weight)


def common_embed_dim(blocks: Iterable[TransformerBlock | DecoderBlock]) -> int:
    """The embed_dim of all these blocks."""
    embed_dims = [block.embed_dim for block in blocks]
    if not embed_dims or len(set(embed_dims)) > 1:
        raise UserError(
            f"expected at least one block, and all of one embed_dim, got {embed_dims}; make the blocks alike"
        )
    return embed_dims[0]
