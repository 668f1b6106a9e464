"""Sequence to sequence by recurrent networks: an encoder reads the source, a decoder says the target.

The decoder that looks back at the source is in bahdanau.py, the law of a translation in translation.py; choosing what to say is the
room generate's matter.

    b pairs, n source tokens, t target tokens, w width of a token's code, h units, m width of the memory, v target tokens in all
"""

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from quoin.errors import Mistake, shown
from quoin.models.autoregressive import ModelState, NextToken
from quoin.models.recurrent_parts import (
    CellKind,
    RecurrentState,
    as_state,
    as_torch,
    checked_silent,
    make_cell,
    make_codes,
    make_linear,
    over_all,
)
from quoin.models.transformer import look_up

__all__ = ["PlainDecoder", "RecurrentDecoder", "RecurrentEncoder", "RecurrentSource", "Seq2Seq"]


class RecurrentSource(NamedTuple):
    """What an encoder makes of sources."""

    memory: Tensor  # (b, n, m), a code for each position that knows of its surroundings; zeros at padding
    lengths: Tensor | None  # (b,), how many positions are real
    state: RecurrentState  # where a decoder starts from


class RecurrentEncoder(nn.Module):
    """Codes of source tokens and layers of a recurrent cell over them, by default from both ends.

    Padding is never read: a source gives the same however long the others of its batch are. With two directions their last states
    together become the decoder's first, tanh(W (forward, backward) + b).

    >>> encoder = RecurrentEncoder(nn.GRU, 11, 8, 16)
    >>> source = encoder(torch.zeros(4, 7, dtype=torch.long), torch.tensor([7, 1, 2, 3]))
    >>> source.memory.shape, source.state.tensors[0].shape
    (torch.Size([4, 7, 32]), torch.Size([1, 4, 16]))

    Notes: Z10.
    """

    def __init__(
        self,
        cell: CellKind,
        source_size: int,
        width: int,
        hidden: int,
        *,
        layers: int = 1,
        dropout: float = 0.0,
        bidirectional: bool = True,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.codes = make_codes(source_size, width, generator)
        self.cell = make_cell(cell, width, hidden, layers, dropout, bidirectional, generator)
        self.dropout = nn.Dropout(dropout)
        self.width = hidden * (2 if bidirectional else 1)
        kinds = (2 if cell is nn.LSTM else 1) if bidirectional else 0
        self.bridges = nn.ModuleList(make_linear(2 * hidden, hidden, generator) for _ in range(kinds))

    def forward(self, source: Tensor, lengths: Tensor | None = None) -> RecurrentSource:  # (b, n), (b,)
        if source.ndim != 2 or 0 in source.shape:
            raise Mistake(f"expected sources of a token or more each, got shape {tuple(source.shape)}: leave out the empty ones")
        if lengths is not None:
            _check_lengths(lengths, source)
        codes = self.dropout(look_up(self.codes, source))
        if lengths is None:
            memory, last = self.cell(codes)
        else:  # torch wants the lengths on the CPU
            packed = pack_padded_sequence(codes, lengths.cpu(), batch_first=True, enforce_sorted=False)
            memory, last = self.cell(packed)
            memory, _ = pad_packed_sequence(memory, batch_first=True, total_length=source.shape[1])
        tensors = last if isinstance(last, tuple) else (last,)
        if self.bridges:
            both = [torch.cat(each.unflatten(0, (-1, 2)).unbind(dim=1), dim=-1) for each in tensors]  # (layers, b, 2 h)
            tensors = tuple(torch.tanh(bridge(each)) for bridge, each in zip(self.bridges, both, strict=True))
        return RecurrentSource(memory, lengths, RecurrentState(tensors))


def _check_lengths(lengths: Tensor, source: Tensor) -> None:
    batch, longest = source.shape
    if lengths.shape != (batch,) or not 1 <= int(lengths.min()) <= int(lengths.max()) <= longest:
        raise Mistake(f"expected {batch} lengths from 1 to {longest}, got {shown(lengths.tolist())}: leave out the empty sources")


class PlainDecoder(nn.Module):
    """A recurrent network that starts from the encoder's last state, which is all that it knows of the source.

        s_0 = the encoder's last state,  s_t = cell(E y_t, s_{t-1}),  scores_t = W s_t + b

    The first `silent` tokens of the vocabulary are marks that are read and never said.

    Notes: Z10.
    """

    def __init__(
        self,
        cell: CellKind,
        target_size: int,
        width: int,
        hidden: int,
        *,
        layers: int = 1,
        dropout: float = 0.0,
        silent: int = 0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.vocabulary_size, self.silent = target_size, checked_silent(silent, target_size)
        self.codes = make_codes(target_size, width, generator)
        self.cell = make_cell(cell, width, hidden, layers, dropout, False, generator)
        self.dropout = nn.Dropout(dropout)
        self.scores = make_linear(hidden, target_size - silent, generator)

    def start(self, source: RecurrentSource) -> RecurrentState:
        return source.state

    def step(self, state: RecurrentState, tokens: Tensor) -> NextToken:  # (b, new) -> (b, new, v)
        """Read one or more new tokens, in one call of torch's cell."""
        output, after = self.cell(self.dropout(look_up(self.codes, tokens)), as_torch(self.cell, state))
        return NextToken(over_all(self.scores(self.dropout(output)), self.silent), as_state(after))


class RecurrentDecoder(Protocol):
    """What a recurrent decoder offers."""

    vocabulary_size: int
    cell: nn.RNNBase

    def start(self, source: RecurrentSource) -> Any:
        """The state before the first token of the target."""
        ...

    def step(self, state: Any, tokens: Tensor) -> tuple[Any, ...]:
        """Read new tokens (b, new): the logits after each (b, new, v), and the state behind them."""
        ...


class Seq2Seq(nn.Module):
    """An encoder and a decoder: scores of each next token of the target, from the source and the target so far.

    `forward` is teacher forcing: the decoder reads the right tokens, not its own. With `encode` once, then `start` and `step`, it
    decodes token by token.

    >>> from quoin.models import BahdanauDecoder
    >>> encoder = RecurrentEncoder(nn.GRU, 11, 8, 16)
    >>> model = Seq2Seq(encoder, BahdanauDecoder(nn.GRU, 13, 8, 16, encoder.width))
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
                raise Mistake(f"expected a decoder that can start from the encoder's state, {name} {ours}, got {theirs}: make them alike")
        self.encoder, self.decoder = encoder, decoder
        self.vocabulary_size = decoder.vocabulary_size

    def forward(
        self, source: Tensor, target: Tensor, *, source_lengths: Tensor | None = None, target_lengths: Tensor | None = None
    ) -> Tensor:  # (b, n), (b, t) -> (b, t, v)
        """Entry t is the law of target token t + 1 given those up to t; what stands at padding of the target changes nothing before it."""
        return self.decoder.step(self.decoder.start(self.encode(source, source_lengths)), target)[0]

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> RecurrentSource:  # (b, n), (b,)
        """Read the sources."""
        return self.encoder(source, lengths)

    def start(self, source: RecurrentSource, capacity: int = 0) -> ModelState:
        """The state before the first token of the target. It never fills, so `capacity` is not needed."""
        return self.decoder.start(source)

    def step(self, state: ModelState, tokens: Tensor) -> NextToken:  # (b, new) -> (b, new, v)
        """Read one or more new tokens of the target; equal to `forward` on all tokens so far, at the new positions."""
        logits, state, *_ = self.decoder.step(state, tokens)
        return NextToken(logits, state)
