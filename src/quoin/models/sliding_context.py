"""A model that reads windows, made to go on for ever: when its window is full it begins anew with the latter part of it.

b sequences, T tokens in a window
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from quoin.errors import Mistake, shown
from quoin.models.autoregressive import ModelState, NextToken

__all__ = ["SlidingContext", "SlidingState"]


@dataclass(frozen=True, eq=False)
class SlidingState:
    """The tokens of the window so far, and what the model remembers of them."""

    inner: ModelState
    window: Tensor  # (b, T or less)

    def select(self, rows: Tensor) -> "SlidingState":
        """These sequences, in this order."""
        return SlidingState(self.inner.select(rows), self.window[rows])


class SlidingContext(nn.Module):
    """The next token's law from at most the last T tokens, and from T - `fresh` of them or more wherever there are so many.

    A Transformer knows no more positions than it was trained with. It reads `window` tokens, then starts again from the last
    window - fresh of them: what `metrics.sliding_token_nll` judges a text by, token by token. `fresh` is half the window
    unless told otherwise.

    >>> from quoin.models import GPT
    >>> model = SlidingContext(GPT(5, width=8, heads=2, layers=1, context=4).eval(), 4)
    >>> model(torch.zeros(1, 9, dtype=torch.long)).shape
    torch.Size([1, 9, 5])
    """

    def __init__(self, model: Any, window: int, *, fresh: int | None = None):  # an AutoregressiveModel, of whatever state
        super().__init__()
        fresh = -(-window // 2) if fresh is None else fresh
        if not 1 <= fresh <= window:
            raise Mistake(f"expected a window of 1 token or more and of them 1 to all fresh, got {shown(window)} and {shown(fresh)}")
        self.model, self.window, self.fresh = model, window, fresh
        self.vocabulary_size = model.vocabulary_size

    @torch.no_grad()
    def forward(self, tokens: Tensor) -> Tensor:  # (b, n) -> (b, n, v)
        return self.step(self.start(len(tokens), tokens.shape[1]), tokens).logits

    def start(self, batch: int, capacity: int = 0) -> SlidingState:
        """Nothing read. It never fills, so `capacity` is not needed."""
        return SlidingState(self.model.start(batch, self.window), torch.zeros(batch, 0, dtype=torch.long))

    @torch.no_grad()
    def step(self, state: ModelState, tokens: Tensor) -> NextToken:  # (b, new) -> (b, new, v)
        """Read new tokens, window by window where there are many."""
        assert isinstance(state, SlidingState)
        pieces = []
        while tokens.shape[1] or not pieces:
            if state.window.shape[1] == self.window:
                state = self._renewed(state)
            room = self.window - state.window.shape[1]
            new, tokens = tokens[:, :room], tokens[:, room:]
            logits, inner = self.model.step(state.inner, new)
            state = SlidingState(inner, torch.cat([state.window.to(new.device), new], dim=1))
            pieces.append(logits)
        return NextToken(torch.cat(pieces, dim=1), state)

    def _renewed(self, full: SlidingState) -> SlidingState:
        kept = full.window[:, self.fresh :]
        inner = self.model.start(len(kept), self.window)
        return SlidingState(self.model.step(inner, kept).state if kept.shape[1] else inner, kept)
