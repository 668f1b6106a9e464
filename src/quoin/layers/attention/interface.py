"""What every attention offers to the layers and models around it: attend, show the weights, and go on token by token.

Tensors are (batch, heads, positions, width). A mask is boolean and broadcasts to (batch, heads, queries, keys): True where a
query may look at a key. A query that may look at nothing gets zeros, and so does its gradient. What no query may look at, padding, is
never used: outputs and gradients are those without it, and its own gradient is zero, whatever it holds. A key that is hidden from some
queries only must be finite; every definition keeps its NaN from them, a fast form need not.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

__all__ = ["AttentionCore", "AttentionState", "Room", "Stepped"]


class Room(NamedTuple):
    """How much a decoding state must hold: sizes known before the first token."""

    batch: int
    heads: int  # of keys and values
    key_width: int
    value_width: int
    capacity: int  # the most positions a cache may hold; a constant state ignores it
    dtype: torch.dtype
    device: torch.device


@runtime_checkable
class AttentionState(Protocol):
    """What is remembered of the positions seen; `seen` counts them."""

    @property
    def seen(self) -> int: ...

    def select(self, rows: Tensor) -> "AttentionState":
        """The state of these sequences, in this order: one may go on twice (a beam that forks), or not at all (one that has ended)."""
        ...


class Stepped(NamedTuple):
    """The output for the new positions, and the state that has seen them."""

    output: Tensor
    state: AttentionState


@runtime_checkable
class AttentionCore(Protocol):
    """One way for queries to look at keys and gather values."""

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """The gathered values, (batch, heads, queries, value width)."""
        ...

    def weights(self, query: Tensor, key: Tensor, *, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """The weights that are used on the way, (batch, heads, queries, keys), whatever they cost."""
        ...

    def start(self, room: Room) -> AttentionState:
        """A state that has seen nothing."""
        ...

    def step(self, state: AttentionState, query: Tensor, key: Tensor, value: Tensor) -> Stepped:
        """Attend causally from one or more new positions to them and all before."""
        ...
