"""Keys and values as plain tensors that a step takes and gives back longer: the cache of an exported program, whose
caller holds them."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["GrowingKeyValueCache"]


@dataclass(frozen=True, eq=False)
class GrowingKeyValueCache:
    """The keys and values of all positions so far; each step copies them, which `KeyValueCache` does not."""

    keys: Float[Tensor, "batch kv_heads seen key_dim"]
    values: Float[Tensor, "batch kv_heads seen value_dim"]

    @property
    def seq_len(self) -> int:
        return self.keys.shape[2]

    def append(
        self, key: Float[Tensor, "batch kv_heads new key_dim"], value: Float[Tensor, "batch kv_heads new value_dim"]
    ) -> "GrowingKeyValueCache":
        """The cache with these positions too."""
        return GrowingKeyValueCache(torch.cat([self.keys, key], dim=2), torch.cat([self.values, value], dim=2))

    def select(self, indices: Int[Tensor, "selected"]) -> "GrowingKeyValueCache":
        """The cache of these sequences, in this order."""
        return GrowingKeyValueCache(self.keys[indices], self.values[indices])
