"""Recurrent language models: what was read is a hidden state of fixed size, from which the next token is predicted."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import keeps_global_rng
from quoin.models.language_model import NextTokenOutput
from quoin.models.recurrent_parts import CellKind, RecurrentState, init_recurrent_weights, read_sequences
from quoin.models.static_cache import StaticRecurrentState, StaticStart

__all__ = ["RecurrentLanguageModel"]


class RecurrentLanguageModel(nn.Module):
    """Token embeddings, layers of a recurrent cell, and logits of the next token.

        logits_t = W h_t + b,  h_t = cell(E x_t, h_{t-1})

    `cell` is torch.nn.RNN, GRU or LSTM. With `tie_embeddings`, W is E, so embed_dim and hidden_dim must agree.
    `dropout` is of the embeddings, between the layers and before the logits. Weights on the hidden state start
    orthogonal, which keeps its length, and an LSTM starts out remembering (the bias of its forget gate is 1);
    `generator` samples all of them.

    >>> model = RecurrentLanguageModel(nn.GRU, 5, 8, 16)
    >>> model(torch.tensor([[0, 3, 1, 4]])).shape
    torch.Size([1, 4, 5])

    Notes: Z9.0, Z10.
    """

    @keeps_global_rng
    def __init__(
        self,
        cell: CellKind,
        vocab_size: int,
        embed_dim: int,
        hidden_dim: int,
        *,
        num_layers: int = 1,
        dropout: float = 0.0,
        tie_embeddings: bool = False,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        sizes = {"vocab_size": vocab_size, "embed_dim": embed_dim, "hidden_dim": hidden_dim, "num_layers": num_layers}
        if bad := [name for name, size in sizes.items() if size < 1]:
            raise UserError(f"expected a {bad[0]} of 1 or more, got {sizes[bad[0]]}: raise it")
        if not 0 <= dropout < 1:
            raise UserError(f"expected a dropout probability from 0 to below 1, got {dropout}: lower it")
        if tie_embeddings and embed_dim != hidden_dim:
            raise UserError(
                f"expected hidden_dim equal to embed_dim for tied embeddings, got {hidden_dim} and {embed_dim}: "
                "make them equal"
            )
        self.vocab_size, self.tie_embeddings = vocab_size, tie_embeddings
        self.token_embedding = nn.Embedding(vocab_size, embed_dim)
        self.cell = cell(
            embed_dim, hidden_dim, num_layers, batch_first=True, dropout=dropout if num_layers > 1 else 0.0
        )
        self.dropout = nn.Dropout(dropout)
        self.lm_head = nn.Linear(hidden_dim, vocab_size)
        if tie_embeddings:
            self.lm_head.weight = self.token_embedding.weight
        self._draw(generator)

    def _draw(self, generator: torch.Generator | None) -> None:
        nn.init.normal_(
            self.token_embedding.weight,
            std=self.cell.hidden_size**-0.5 if self.tie_embeddings else 1.0,
            generator=generator,
        )
        if not self.tie_embeddings:
            nn.init.xavier_uniform_(self.lm_head.weight, generator=generator)
        nn.init.zeros_(self.lm_head.bias)
        init_recurrent_weights(self.cell, generator)

    def forward(self, tokens: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq vocab"]:
        return self.read(self.init_cache(tokens.shape[0]), tokens)[0]

    def init_cache(self, batch_size: int, max_seq_len: int = 0) -> RecurrentState:
        """The cache that has read nothing, a hidden state of zeros. It never fills, so `max_seq_len` is not needed."""
        shape = (self.cell.num_layers, batch_size, self.cell.hidden_size)
        like = self.token_embedding.weight
        return RecurrentState(tuple(like.new_zeros(shape) for _ in range(2 if isinstance(self.cell, nn.LSTM) else 1)))

    def init_static_cache(self, batch_size: int, max_seq_len: int = 0) -> StaticRecurrentState:
        """Memory for a `decode_step` that can be captured."""
        return StaticRecurrentState(self.init_cache(batch_size))

    def static_start(self, cache: RecurrentState) -> StaticStart:
        """Where static steps may go on from `cache`: anywhere."""
        return StaticStart(self, cache, 0, None)

    def decode_step(self, cache: RecurrentState, tokens: Int[Tensor, "batch new"]) -> NextTokenOutput:
        return NextTokenOutput(*self.read(cache, tokens))

    def read(
        self, state: RecurrentState, tokens: Int[Tensor, "batch new"]
    ) -> tuple[Float[Tensor, "batch new vocab"], RecurrentState]:
        """The logits after each new token, and the hidden state after the last."""
        self._check(state, tokens)
        embedded = self.dropout(self.token_embedding(tokens))
        outputs, after = read_sequences(self.cell, embedded, state)
        return self.lm_head(self.dropout(outputs)), after

    def _check(self, state: RecurrentState, tokens: Tensor) -> None:
        if torch.compiler.is_compiling():
            return
        if tokens.ndim != 2 or tokens.shape[1] == 0 or tokens.dtype not in (torch.int64, torch.int32):
            raise UserError(
                f"expected token ids (sequences, steps), got {tokens.dtype} {tuple(tokens.shape)}: reshape them"
            )
        if tokens.device.type == "cpu" and (int(tokens.min()) < 0 or int(tokens.max()) >= self.vocab_size):
            raise UserError(
                f"expected tokens from 0 to {self.vocab_size - 1}, got {int(tokens.min())} to {int(tokens.max())}: "
                "use the vocabulary that the model was made for"
            )
        if state.tensors[0].shape[1] != tokens.shape[0]:
            raise UserError(
                f"expected {state.tensors[0].shape[1]} sequences as in the cache, got {tokens.shape[0]}: select "
                "sequences of the cache"
            )
