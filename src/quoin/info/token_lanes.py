"""Arithmetic coding of a long sequence under a model that is quick only when it reads many sequences side by side.

The sequence is cut into lanes, one behind the other, which the model steps together; their symbols take turns in one code, so that lanes
cost nothing but what the model does not know at the beginning of each.   L lanes, k symbols in the alphabet
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.info.arithmetic import ArithmeticDecoder, ArithmeticEncoder
from quoin.info.lanes import Tell

__all__ = ["LaneLayout", "LaneModel", "lane_frequencies", "token_lanes_decode", "token_lanes_encode"]

TOTAL = 1 << 32  # the most that the coder takes, and so the most exact
LANE = 1 << 10  # a sequence has a lane for so many of its symbols; what a lane does not know at first costs it about 8 bits
MOST_LANES = 64


class LaneModel(Protocol):
    """A `CodingModel` of many lanes: their laws, and the step to the next."""

    def frequencies(self) -> np.ndarray:  # (L, k + 1), int64
        """For each lane 0 = c_0 < c_1 < ... < c_k: symbol s comes next with probability (c_{s+1} - c_s) / c_k."""
        ...

    def update(self, symbols: Sequence[int]) -> None:  # (L,)
        """Take these as the next of each lane."""
        ...


class LaneLayout(NamedTuple):
    """The first `longest` lanes have `num_steps` symbols, the others one less."""

    num_lanes: int
    num_steps: int
    longest: int

    @classmethod
    def of(cls, size: int) -> "LaneLayout":
        """That of a sequence of `size` symbols, one or more."""
        num_lanes = min(max(size // LANE, 1), MOST_LANES)
        num_steps = -(-size // num_lanes)
        return cls(num_lanes, num_steps, size - num_lanes * (num_steps - 1))

    def starts(self) -> list[int]:
        """Where each lane begins in the whole."""
        return [lane * self.num_steps - max(0, lane - self.longest) for lane in range(self.num_lanes)]


def lane_frequencies(laws: Tensor, total: int = TOTAL) -> Tensor:  # (L, k), float64 -> (L, k + 1), int64
    """`integer_frequencies` of each row: 1 + floor(p_s (total - k)) each, and what is left for the likeliest."""
    if not laws.isfinite().all():
        raise Mistake("expected a law for every lane, but the model gives numbers that are not finite; train it anew")
    counts = 1 + (laws.double() * (total - laws.shape[-1])).floor().long()
    counts.scatter_add_(-1, laws.argmax(-1, keepdim=True), total - counts.sum(-1, keepdim=True))
    return torch.nn.functional.pad(counts.cumsum(-1), (1, 0))


def token_lanes_encode(symbols: Sequence[int], new_model: Callable[[int], LaneModel], tell: Tell = lambda done, total: None) -> bytes:
    """`symbols` under `new_model(L)`: all lanes' first symbols, then all their second ones, and so on."""
    if not len(symbols):
        return b""
    layout, encoder = LaneLayout.of(len(symbols)), ArithmeticEncoder()
    starts, model = layout.starts(), new_model(layout.num_lanes)
    for step in range(layout.num_steps):
        laws = model.frequencies()
        active = layout.num_lanes if step < layout.num_steps - 1 else layout.longest
        read = [int(symbols[starts[lane] + step]) for lane in range(active)]
        for symbol, law in zip(read, laws):
            encoder.push(symbol, law)
        if step < layout.num_steps - 1:
            model.update(read)
        tell(step * layout.num_lanes + active, len(symbols))
    return encoder.finish()


def token_lanes_decode(data: bytes, new_model: Callable[[int], LaneModel], count: int, tell: Tell = lambda done, total: None) -> list[int]:
    """The `count` symbols that `token_lanes_encode` made `data` of, with a model that steps as the encoder's did."""
    if not count:
        return []
    layout, decoder = LaneLayout.of(count), ArithmeticDecoder(data)
    lanes: list[list[int]] = [[] for _ in range(layout.num_lanes)]
    model = new_model(layout.num_lanes)
    for step in range(layout.num_steps):
        laws = model.frequencies()
        active = layout.num_lanes if step < layout.num_steps - 1 else layout.longest
        for lane in range(active):
            lanes[lane].append(decoder.pop(laws[lane]))  # pyright: ignore[reportArgumentType]
        if step < layout.num_steps - 1:
            model.update([lane[-1] for lane in lanes])
        tell(step * layout.num_lanes + active, count)
    decoder.finish()
    return [symbol for lane in lanes for symbol in lane]
