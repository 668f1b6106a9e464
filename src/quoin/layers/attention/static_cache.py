"""Caches of attention in tensors that never move, for a decoding step that is captured once and replayed.

Each takes over what an ordinary cache holds (`load`), shows itself as one at a position on the device (`at`), and
stores what a step left (`keep`). They hold one new position at a time.
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.errors import UserError
from quoin.layers.attention.cache import KeyValueCache
from quoin.layers.attention.checks import check_batch_indices
from quoin.layers.attention.inner_attention import AttentionCache, CacheSpec
from quoin.layers.device_position import DevicePosition

__all__ = ["StaticAttentionCache", "StaticKeyValueCache", "StaticKeyValues"]


@runtime_checkable
class StaticAttentionCache(Protocol):
    """The memory of an attention's cache, at addresses that stay."""

    grows: bool  # whether a step takes longer the more positions there are

    def load(self, cache: Any) -> None:
        """Hold what an ordinary cache of the same attention and batch size holds, and nothing else."""
        ...

    def at(self, position: DevicePosition) -> AttentionCache:
        """The cache that a decode step reads, where the new token stands at `position`."""
        ...

    def keep(self, after: Any) -> None:
        """Store the cache that a decode step gave back."""
        ...


@dataclass(frozen=True, eq=False)
class StaticKeyValueCache:
    """The keys and values before a position on the device; a step writes its own there, in place."""

    keys: Float[Tensor, "batch kv_heads capacity key_dim"]
    values: Float[Tensor, "batch kv_heads capacity value_dim"]
    position: DevicePosition

    @property
    def seq_len(self) -> Any:  # a position that Python does not know
        return self.position

    def write(
        self, key: Float[Tensor, "batch kv_heads 1 key_dim"], value: Float[Tensor, "batch kv_heads 1 value_dim"]
    ) -> tuple[Float[Tensor, "batch kv_heads limit key_dim"], Float[Tensor, "batch kv_heads limit value_dim"]]:
        """Write the new position, and give the keys and values of the first `position.limit`; those behind the new one
        are to be masked."""
        if key.shape[2] != 1:
            raise UserError(f"expected one new position for a static cache, got {key.shape[2]}; read them one by one")
        index, limit = self.position.index, self.position.limit
        self.keys.index_copy_(2, index, key)
        self.values.index_copy_(2, index, value)
        return self.keys[:, :, :limit], self.values[:, :, :limit]

    def select(self, indices: Int[Tensor, "selected"]) -> "StaticKeyValueCache":
        """The cache of these sequences, in this order, in memory of its own."""
        check_batch_indices(indices, self.keys.shape[0])
        return StaticKeyValueCache(self.keys[indices], self.values[indices], self.position)


@dataclass(frozen=True, eq=False)
class StaticKeyValues:
    """Memory for the keys and values of `spec.max_seq_len` positions; behind those written it holds zeros, since a
    weight of zero times NaN is NaN."""

    keys: Float[Tensor, "batch kv_heads capacity key_dim"]
    values: Float[Tensor, "batch kv_heads capacity value_dim"]
    grows = True

    @classmethod
    def empty(cls, spec: CacheSpec) -> "StaticKeyValues":
        lead = (spec.batch_size, spec.num_heads, spec.max_seq_len)
        return cls(
            *(torch.zeros(*lead, dim, dtype=spec.dtype, device=spec.device) for dim in (spec.key_dim, spec.value_dim))
        )

    def load(self, cache: KeyValueCache) -> None:
        for own, given in ((self.keys, cache.keys), (self.values, cache.values)):
            own[:, :, : cache.seq_len] = given
            own[:, :, cache.seq_len :] = 0

    def at(self, position: DevicePosition) -> StaticKeyValueCache:
        return StaticKeyValueCache(self.keys, self.values, position)

    def keep(self, after: StaticKeyValueCache) -> None:
        """Nothing: a step has written in place."""
