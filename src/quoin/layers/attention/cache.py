"""What exact attention remembers while it decodes: the keys and values of every position seen, in memory set aside at the start.

Each new position is written once, behind the last; none is copied again.   b sequences, g heads, m positions, d and v widths
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.layers.attention.checks import check_rows, check_sizes
from quoin.layers.attention.interface import Room
from quoin.tensor import check_shapes

__all__ = ["KeyValueCache"]


@dataclass
class _Shelf:
    """Memory that states share; `filled` positions of it are written."""

    keys: Tensor  # (b, g, capacity, d)
    values: Tensor  # (b, g, capacity, v)
    filled: int

    def copied(self, seen: int, rows: Tensor | slice = slice(None)) -> "_Shelf":
        """Memory of its own with the first `seen` positions of these sequences."""
        keys, values = self.keys[rows, :, :seen], self.values[rows, :, :seen]
        batch, capacity = len(keys), self.keys.shape[2]
        fresh = _Shelf(*(each.new_empty(batch, each.shape[1], capacity, each.shape[3]) for each in (keys, values)), filled=seen)
        fresh.keys[:, :, :seen] = keys
        fresh.values[:, :, :seen] = values
        return fresh


@dataclass(frozen=True, eq=False)
class KeyValueCache:
    """The first `seen` keys and values; `append` gives the state that has seen more, and leaves this one as it is.

    States that follow each other share their memory. Only one that goes on from an earlier state, where another has gone on
    already, copies what it has seen, so that two continuations of one beginning do not write over each other.

    >>> state = KeyValueCache.empty(Room(1, 2, 4, 4, 8, torch.float32, torch.device("cpu")))
    >>> state = state.append(torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 4))
    >>> state.seen, state.keys.shape
    (3, torch.Size([1, 2, 3, 4]))
    """

    shelf: _Shelf
    seen: int = 0

    @classmethod
    def empty(cls, room: Room) -> "KeyValueCache":
        """Nothing seen, and memory for `room.capacity` positions."""
        check_sizes({name: getattr(room, name) for name in ("batch", "heads", "key_width", "value_width", "capacity")})
        lead = (room.batch, room.heads, room.capacity)
        keys = torch.empty(*lead, room.key_width, dtype=room.dtype, device=room.device)
        return cls(_Shelf(keys, torch.empty(*lead, room.value_width, dtype=room.dtype, device=room.device), 0))

    @property
    def capacity(self) -> int:
        return self.shelf.keys.shape[2]

    @property
    def keys(self) -> Tensor:  # (b, g, seen, d)
        return self.shelf.keys[:, :, : self.seen]

    @property
    def values(self) -> Tensor:  # (b, g, seen, v)
        return self.shelf.values[:, :, : self.seen]

    def append(self, key: Tensor, value: Tensor) -> "KeyValueCache":  # (b, g, new, d), (b, g, new, v)
        """The state that has seen these positions too."""
        shelf, seen = self.shelf, self.seen
        if not (_fits(key, shelf.keys) and _fits(value, shelf.values) and key.shape[2] == value.shape[2]):
            # Only where a glance finds a fault: to say which takes a tenth of the time of a small model's step.
            legend = "b g capacity d, b g new d, b g capacity v, b g new v"
            check_shapes(legend, cached_keys=shelf.keys, key=key, cached_values=shelf.values, value=value)
        if torch.is_grad_enabled() and (key.requires_grad or value.requires_grad):
            raise Mistake(
                "expected to decode without gradients, came a key or value that asks for one; "
                "step under torch.no_grad(), or attend to the whole sequence at once to train"
            )
        after = seen + key.shape[2]
        if after > self.capacity:
            raise Mistake(f"expected at most {self.capacity} positions, came number {after}; start with a larger capacity")
        if shelf.filled != seen:
            shelf = shelf.copied(seen)
        shelf.keys[:, :, seen:after] = key
        shelf.values[:, :, seen:after] = value
        shelf.filled = after
        return KeyValueCache(shelf, after)

    def select(self, rows: Tensor) -> "KeyValueCache":  # (r,)
        """The state of these sequences, in this order, in memory of its own."""
        check_rows(rows, len(self.shelf.keys))
        return KeyValueCache(self.shelf.copied(self.seen, rows), self.seen)


def _fits(new: Tensor, kept: Tensor) -> bool:
    """The same shape but for the number of positions."""
    came, held = new.shape, kept.shape
    return len(came) == 4 and came[0] == held[0] and came[1] == held[1] and came[3] == held[3]
