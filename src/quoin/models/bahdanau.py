"""A recurrent decoder that looks at the source before each token: from its definition, and as a block.

The encoder and the whole model are in seq2seq.py, additive attention in the layers' room.

    b pairs, n source tokens, t target tokens, w width of a token's code, h units, m width of the memory, v target tokens in all
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from quoin.layers import AdditiveAttention, CellStep, RecurrentWeights, additive_attention_definition
from quoin.layers.attention.additive import AdditiveMemory
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
from quoin.models.seq2seq import RecurrentSource
from quoin.models.transformer import look_up

__all__ = ["Aligned", "AlignedToken", "BahdanauDecoder", "BahdanauState", "bahdanau_decoder_definition"]


class Aligned(NamedTuple):
    """A decoder's states for each target token, and where it looked before each."""

    output: Tensor  # (b, t, h), the states s_1 .. s_t
    contexts: Tensor  # (b, t, m)
    weights: Tensor  # (b, t, n)
    state: tuple[Tensor, ...]  # each (b, h), after the last token


def bahdanau_decoder_definition(
    codes: Tensor,
    memory: Tensor,
    state: tuple[Tensor, ...],
    query_weight: Tensor,
    key_weight: Tensor,
    output_weight: Tensor,
    cell: Callable[[Tensor, Sequence[Tensor], RecurrentWeights], CellStep],
    weights: RecurrentWeights,
    mask: Tensor | None = None,
) -> Aligned:  # (b, t, w), (b, n, m), each (b, h), (a, h), (a, m), (a,) and a mask (b, 1, n)
    """Before each step the decoder looks at the source again: s_t = cell((y_t, c_t), s_{t-1}) with c_t = sum_i α(s_{t-1}, h_i) h_i.

        α(s, h_i) = softmax_i(w^T tanh(W_s s + W_h h_i)) over the source's real positions

    `cell` is `gru_cell_definition` or one of its kin, and `state` what it starts from, s_0 first.

    Notes: Z11.23.
    """
    outputs, contexts, looks = [], [], []
    for y in codes.unbind(dim=1):
        query = state[0].unsqueeze(1)
        context, look = additive_attention_definition(query, memory, memory, query_weight, key_weight, output_weight, mask)
        step = cell(torch.cat([y, context.squeeze(1)], dim=-1), state, weights)
        state = step.state
        outputs.append(step.output)
        contexts.append(context.squeeze(1))
        looks.append(look.squeeze(1))
    return Aligned(torch.stack(outputs, dim=1), torch.stack(contexts, dim=1), torch.stack(looks, dim=1), state)


class BahdanauState(NamedTuple):
    """The source with its keys projected once, and the decoder's own state."""

    memory: AdditiveMemory
    recurrent: RecurrentState

    def select(self, rows: Tensor) -> "BahdanauState":
        """These sequences, in this order."""
        key, value, mask = self.memory
        rows = rows.to(value.device)
        mask = None if mask is None else mask.index_select(0, rows)
        return BahdanauState(AdditiveMemory(key.index_select(0, rows), value.index_select(0, rows), mask), self.recurrent.select(rows))


class AlignedToken(NamedTuple):
    """As `NextToken`, and where the decoder looked before each new position."""

    logits: Tensor  # (b, new, v)
    state: BahdanauState
    weights: Tensor  # (b, new, n)


class BahdanauDecoder(nn.Module):
    """`bahdanau_decoder_definition` with weights to learn, on torch's cells; the scores are read off state and context together.

        scores_t = W (s_t, c_t) + b

    With several layers of cells the uppermost one asks. The first `silent` tokens of the vocabulary are marks that are read and never
    said. `memory_width` is the encoder's `width`, `attention` the units of the score.

    Notes: Z11.23.
    """

    def __init__(
        self,
        cell: CellKind,
        target_size: int,
        width: int,
        hidden: int,
        memory_width: int,
        *,
        attention: int | None = None,
        layers: int = 1,
        dropout: float = 0.0,
        silent: int = 0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.vocabulary_size, self.silent = target_size, checked_silent(silent, target_size)
        self.codes = make_codes(target_size, width, generator)
        self.attention = AdditiveAttention(hidden, memory_width, hidden if attention is None else attention, generator=generator)
        self.cell = make_cell(cell, width + memory_width, hidden, layers, dropout, False, generator)
        self.dropout = nn.Dropout(dropout)
        self.scores = make_linear(hidden + memory_width, target_size - silent, generator)

    def start(self, source: RecurrentSource) -> BahdanauState:
        return BahdanauState(self.attention.remember(source.memory, source.memory, valid_lengths=source.lengths), source.state)

    def step(self, state: BahdanauState, tokens: Tensor) -> AlignedToken:  # (b, new) -> (b, new, v)
        """Read one or more new tokens, each after a look at the source."""
        codes = self.dropout(look_up(self.codes, tokens))
        recurrent, outputs, looks = state.recurrent, [], []
        for y in codes.split(1, dim=1):
            context, look = self.attention.recall(state.memory, recurrent.tensors[0][-1].unsqueeze(1))
            output, after = self.cell(torch.cat([y, context], dim=-1), as_torch(self.cell, recurrent))
            recurrent = as_state(after)
            outputs.append(torch.cat([output, context], dim=-1))
            looks.append(look)
        logits = over_all(self.scores(self.dropout(torch.cat(outputs, dim=1))), self.silent)
        return AlignedToken(logits, BahdanauState(state.memory, recurrent), torch.cat(looks, dim=1))
