"""Caches of language models in tensors that never move: what a decoding step needs to be captured once and replayed.

A model that has them offers `init_static_cache`, and `static_start` for where static steps may go on from an ordinary
cache. `quoin.generate` asks for both and knows no model; a model without them decodes as ever.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from quoin.layers.attention.static_cache import StaticAttentionCache
from quoin.layers.device_position import DevicePosition
from quoin.models.recurrent_parts import RecurrentState

__all__ = ["StaticCache", "StaticRecurrentState", "StaticStart", "StaticTransformerBlocks"]


@runtime_checkable
class StaticCache(Protocol):
    """The memory of a model's cache, at addresses that stay."""

    grows: bool  # whether a step takes longer the more tokens were read

    def reset(self) -> None:
        """Stand where the first token is read, whatever the memory holds."""
        ...

    def load(self, cache: Any) -> None:
        """Hold what an ordinary cache of the same model and batch size holds, and nothing else."""
        ...

    def at(self, limit: int) -> Any:
        """The cache that `decode_step` reads for one token more, while fewer than `limit` were read."""
        ...

    def keep(self, after: Any) -> None:
        """Store the cache that `decode_step` gave back, one token further."""
        ...


class StaticStart(NamedTuple):
    """Where static steps go on from: the model that takes them, its ordinary cache, and how far they may go."""

    model: Any
    cache: Any
    seq_len: int
    tokens_left: int | None  # the most tokens that can still be read; None sets no bound


@dataclass(frozen=True, eq=False)
class StaticTransformerBlocks:
    """The memory of each block, and the number of tokens read, which is where the next one stands.

    Args:
        wrap: Makes the model's cache of those of its blocks.
    """

    blocks: tuple[StaticAttentionCache, ...]
    index: Int[Tensor, "1"]
    wrap: Any

    @property
    def grows(self) -> bool:
        return any(block.grows for block in self.blocks)

    def reset(self) -> None:
        self.index.zero_()

    def load(self, cache: Any) -> None:
        self.index.fill_(cache.seq_len)
        for block, given in zip(self.blocks, cache.blocks, strict=True):
            block.load(given)

    def at(self, limit: int) -> Any:
        position = DevicePosition(self.index, limit)
        return self.wrap(tuple(block.at(position) for block in self.blocks))

    def keep(self, after: Any) -> None:
        for block, its in zip(self.blocks, after.blocks, strict=True):
            block.keep(its)
        self.index.add_(1)


@dataclass(frozen=True, eq=False)
class StaticRecurrentState:
    """The memory of a hidden state, whose size never changes."""

    state: RecurrentState
    grows = False

    def reset(self) -> None:
        """Nothing: a hidden state stands nowhere."""

    def load(self, cache: RecurrentState) -> None:
        self.keep(cache)

    def at(self, limit: int) -> RecurrentState:
        return self.state

    def keep(self, after: RecurrentState) -> None:
        for own, new in zip(self.state.tensors, after.tensors, strict=True):
            own.copy_(new)
