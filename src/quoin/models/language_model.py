"""What every language model offers: the distribution of the next token at every position, all at once or token by
token.

P(x_1 .. x_T) = P(x_1) Π P(x_t | x_1 .. x_{t-1})
"""

from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from quoin.display import shown

__all__ = ["CausalLM", "DecodingCache", "NextTokenOutput"]


@runtime_checkable
class DecodingCache(Protocol):
    """The cache of a language model: what it keeps of the tokens read, for each sequence of a batch."""

    def select(self, indices: Int[Tensor, "selected"]) -> "DecodingCache":
        """The cache of these sequences, in this order; one may come twice (beams) or not at all (finished)."""
        ...


@shown
class NextTokenOutput(NamedTuple):
    """Unnormalized log-probabilities of the token after each new position, and the cache after them."""

    logits: Float[Tensor, "batch new vocab"]
    cache: DecodingCache


@runtime_checkable
class CausalLM(Protocol):
    """A model of sequences of tokens 0 .. vocab_size - 1."""

    vocab_size: int

    def __call__(self, tokens: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq vocab"]:
        """Logits of the next token; entry t is the distribution of token t + 1 given tokens 0 .. t."""
        ...

    def init_cache(self, batch_size: int, max_seq_len: int) -> DecodingCache:
        """An empty cache; `max_seq_len` is the most tokens that will be read."""
        ...

    def decode_step(self, cache: DecodingCache, tokens: Int[Tensor, "batch new"]) -> NextTokenOutput:
        """Read one or more new tokens. Equal to `__call__` on all tokens read so far, at the new
        positions."""
        ...
