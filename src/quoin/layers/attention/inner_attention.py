"""What every attention offers to the layers and models around it: attend, give the attention weights, and decode token
by token.

Tensors are (batch, heads, positions, head_dim). A mask is boolean and broadcasts to (batch, heads, queries, keys): True
where a query may attend to a key. A query that may attend to nothing gets zeros, and so does its gradient. What no
query may see, padding, is never used: outputs and gradients are those without it, and its own gradient is zero,
whatever it holds. A key that is hidden from some queries only must be finite; every definition keeps its NaN from them,
a fast form need not.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from quoin.display import shown

__all__ = ["AttentionCache", "AttentionStepOutput", "CacheSpec", "InnerAttention"]


@shown
class CacheSpec(NamedTuple):
    """The sizes of a cache, known before the first token."""

    batch_size: int
    num_heads: int  # of keys and values
    key_dim: int
    value_dim: int
    max_seq_len: int  # the most positions a cache may hold; a cache of constant size ignores it
    dtype: torch.dtype
    device: torch.device


@runtime_checkable
class AttentionCache(Protocol):
    """The cache of an attention after `seq_len` positions."""

    @property
    def seq_len(self) -> Any: ...  # an int; in a step that is captured a `DevicePosition`

    def select(self, indices: Int[Tensor, "selected"]) -> "AttentionCache":
        """The cache of these sequences, in this order: one may go on twice (a beam that forks), or not at all (one that
        has ended).
        """
        ...


@shown
class AttentionStepOutput(NamedTuple):
    """The output for the new positions, and the cache that holds them."""

    output: Float[Tensor, "batch ..."]
    cache: AttentionCache


@runtime_checkable
class InnerAttention(Protocol):
    """One way for queries to attend to keys and gather values."""

    def __call__(
        self,
        query: Float[Tensor, "batch heads query head_dim"],
        key: Float[Tensor, "batch kv_heads key head_dim"],
        value: Float[Tensor, "batch kv_heads key value_dim"],
        *,
        mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "batch heads query value_dim"]:
        """The gathered values, (batch, heads, queries, value_dim)."""
        ...

    def weights(
        self,
        query: Float[Tensor, "batch heads query head_dim"],
        key: Float[Tensor, "batch kv_heads key head_dim"],
        *,
        mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "batch heads query key"]:
        """The weights that are used on the way, (batch, heads, queries, keys), whatever they cost."""
        ...

    def init_cache(self, spec: CacheSpec) -> AttentionCache:
        """An empty cache."""
        ...

    def decode_step(
        self,
        cache: AttentionCache,
        query: Float[Tensor, "batch heads new head_dim"],
        key: Float[Tensor, "batch kv_heads new head_dim"],
        value: Float[Tensor, "batch kv_heads new value_dim"],
    ) -> AttentionStepOutput:
        """Attend causally from one or more new positions to them and all before."""
        ...
