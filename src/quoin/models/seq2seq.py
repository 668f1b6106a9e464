"""Sequence to sequence by recurrent networks: an encoder reads the source, a decoder predicts the target.

The decoder that attends to the source is in bahdanau.py, the distribution of a translation in translation.py, decoding
in quoin.generate.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.models.embedding import embed, make_embedding
from quoin.models.language_model import DecodingCache, NextTokenOutput
from quoin.models.recurrent_parts import (
    CellKind,
    RecurrentState,
    checked_num_suppressed,
    lengths_fit,
    make_cell,
    make_linear,
    pad_suppressed,
    read_sequences,
)

__all__ = ["RNNDecoder", "RecurrentDecoder", "RecurrentEncoder", "RecurrentEncoderOutput", "Seq2Seq"]


@shown
class RecurrentEncoderOutput(NamedTuple):
    """What an encoder makes of sources."""

    memory: Float[Tensor, "batch source_seq memory"]  # an encoding of each position in its context; zeros at padding
    lengths: Int[Tensor, "batch"] | None  # how many positions are real
    state: RecurrentState  # the decoder's initial hidden state


class RecurrentEncoder(nn.Module):
    """Embeddings of source tokens and layers of a recurrent cell over them, by default from both ends.

    Padding is never read: a source gives the same however long the others of its batch are. With two directions their
    last hidden states together become the decoder's first, tanh(W (forward, backward) + b).

    Args:
        bidirectional: Whether the source is read from both ends; `memory_dim` is then 2 `hidden_dim`.

    >>> encoder = RecurrentEncoder(nn.GRU, 11, 8, 16)
    >>> source = encoder(torch.zeros(4, 7, dtype=torch.long), torch.tensor([7, 1, 2, 3]))
    >>> source.memory.shape, source.state.tensors[0].shape
    (torch.Size([4, 7, 32]), torch.Size([1, 4, 16]))

    Notes: Z10.
    """

    def __init__(
        self,
        cell: CellKind,
        source_vocab_size: int,
        embed_dim: int,
        hidden_dim: int,
        *,
        num_layers: int = 1,
        dropout: float = 0.0,
        bidirectional: bool = True,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.token_embedding = make_embedding(source_vocab_size, embed_dim, generator=generator)
        self.cell = make_cell(cell, embed_dim, hidden_dim, num_layers, dropout, bidirectional, generator)
        self.dropout = nn.Dropout(dropout)
        self.memory_dim = hidden_dim * (2 if bidirectional else 1)
        kinds = (2 if cell is nn.LSTM else 1) if bidirectional else 0
        self.bridges = nn.ModuleList(make_linear(2 * hidden_dim, hidden_dim, generator) for _ in range(kinds))

    def forward(
        self, source: Int[Tensor, "batch source_seq"], lengths: Int[Tensor, "batch"] | None = None
    ) -> RecurrentEncoderOutput:
        if source.ndim != 2 or 0 in source.shape:
            raise UserError(
                f"expected sources of a token or more each, got shape {tuple(source.shape)}: leave out the empty ones"
            )
        if lengths is not None:
            _check_lengths(lengths, source)
        embedded = self.dropout(embed(self.token_embedding, source))
        memory, (tensors,) = read_sequences(self.cell, embedded, lengths=lengths)
        if self.bridges:
            # (layers, batch, 2 hidden) each
            both = [torch.cat(each.unflatten(0, (-1, 2)).unbind(dim=1), dim=-1) for each in tensors]
            tensors = tuple(torch.tanh(bridge(each)) for bridge, each in zip(self.bridges, both, strict=True))
        return RecurrentEncoderOutput(memory, lengths, RecurrentState(tensors))


def _check_lengths(lengths: Tensor, source: Tensor) -> None:
    batch, longest = source.shape
    if lengths.shape != (batch,) or not lengths_fit(lengths, longest):
        raise UserError(
            f"expected {batch} lengths from 1 to {longest}, got {format_value(lengths.tolist())}: leave out the "
            "empty sources"
        )


class RNNDecoder(nn.Module):
    """A recurrent network that starts from the encoder's last hidden state, which is all that it knows of the source.

        s_0 = the encoder's last hidden state,  s_t = cell(E y_t, s_{t-1}),  scores_t = W s_t + b

    Args:
        num_suppressed: So many first tokens of the vocabulary are special tokens that are read and never predicted.

    Notes: Z10.
    """

    def __init__(
        self,
        cell: CellKind,
        target_vocab_size: int,
        embed_dim: int,
        hidden_dim: int,
        *,
        num_layers: int = 1,
        dropout: float = 0.0,
        num_suppressed: int = 0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.vocab_size, self.num_suppressed = (
            target_vocab_size,
            checked_num_suppressed(num_suppressed, target_vocab_size),
        )
        self.token_embedding = make_embedding(target_vocab_size, embed_dim, generator=generator)
        self.cell = make_cell(cell, embed_dim, hidden_dim, num_layers, dropout, False, generator)
        self.dropout = nn.Dropout(dropout)
        self.lm_head = make_linear(hidden_dim, target_vocab_size - num_suppressed, generator)

    def init_cache(self, source: RecurrentEncoderOutput) -> RecurrentState:
        return source.state

    def decode_step(self, cache: RecurrentState, tokens: Int[Tensor, "batch new"]) -> NextTokenOutput:
        """Read one or more new tokens, in one call of torch's cell."""
        output, after = read_sequences(self.cell, self.dropout(embed(self.token_embedding, tokens)), cache)
        return NextTokenOutput(pad_suppressed(self.lm_head(self.dropout(output)), self.num_suppressed), after)


@runtime_checkable
class RecurrentDecoder(Protocol):
    """What a recurrent decoder offers."""

    vocab_size: int
    cell: nn.RNNBase

    def init_cache(self, source: RecurrentEncoderOutput) -> Any:
        """The cache before the first token of the target."""
        ...

    def decode_step(self, cache: Any, tokens: Int[Tensor, "batch new"]) -> tuple[Any, ...]:
        """Read new tokens: the logits after each, (batch, new, vocab), and the cache after them."""
        ...


class Seq2Seq(nn.Module):
    """An encoder and a decoder: logits of each next token of the target, from the source and the target so far.

    `forward` is teacher forcing: the decoder reads the right tokens, not its own. With `encode` once, then `init_cache`
    and `decode_step`, it decodes token by token.

    >>> from quoin.models import BahdanauDecoder
    >>> encoder = RecurrentEncoder(nn.GRU, 11, 8, 16)
    >>> model = Seq2Seq(encoder, BahdanauDecoder(nn.GRU, 13, 8, 16, encoder.memory_dim))
    >>> model(torch.zeros(4, 7, dtype=torch.long), torch.zeros(4, 5, dtype=torch.long)).shape
    torch.Size([4, 5, 13])

    Notes: M13, Z10.
    """

    def __init__(self, encoder: RecurrentEncoder, decoder: RecurrentDecoder):
        super().__init__()
        for name, ours, theirs in (
            ("layers", encoder.cell.num_layers, decoder.cell.num_layers),
            ("units", encoder.cell.hidden_size, decoder.cell.hidden_size),
            ("kind of cell", type(encoder.cell).__name__, type(decoder.cell).__name__),
        ):
            if ours != theirs:
                raise UserError(
                    f"expected a decoder that can start from the encoder's hidden state, {name} {ours}, got "
                    f"{theirs}: make them alike"
                )
        self.encoder, self.decoder = encoder, decoder
        self.vocab_size = decoder.vocab_size

    def forward(
        self,
        source: Int[Tensor, "batch source_seq"],
        target: Int[Tensor, "batch target_seq"],
        *,
        source_lengths: Int[Tensor, "batch"] | None = None,
        target_lengths: Int[Tensor, "batch"] | None = None,
    ) -> Float[Tensor, "batch target_seq vocab"]:
        """Entry t is the distribution of target token t + 1 given those up to t; what stands at padding of the target
        changes nothing before it.
        """
        return self.decoder.decode_step(self.decoder.init_cache(self.encode(source, source_lengths)), target)[0]

    def encode(
        self, source: Int[Tensor, "batch source_seq"], lengths: Int[Tensor, "batch"] | None = None
    ) -> RecurrentEncoderOutput:
        """Read the sources."""
        return self.encoder(source, lengths)

    def init_cache(self, source: RecurrentEncoderOutput, max_seq_len: int = 0) -> DecodingCache:
        """The cache before the first token of the target. It never fills, so `max_seq_len` is not needed."""
        return self.decoder.init_cache(source)

    def decode_step(self, cache: DecodingCache, tokens: Int[Tensor, "batch new"]) -> NextTokenOutput:
        """Read one or more new tokens of the target; equal to `forward` on all tokens so far, at the new positions."""
        logits, cache, *_ = self.decoder.decode_step(cache, tokens)
        return NextTokenOutput(logits, cache)
