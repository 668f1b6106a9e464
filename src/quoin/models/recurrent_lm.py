"""Recurrent language models: what was read so far is a state of fixed size, and the next token's law is read off it.

b sequences, T tokens, w width of a token's code, h units, m tokens in the vocabulary
"""

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.layers import keeps_global_rng
from quoin.models.autoregressive import NextToken
from quoin.models.recurrent_parts import CellKind, RecurrentState, as_state, as_torch, start_recurrent_weights

__all__ = ["RecurrentLanguageModel"]


class RecurrentLanguageModel(nn.Module):
    """Codes of tokens, layers of a recurrent cell, and a score for each token that may come next.

        logits_t = W h_t + b,  h_t = cell(E x_t, h_{t-1})

    `cell` is torch.nn.RNN, GRU or LSTM. With `tied`, W is E, so width and hidden must agree. `dropout` falls on the codes, between the
    layers and before the scores. Weights on the state start orthogonal, which keeps its length, and an LSTM starts out remembering
    (the bias of its forget gate is 1); `generator` draws all of them.

    >>> model = RecurrentLanguageModel(nn.GRU, 5, 8, 16)
    >>> model(torch.tensor([[0, 3, 1, 4]])).shape
    torch.Size([1, 4, 5])

    Notes: Z9.0, Z10.
    """

    @keeps_global_rng
    def __init__(
        self,
        cell: CellKind,
        vocabulary_size: int,
        width: int,
        hidden: int,
        *,
        layers: int = 1,
        dropout: float = 0.0,
        tied: bool = False,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        sizes = {"vocabulary_size": vocabulary_size, "width": width, "hidden": hidden, "layers": layers}
        if bad := [name for name, size in sizes.items() if size < 1]:
            raise Mistake(f"expected a {bad[0]} of 1 or more, got {sizes[bad[0]]}: raise it")
        if not 0 <= dropout < 1:
            raise Mistake(f"expected a dropout from 0 to below 1, got {dropout}: choose a share")
        if tied and width != hidden:
            raise Mistake(f"expected as many units as a code is wide where both share weights, got {hidden} and {width}: make them equal")
        self.vocabulary_size, self.tied = vocabulary_size, tied
        self.codes = nn.Embedding(vocabulary_size, width)
        self.cell = cell(width, hidden, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)
        self.dropout = nn.Dropout(dropout)
        self.scores = nn.Linear(hidden, vocabulary_size)
        if tied:
            self.scores.weight = self.codes.weight
        self._draw(generator)

    def _draw(self, generator: torch.Generator | None) -> None:
        nn.init.normal_(self.codes.weight, std=self.cell.hidden_size**-0.5 if self.tied else 1.0, generator=generator)
        if not self.tied:
            nn.init.xavier_uniform_(self.scores.weight, generator=generator)
        nn.init.zeros_(self.scores.bias)
        start_recurrent_weights(self.cell, generator)

    def forward(self, tokens: Tensor) -> Tensor:  # (b, T) -> (b, T, m)
        return self.read(self.start(len(tokens)), tokens)[0]

    def start(self, batch: int, capacity: int = 0) -> RecurrentState:
        """The state that has read nothing: zeros. It never fills, so `capacity` is not needed."""
        shape = (self.cell.num_layers, batch, self.cell.hidden_size)
        like = self.codes.weight
        return RecurrentState(tuple(like.new_zeros(shape) for _ in range(2 if isinstance(self.cell, nn.LSTM) else 1)))

    def step(self, state: RecurrentState, tokens: Tensor) -> NextToken:  # (b, new) -> (b, new, m)
        return NextToken(*self.read(state, tokens))

    def read(self, state: RecurrentState, tokens: Tensor) -> tuple[Tensor, RecurrentState]:  # (b, new) -> (b, new, m)
        """The logits after each new token, and the state after the last."""
        self._check(state, tokens)
        codes = self.dropout(self.codes(tokens))
        outputs, after = self.cell(codes, as_torch(self.cell, state))
        return self.scores(self.dropout(outputs)), as_state(after)

    def _check(self, state: RecurrentState, tokens: Tensor) -> None:
        if torch.compiler.is_compiling():
            return
        if tokens.ndim != 2 or tokens.shape[1] == 0 or tokens.dtype not in (torch.int64, torch.int32):
            raise Mistake(f"expected tokens (sequences, steps) of whole numbers, got {tokens.dtype} {tuple(tokens.shape)}: reshape them")
        if tokens.device.type == "cpu" and (int(tokens.min()) < 0 or int(tokens.max()) >= self.vocabulary_size):
            raise Mistake(
                f"expected tokens from 0 to {self.vocabulary_size - 1}, got {int(tokens.min())} to {int(tokens.max())}: "
                "use the vocabulary that the model was made for"
            )
        if state.tensors[0].shape[1] != len(tokens):
            raise Mistake(f"expected {state.tensors[0].shape[1]} sequences as in the state, got {len(tokens)}: select rows of the state")
