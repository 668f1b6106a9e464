"""Arithmetic coding: a whole message as one number in [0, 1), driven by any model that gives the next symbol's
distribution as integers.

The *definition* keeps the message's interval as exact fractions. The *coder* keeps 64 bits of it and sends bytes as
they settle; it uses integers only, so what it writes is the same on every machine, and both ends step the model symbol
by symbol. Where all distributions are known before coding, range_coding.py is quicker.   k symbols in the alphabet
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.prob import check_probs
from quoin.tensor import check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = [
    "AdaptiveModel",
    "ArithmeticDecoder",
    "ArithmeticEncoder",
    "CodeInterval",
    "CodingModel",
    "StaticModel",
    "arithmetic_decode",
    "arithmetic_encode",
    "arithmetic_encode_definition",
    "arithmetic_interval",
    "integer_frequencies",
]

_BITS = 64
_WHOLE = 1 << _BITS  # the width of [0, 1)
_LEAST = 1 << (_BITS - 8)  # a narrower interval has settled its first byte
_MOST_TOTAL = 1 << 32  # at most 2^-24 of a step is then lost to rounding


@runtime_checkable
class CodingModel(Protocol):
    """What drives a coder: the distribution of the next symbol given those before, in integers, and the step to
    the one after.

    Sender and receiver each hold one in the same state, ask it, code the symbol, and update it with the symbol.
    """

    def frequencies(self) -> Sequence[int]:
        """0 = c_0 <= c_1 <= ... <= c_k: symbol s has probability (c_{s+1} - c_s) / c_k; the total c_k is at most
        2^32."""
        ...

    def update(self, symbol: int) -> None:
        """Take `symbol` as the next of the message."""
        ...


@shown
class StaticModel:
    """One distribution for every symbol, whatever the symbols before, as a `CodingModel`."""

    def __init__(self, probs: Float[Tensor, "k"] | ArrayLike):
        probs = float_tensor(probs, "probs")
        self._frequencies = integer_frequencies(probs)

    def frequencies(self) -> Sequence[int]:
        return self._frequencies

    def update(self, symbol: int) -> None:
        pass


@shown
class AdaptiveModel:
    """A model of probabilities as a `CodingModel`: `next_probs(context)` gives the distribution of the symbol after
    those in `context`.

    Floats differ between machines, builds and thread counts, and one differing bit may break all that follows: both
    ends must run the same, step by step.
    """

    def __init__(self, next_probs: Callable[[Sequence[int]], Tensor]):
        self._next_probs, self._context = next_probs, []

    def frequencies(self) -> Sequence[int]:
        return integer_frequencies(self._next_probs(self._context))

    def update(self, symbol: int) -> None:
        self._context.append(symbol)


def integer_frequencies(probs: Float[Tensor, "k"] | ArrayLike, total: int = _MOST_TOTAL) -> list[int]:
    """`probs` as k + 1 cumulative integers up to `total`: 1 + floor(p_s (total
    - k)) each, and what is left for the most probable.

    No symbol is impossible, even where its probability is 0: the dearest costs log2(total) bits, and the others at most
    log2(total / (total - k)) more than they should.

    >>> import torch
    >>> integer_frequencies(torch.tensor([0.5, 0.25, 0.25, 0.0]), total=16)
    [0, 7, 11, 15, 16]
    """
    probs = float_tensor(probs, "probs")
    check_shapes("k", probs=probs)
    check_probs(probs, "probs")
    if not len(probs) <= total <= _MOST_TOTAL:
        raise UserError(
            f"expected a total from {len(probs)}, one for each symbol, to 2^32, got {total}; 2^32 is the most exact"
        )
    p = probs.detach().cpu().double().numpy()
    counts = 1 + np.floor(p / p.sum() * (total - len(p))).astype(np.int64)
    counts[p.argmax()] += total - counts.sum()
    return [0, *np.cumsum(counts).tolist()]


@shown
class CodeInterval(NamedTuple):
    """The numbers that stand for a message: from `low` on, less than `low + width`; `width` is the
    message's probability.
    """

    low: Fraction
    width: Fraction


def arithmetic_interval(symbols: Iterable[int], model: CodingModel) -> CodeInterval:
    """Each symbol narrows [low, low + width) to its fraction: low += width c_s / c_k, width *= (c_{s+1} - c_s) /
    c_k."""
    low, width = Fraction(0), Fraction(1)
    for symbol in symbols:
        below, above, total = _interval_of(model.frequencies(), symbol)
        low, width = low + width * Fraction(below, total), width * Fraction(above - below, total)
        model.update(symbol)
    return CodeInterval(low, width)


def arithmetic_encode_definition(symbols: Iterable[int], model: CodingModel) -> str:
    """The shortest bits b_1 ... b_m whose number 0.b_1 ... b_m lies in the message's interval: m <= ceil(-log2
    width)."""
    low, width = arithmetic_interval(symbols, model)
    m = 0
    while (number := -(-(low.numerator << m) // low.denominator)) >= (
        low + width
    ) * 2**m:  # the least multiple of 2^-m from low on
        m += 1
    return f"{number:0{m}b}" if m else ""


@shown
class ArithmeticEncoder:
    """`arithmetic_interval` with 64 bits for low and width; bytes are sent as soon as nothing but a carry
    can change them.

    >>> encoder = ArithmeticEncoder()
    >>> for symbol in (0, 0, 1, 0):
    ...     encoder.push(symbol, [0, 3, 4])
    >>> encoder.finish().hex()
    '6c'
    """

    def __init__(self):
        self._low, self._width, self._sent = 0, _WHOLE, bytearray()

    def push(self, symbol: int, frequencies: Sequence[int] | np.ndarray) -> None:
        """Code one symbol under the distribution that these cumulative frequencies give."""
        below, above, total = _interval_of(frequencies, symbol)
        step = self._width // total
        self._low += step * below
        # The last symbol takes what the division left over, so that nothing of the interval is lost.
        self._width = step * (above - below) if above < total else self._width - step * below
        while self._width < _LEAST:
            self._send()

    def finish(self) -> bytes:
        """All bytes, with as few at the end as identify the interval; zeros are understood after them."""
        size, unit = 0, _WHOLE
        while (
            number := -(-self._low // unit) * unit
        ) >= self._low + self._width:  # the least multiple of the unit from low on
            size, unit = size + 1, unit >> 8
        self._low = number
        for _ in range(size):
            self._send()
        self._carry()
        return bytes(self._sent)

    def _send(self) -> None:
        self._carry()
        self._sent.append(self._low >> (_BITS - 8))
        self._low = (self._low & (_LEAST - 1)) << 8
        self._width <<= 8

    def _carry(self) -> None:
        if self._low >= _WHOLE:
            self._low -= _WHOLE
            index = len(self._sent) - 1
            while self._sent[index] == 255:
                self._sent[index] = 0
                index -= 1
            self._sent[index] += 1


@shown
class ArithmeticDecoder:
    """The symbols back from an `ArithmeticEncoder`'s bytes, if `pop` is given the same frequencies in the same
    order."""

    def __init__(self, data: bytes):
        self._data, self._next, self._width = bytes(data), 8, _WHOLE  # next: the index of the byte to read
        self._above_low = int.from_bytes(self._data[:8].ljust(8, b"\0"))

    def pop(self, frequencies: Sequence[int] | np.ndarray) -> int:
        """The next symbol: the one whose fraction of the interval holds the number sent."""
        total = int(frequencies[-1])
        step = self._width // total
        symbol = bisect_right(frequencies, min(self._above_low // step, total - 1)) - 1
        below, above = int(frequencies[symbol]), int(frequencies[symbol + 1])
        self._above_low -= step * below
        self._width = step * (above - below) if above < total else self._width - step * below
        while self._width < _LEAST:
            self._receive()
        return symbol

    def finish(self) -> None:
        """Raise an error for bytes that hold more than was asked for: beyond those settled, an encoder sends
        one at most.
        """
        most = self._next - 8 + 1
        if len(self._data) > most:
            raise UserError(
                f"expected at most {most} bytes for these symbols, got {len(self._data)}; ask for as many as were coded"
            )

    def _receive(self) -> None:
        # An encoder sends every byte that settles, so its decoder is never more than the first eight ahead.
        if self._next >= len(self._data) + 8:
            raise UserError(
                f"expected bytes for all symbols asked for, got {len(self._data)} bytes, which end before; were "
                "they cut?"
            )
        byte = self._data[self._next] if self._next < len(self._data) else 0
        self._above_low = self._above_low << 8 | byte
        self._width <<= 8
        self._next += 1


def arithmetic_encode(symbols: Iterable[int], model: CodingModel) -> bytes:
    """`symbols` as bytes: -sum_t log2 p(s_t | s_1 ... s_{t-1}) bits, give or take 8 for the whole message and
    2^-23 a symbol.
    """
    encoder = ArithmeticEncoder()
    for symbol in symbols:
        encoder.push(symbol, model.frequencies())
        model.update(symbol)
    return encoder.finish()


def arithmetic_decode(data: bytes, model: CodingModel, count: int) -> list[int]:
    """The `count` symbols that `arithmetic_encode` made `data` of, with a model that starts as the encoder's did."""
    decoder, symbols = ArithmeticDecoder(data), []
    for _ in range(count):
        symbols.append(decoder.pop(model.frequencies()))
        model.update(symbols[-1])
    decoder.finish()
    return symbols


def _interval_of(frequencies: Sequence[int] | np.ndarray, symbol: int) -> tuple[int, int, int]:
    if not 0 <= symbol < len(frequencies) - 1:
        raise UserError(
            f"expected a symbol from 0 to {len(frequencies) - 2}, got {format_value(symbol)}; the model knows no other"
        )
    # A NumPy integer would overflow in what follows, where Python's do not.
    below, above, total = int(frequencies[symbol]), int(frequencies[symbol + 1]), int(frequencies[-1])
    if not 0 <= below < above <= total <= _MOST_TOTAL:
        got = f"{below} to {above} of {total}"
        raise UserError(
            f"expected symbol {symbol} to have a fraction of a total of at most 2^32, got {got}; give every symbol some"
        )
    return below, above, total
