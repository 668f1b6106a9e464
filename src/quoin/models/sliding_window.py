"""A model that reads windows, made to go on for ever: when its window is full it begins anew with the latter part of
it.

T tokens in a window
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.models.language_model import DecodingCache, NextTokenOutput
from quoin.models.static_cache import StaticStart

__all__ = ["SlidingWindowCache", "SlidingWindowModel"]


@shown
@dataclass(frozen=True, eq=False)
class SlidingWindowCache:
    """The tokens of the window so far, and the model's cache of them."""

    inner: DecodingCache
    window: Int[Tensor, "batch window"]

    def select(self, indices: Int[Tensor, "selected"]) -> "SlidingWindowCache":
        """The cache of these sequences, in this order."""
        return SlidingWindowCache(self.inner.select(indices), self.window[indices])


class SlidingWindowModel(nn.Module):
    """The next token's distribution from at most the last T tokens, and from T - `stride` of them or more wherever
    there are so many.

    A Transformer knows no more positions than it was trained with. It reads `window` tokens, then starts again from the
    last window - stride of them: what `metrics.sliding_window_nll` evaluates a text by, token by token. `stride` is
    half the window unless given.

    >>> from quoin.models import GPT
    >>> model = SlidingWindowModel(GPT(5, embed_dim=8, num_heads=2, num_layers=1, context_length=4).eval(), 4)
    >>> model(torch.zeros(1, 9, dtype=torch.long)).shape
    torch.Size([1, 9, 5])
    """

    def __init__(self, model: Any, window: int, *, stride: int | None = None):  # a CausalLM, of whatever cache
        super().__init__()
        stride = -(-window // 2) if stride is None else stride
        if not 1 <= stride <= window:
            raise UserError(
                f"expected a window of 1 token or more and a stride from 1 to the window, got {format_value(window)} "
                f"and {format_value(stride)}"
            )
        self.model, self.window, self.stride = model, window, stride
        self.vocab_size = model.vocab_size

    @torch.no_grad()
    def forward(self, tokens: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq vocab"]:
        return self.decode_step(self.init_cache(tokens.shape[0], tokens.shape[1]), tokens).logits

    def init_cache(self, batch_size: int, max_seq_len: int = 0) -> SlidingWindowCache:
        """An empty cache. It never fills, so `max_seq_len` is not needed."""
        return SlidingWindowCache(
            self.model.init_cache(batch_size, self.window), torch.zeros(batch_size, 0, dtype=torch.long)
        )

    @torch.no_grad()
    def decode_step(self, cache: DecodingCache, tokens: Int[Tensor, "batch new"]) -> NextTokenOutput:
        """Read new tokens, window by window where there are many."""
        assert isinstance(cache, SlidingWindowCache)
        pieces = []
        while tokens.shape[1] or not pieces:
            if cache.window.shape[1] == self.window:
                cache = self._renewed(cache)
            free = self.window - cache.window.shape[1]
            new, tokens = tokens[:, :free], tokens[:, free:]
            logits, inner = self.model.decode_step(cache.inner, new)
            cache = SlidingWindowCache(inner, torch.cat([cache.window.to(new.device), new], dim=1))
            pieces.append(logits)
        return NextTokenOutput(torch.cat(pieces, dim=1), cache)

    def static_start(self, cache: SlidingWindowCache) -> StaticStart | None:
        """Where static steps of the model may go on from `cache`, to the end of the window."""
        start = self.model.static_start(cache.inner) if hasattr(self.model, "static_start") else None
        return None if start is None else start._replace(tokens_left=self.window - cache.window.shape[1])

    def full_cache(self, read: Int[Tensor, "batch seq"]) -> SlidingWindowCache:
        """The cache whose window has just been filled with the last of these tokens: the next step begins anew with the
        latter part of them, so that no cache of the model is needed."""
        return SlidingWindowCache(self.model.init_cache(read.shape[0], 1), read[:, -self.window :])

    def _renewed(self, full: SlidingWindowCache) -> SlidingWindowCache:
        kept = full.window[:, self.stride :]
        inner = self.model.init_cache(kept.shape[0], self.window)
        return SlidingWindowCache(self.model.decode_step(inner, kept).cache if kept.shape[1] else inner, kept)
