"""What every language model offers: the law of the next token at every position, all at once or token by token.

P(x_1 .. x_T) = P(x_1) Π P(x_t | x_1 .. x_{t-1})
"""

from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

__all__ = ["AutoregressiveModel", "ModelState", "NextToken"]


@runtime_checkable
class ModelState(Protocol):
    """What a model remembers of the tokens it has read, for each sequence of a batch."""

    def select(self, rows: Tensor) -> "ModelState":
        """The state with these sequences, in this order; one may come twice (beams) or not at all (finished)."""
        ...


class NextToken(NamedTuple):
    """Unnormalised log-probabilities of the token after each new position, (batch, new, vocabulary), and the state behind them."""

    logits: Tensor
    state: ModelState


@runtime_checkable
class AutoregressiveModel(Protocol):
    """A model of sequences of tokens 0 .. vocabulary_size - 1."""

    vocabulary_size: int

    def __call__(self, tokens: Tensor) -> Tensor:
        """(batch, T) tokens to (batch, T, vocabulary) logits; entry t is the law of token t + 1 given tokens 0 .. t."""
        ...

    def start(self, batch: int, capacity: int) -> ModelState:
        """A state that has read nothing; `capacity` is the most tokens that will be read."""
        ...

    def step(self, state: ModelState, tokens: Tensor) -> NextToken:
        """Read one or more new tokens (batch, new). Equal to `__call__` on all tokens read so far, at the new positions."""
        ...
