"""Arithmetic coding of a long sequence under a model that is quick only when it reads many sequences side by side.

The sequence is cut into streams, one behind the other, which the model steps together; their symbols are interleaved in
one code, so that streams cost nothing but what the model does not know at the beginning of each.   L streams, k symbols
in the alphabet
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.callbacks import ProgressCallback
from quoin.display import shown
from quoin.errors import UserError
from quoin.info.arithmetic import ArithmeticDecoder, ArithmeticEncoder
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["StreamLayout", "StreamModel", "decode_interleaved", "encode_interleaved", "stream_frequencies"]

TOTAL = 1 << 32  # the most that the coder takes, and so the most exact
SYMBOLS_PER_STREAM = (
    1 << 10
)  # a sequence has a stream for so many of its symbols; what a stream does not know at first costs it about 8 bits
MOST_STREAMS = 64


@runtime_checkable
class StreamModel(Protocol):
    """A `CodingModel` of many streams: their distributions, and the step to the next."""

    def frequencies(self) -> np.ndarray:  # (L, k + 1), int64
        """For each stream 0 = c_0 < c_1 < ... < c_k: symbol s comes next with probability (c_{s+1} - c_s) / c_k."""
        ...

    def update(self, symbols: Sequence[int]) -> None:  # (L,)
        """Take these as the next of each stream."""
        ...


@shown
class StreamLayout(NamedTuple):
    """The first `longest` streams have `num_steps` symbols, the others one less."""

    num_streams: int
    num_steps: int
    longest: int

    @classmethod
    def from_size(cls, size: int) -> "StreamLayout":
        """That of a sequence of `size` symbols, one or more."""
        num_streams = min(max(size // SYMBOLS_PER_STREAM, 1), MOST_STREAMS)
        num_steps = -(-size // num_streams)
        return cls(num_streams, num_steps, size - num_streams * (num_steps - 1))

    def starts(self) -> list[int]:
        """Where each stream begins in the whole."""
        return [stream * self.num_steps - max(0, stream - self.longest) for stream in range(self.num_streams)]


def stream_frequencies(probs: Float[Tensor, "L k"] | ArrayLike, total: int = TOTAL) -> Int[Tensor, "L k+1"]:
    """`integer_frequencies` of each row: 1 + floor(p_s (total - k)) each, and what is left for the most probable."""
    probs = float_tensor(probs, "probs")
    if not probs.isfinite().all():
        raise UserError(
            "expected a distribution for every stream, but the model gives numbers that are not finite; train it anew"
        )
    counts = 1 + (probs.double() * (total - probs.shape[-1])).floor().long()
    counts.scatter_add_(-1, probs.argmax(-1, keepdim=True), total - counts.sum(-1, keepdim=True))
    return torch.nn.functional.pad(counts.cumsum(-1), (1, 0))


def encode_interleaved(
    symbols: Sequence[int],
    new_model: Callable[[int], StreamModel],
    on_progress: ProgressCallback = lambda done, total: None,
) -> bytes:
    """`symbols` under `new_model(L)`: all streams' first symbols, then all their second ones, and so on.

    Args:
        new_model: Takes the number L of streams to a new model of them.
        on_progress: Called with how much is done and of how much.
    """
    if not len(symbols):
        return b""
    layout, encoder = StreamLayout.from_size(len(symbols)), ArithmeticEncoder()
    starts, model = layout.starts(), new_model(layout.num_streams)
    for step in range(layout.num_steps):
        all_frequencies = model.frequencies()
        active = layout.num_streams if step < layout.num_steps - 1 else layout.longest
        read = [int(symbols[starts[stream] + step]) for stream in range(active)]
        for symbol, frequencies in zip(read, all_frequencies):
            encoder.push(symbol, frequencies)
        if step < layout.num_steps - 1:
            model.update(read)
        on_progress(step * layout.num_streams + active, len(symbols))
    return encoder.finish()


def decode_interleaved(
    data: bytes,
    new_model: Callable[[int], StreamModel],
    count: int,
    on_progress: ProgressCallback = lambda done, total: None,
) -> list[int]:
    """The `count` symbols that `encode_interleaved` made `data` of, with a model that steps as the encoder's did.

    Args:
        new_model: Takes the number of streams to a new model of them.
        on_progress: Called with how much is done and of how much.
    """
    if not count:
        return []
    layout, decoder = StreamLayout.from_size(count), ArithmeticDecoder(data)
    streams: list[list[int]] = [[] for _ in range(layout.num_streams)]
    model = new_model(layout.num_streams)
    for step in range(layout.num_steps):
        all_frequencies = model.frequencies()
        active = layout.num_streams if step < layout.num_steps - 1 else layout.longest
        for stream in range(active):
            streams[stream].append(decoder.pop(all_frequencies[stream]))
        if step < layout.num_steps - 1:
            model.update([stream[-1] for stream in streams])
        on_progress(step * layout.num_streams + active, count)
    decoder.finish()
    return [symbol for stream in streams for symbol in stream]
