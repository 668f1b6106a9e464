"""The cache of exact attention in decoding: the keys and values of every position seen, in preallocated memory.

Each new position is written once, behind the last; none is copied again.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers.attention.checks import check_batch_indices, check_sizes
from quoin.layers.attention.inner_attention import CacheSpec
from quoin.tensor import check_shapes

__all__ = ["KeyValueCache"]


@dataclass
class _Storage:
    """Memory that caches share; `filled` positions of it are written."""

    keys: Float[Tensor, "batch kv_heads capacity key_dim"]
    values: Float[Tensor, "batch kv_heads capacity value_dim"]
    filled: int

    def copied(self, seq_len: int, indices: Tensor | slice = slice(None)) -> "_Storage":
        """Memory of its own with the first `seq_len` positions of these sequences."""
        keys, values = self.keys[indices, :, :seq_len], self.values[indices, :, :seq_len]
        batch_size, max_seq_len = keys.shape[0], self.keys.shape[2]
        fresh = _Storage(
            *(each.new_empty(batch_size, each.shape[1], max_seq_len, each.shape[3]) for each in (keys, values)),
            filled=seq_len,
        )
        fresh.keys[:, :, :seq_len] = keys
        fresh.values[:, :, :seq_len] = values
        return fresh


@shown
@dataclass(frozen=True, eq=False)
class KeyValueCache:
    """The first `seq_len` keys and values; `append` gives the cache with more, and leaves this one as it is.

    Caches that follow each other share their memory. Only one that goes on from an earlier cache, where another has
    gone on already, copies what it holds, so that two continuations of one beginning do not write over each other.

    >>> cache = KeyValueCache.empty(CacheSpec(1, 2, 4, 4, 8, torch.float32, torch.device("cpu")))
    >>> cache = cache.append(torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 4))
    >>> cache.seq_len, cache.keys.shape
    (3, torch.Size([1, 2, 3, 4]))
    """

    _storage: _Storage
    seq_len: int = 0

    @classmethod
    def empty(cls, spec: CacheSpec) -> "KeyValueCache":
        """Nothing seen, and memory for `spec.max_seq_len` positions."""
        check_sizes(
            {name: getattr(spec, name) for name in ("batch_size", "num_heads", "key_dim", "value_dim", "max_seq_len")}
        )
        lead = (spec.batch_size, spec.num_heads, spec.max_seq_len)
        keys = torch.empty(*lead, spec.key_dim, dtype=spec.dtype, device=spec.device)
        return cls(_Storage(keys, torch.empty(*lead, spec.value_dim, dtype=spec.dtype, device=spec.device), 0))

    @property
    def max_seq_len(self) -> int:
        return self._storage.keys.shape[2]

    @property
    def keys(self) -> Float[Tensor, "batch kv_heads seen key_dim"]:
        return self._storage.keys[:, :, : self.seq_len]

    @property
    def values(self) -> Float[Tensor, "batch kv_heads seen value_dim"]:
        return self._storage.values[:, :, : self.seq_len]

    def append(
        self, key: Float[Tensor, "batch kv_heads new key_dim"], value: Float[Tensor, "batch kv_heads new value_dim"]
    ) -> "KeyValueCache":
        """The cache with these positions too."""
        storage, seq_len = self._storage, self.seq_len
        if not (_fits(key, storage.keys) and _fits(value, storage.values) and key.shape[2] == value.shape[2]):
            # Only where a glance finds a fault: to say which takes a tenth of the time of a small model's step.
            legend = "b g capacity d, b g new d, b g capacity v, b g new v"
            check_shapes(legend, cached_keys=storage.keys, key=key, cached_values=storage.values, value=value)
        if torch.is_grad_enabled() and (key.requires_grad or value.requires_grad):
            raise UserError(
                "expected to decode without gradients, got a key or value that asks for one; "
                "decode under torch.no_grad(), or attend to the whole sequence at once to train"
            )
        after = seq_len + key.shape[2]
        if after > self.max_seq_len:
            raise UserError(
                f"expected at most {self.max_seq_len} positions, got number {after}; give a larger max_seq_len"
            )
        if storage.filled != seq_len:
            storage = storage.copied(seq_len)
        storage.keys[:, :, seq_len:after] = key
        storage.values[:, :, seq_len:after] = value
        storage.filled = after
        return KeyValueCache(storage, after)

    def select(self, indices: Int[Tensor, "selected"]) -> "KeyValueCache":
        """The cache of these sequences, in this order, in memory of its own."""
        check_batch_indices(indices, self._storage.keys.shape[0])
        return KeyValueCache(self._storage.copied(self.seq_len, indices), self.seq_len)


def _fits(new: Tensor, kept: Tensor) -> bool:
    """The same shape but for the number of positions."""
    got, held = new.shape, kept.shape
    return len(got) == 4 and got[0] == held[0] and got[1] == held[1] and got[3] == held[3]
