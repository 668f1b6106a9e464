"""A recurrent decoder that attends to the source before each token: from its definition, and as a block.

The encoder and the whole model are in seq2seq.py, additive attention in quoin.layers.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.func import functional_call

from quoin.display import shown
from quoin.layers import AdditiveAttention, CellStep, RecurrentWeights, additive_attention_definition
from quoin.layers.attention.additive import AdditiveMemory
from quoin.layers.recurrent_scan import recurrent_step, scan_steps
from quoin.models.embedding import embed, make_embedding
from quoin.models.recurrent_parts import (
    CellKind,
    RecurrentState,
    as_state,
    as_torch,
    checked_num_suppressed,
    make_cell,
    make_linear,
    pad_suppressed,
)
from quoin.models.seq2seq import RecurrentEncoderOutput

__all__ = ["BahdanauCache", "BahdanauDecoder", "BahdanauOutput", "BahdanauStepOutput", "bahdanau_decoder_definition"]

Tensors = tuple[Tensor, ...]


@shown
class BahdanauOutput(NamedTuple):
    """A decoder's hidden states for each target token, and its attention weights before each."""

    output: Float[Tensor, "batch target_seq hidden"]  # the hidden states s_1 .. s_t
    contexts: Float[Tensor, "batch target_seq memory"]
    weights: Float[Tensor, "batch target_seq source_seq"]
    state: tuple[Float[Tensor, "batch hidden"], ...]  # after the last token


def bahdanau_decoder_definition(
    embedded: Float[Tensor, "batch target_seq embed"],
    memory: Float[Tensor, "batch source_seq memory"],
    state: tuple[Float[Tensor, "batch hidden"], ...],
    query_weight: Float[Tensor, "units hidden"],
    key_weight: Float[Tensor, "units memory"],
    output_weight: Float[Tensor, "units"],
    cell: Callable[[Tensor, Sequence[Tensor], RecurrentWeights], CellStep],
    weights: RecurrentWeights,
    mask: Bool[Tensor, "#batch 1 source_seq"] | None = None,
) -> BahdanauOutput:
    """Before each step the decoder attends to the source again: s_t = cell((y_t, c_t), s_{t-1}) with c_t = sum_i
    α(s_{t-1}, h_i) h_i.

        α(s, h_i) = softmax_i(w^T tanh(W_s s + W_h h_i)) over the source's real positions

    Args:
        embedded: The target's embeddings y_t.
        memory: The encoder's outputs h_i.
        state: What the cell starts from, s_0 first.
        query_weight: W_s.
        key_weight: W_h.
        output_weight: w.
        cell: `gru_cell_definition` or one like it.
        weights: Those of the cell.
        mask: True at the source's real positions; None where all are.

    Notes: Z11.23.
    """
    outputs, contexts, all_weights = [], [], []
    for y in embedded.unbind(dim=1):
        query = state[0].unsqueeze(1)
        context, alpha = additive_attention_definition(
            query, memory, memory, query_weight, key_weight, output_weight, mask
        )
        step = cell(torch.cat([y, context.squeeze(1)], dim=-1), state, weights)
        state = step.state
        outputs.append(step.output)
        contexts.append(context.squeeze(1))
        all_weights.append(alpha.squeeze(1))
    return BahdanauOutput(
        torch.stack(outputs, dim=1), torch.stack(contexts, dim=1), torch.stack(all_weights, dim=1), state
    )


@shown
class BahdanauCache(NamedTuple):
    """The source with its keys projected once, and the decoder's hidden state."""

    memory: AdditiveMemory
    recurrent: RecurrentState

    def select(self, indices: Int[Tensor, "selected"]) -> "BahdanauCache":
        """The cache of these sequences, in this order."""
        key, value, mask = self.memory
        indices = indices.to(value.device)
        mask = None if mask is None else mask.index_select(0, indices)
        return BahdanauCache(
            AdditiveMemory(key.index_select(0, indices), value.index_select(0, indices), mask),
            self.recurrent.select(indices),
        )


@shown
class BahdanauStepOutput(NamedTuple):
    """As `NextTokenOutput`, and the attention weights before each new position."""

    logits: Float[Tensor, "batch new vocab"]
    cache: BahdanauCache
    weights: Float[Tensor, "batch new source_seq"]


class AttendingStep(nn.Module):
    """One step of the decoder, to be scanned: attend, then the cell."""

    def __init__(self, attention: AdditiveAttention, cell: nn.RNNBase):
        super().__init__()
        self.attention, self.cell = attention, cell

    def forward(
        self, state: Tensors, y: Float[Tensor, "batch embed"], memory: AdditiveMemory
    ) -> tuple[Tensors, Tensors]:
        """The state after y; hidden state and context together, and the attention weights."""
        context, alpha = self.attention.attend_memory(memory, state[0][-1].unsqueeze(1))
        output, after = recurrent_step(self.cell, torch.cat([y, context.squeeze(1)], dim=-1), state)
        return after, (torch.cat([output, context.squeeze(1)], dim=-1), alpha.squeeze(1))


class BahdanauDecoder(nn.Module):
    """`bahdanau_decoder_definition` with weights to learn, on torch's cells; the logits are a map of hidden state and
    context together.

        scores_t = W (s_t, c_t) + b

    With several layers the uppermost gives the query.

    Args:
        memory_dim: The encoder's `memory_dim`.
        attention_dim: Units of the attention's score; `hidden_dim` unless given.
        num_suppressed: So many first tokens of the vocabulary are special tokens that are read and never predicted.

    Notes: Z11.23.
    """

    def __init__(
        self,
        cell: CellKind,
        target_vocab_size: int,
        embed_dim: int,
        hidden_dim: int,
        memory_dim: int,
        *,
        attention_dim: int | None = None,
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
        self.attention = AdditiveAttention(
            hidden_dim, memory_dim, hidden_dim if attention_dim is None else attention_dim, generator=generator
        )
        self.cell = make_cell(cell, embed_dim + memory_dim, hidden_dim, num_layers, dropout, False, generator)
        self.dropout = nn.Dropout(dropout)
        self.lm_head = make_linear(hidden_dim + memory_dim, target_vocab_size - num_suppressed, generator)

    def init_cache(self, source: RecurrentEncoderOutput) -> BahdanauCache:
        return BahdanauCache(
            self.attention.project_memory(source.memory, source.memory, lengths=source.lengths), source.state
        )

    def decode_step(self, cache: BahdanauCache, tokens: Int[Tensor, "batch new"]) -> BahdanauStepOutput:
        """Read one or more new tokens, each after attending to the source."""
        embedded = self.dropout(embed(self.token_embedding, tokens))
        if torch.compiler.is_exporting():
            return self._scanned(cache, embedded)
        recurrent, outputs, all_weights = cache.recurrent, [], []
        for y in embedded.split(1, dim=1):
            context, alpha = self.attention.attend_memory(cache.memory, recurrent.tensors[0][-1].unsqueeze(1))
            output, after = self.cell(torch.cat([y, context], dim=-1), as_torch(self.cell, recurrent))
            recurrent = as_state(after)
            outputs.append(torch.cat([output, context], dim=-1))
            all_weights.append(alpha)
        return self._output(torch.cat(outputs, dim=1), cache.memory, recurrent, torch.cat(all_weights, dim=1))

    def _scanned(self, cache: BahdanauCache, embedded: Tensor) -> BahdanauStepOutput:
        """The same steps as a loop that a program keeps, whatever the number of tokens."""
        step = AttendingStep(self.attention, self.cell)
        names, weights = zip(*step.named_parameters(), strict=True)
        memory = [each for each in cache.memory if each is not None]

        def call(state: Tensors, now: Tensors, constants: Tensors) -> tuple[Tensors, Tensors]:
            own = dict(zip(names, constants[: len(names)], strict=True))
            return functional_call(step, own, (state, now[0], AdditiveMemory(*constants[len(names) :])))

        after, (outputs, alphas) = scan_steps(call, cache.recurrent.tensors, (embedded,), (*weights, *memory))
        return self._output(outputs, cache.memory, RecurrentState(after), alphas)

    def _output(
        self, outputs: Tensor, memory: AdditiveMemory, recurrent: RecurrentState, weights: Tensor
    ) -> BahdanauStepOutput:
        logits = pad_suppressed(self.lm_head(self.dropout(outputs)), self.num_suppressed)
        return BahdanauStepOutput(logits, BahdanauCache(memory, recurrent), weights)
