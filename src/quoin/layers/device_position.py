"""The position of the one new token of a decoding step, kept on the device: a step that reads it there is the same
program for every token, so that it can be captured once and replayed.

A step written with a Python integer is another one at each position. Here the integer is replaced by a tensor, which
the host changes, or the step itself, and never reads. What does depend on Python is `limit`: attention works on the
first `limit` positions of a cache and masks those from the new one on, so that a short text does not pay for a long
cache.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

__all__ = ["DevicePosition", "accepts_device_position"]


@dataclass(eq=False)
class DevicePosition:
    """Where the new token stands, `index`, one of the positions 0 ... `limit` - 1.

    >>> position = DevicePosition(torch.tensor([2]), 4)
    >>> position.seen
    tensor([ True,  True,  True, False])
    >>> position.row_of(torch.arange(8.0).reshape(4, 2))
    tensor([[4., 5.]])
    """

    index: Int[Tensor, "1"]
    limit: int
    # Whoever replays a captured step keeps these: a table that is computed anew elsewhere leaves them as they are.
    tables: list[Tensor] = field(default_factory=list)
    _score_masks: dict[torch.dtype, Tensor] = field(default_factory=dict)

    @property
    def seen(self) -> Bool[Tensor, "limit"]:
        """True for the positions up to the new one."""
        return torch.arange(self.limit, device=self.index.device) <= self.index

    def row_of(self, table: Shaped[Tensor, "rows *row"]) -> Shaped[Tensor, "1 *row"]:
        """The row of the new position."""
        self.tables.append(table)
        return table.index_select(0, self.index)

    def score_mask(self, dtype: torch.dtype) -> Float[Tensor, "1 1 1 limit"]:
        """What is added to the scores: 0 for what is seen, minus infinity for the rest; made once for all layers, since
        a kernel makes it of a boolean mask in each of them."""
        if dtype not in self._score_masks:
            zeros = torch.zeros(self.limit, dtype=dtype, device=self.index.device)
            self._score_masks[dtype] = zeros.masked_fill(~self.seen, -torch.inf)[None, None, None]
        return self._score_masks[dtype]


def accepts_device_position(module: object) -> bool:
    """Whether a part that knows positions, or none, takes a `DevicePosition` for its offset."""
    return module is None or bool(getattr(module, "takes_device_position", False))
