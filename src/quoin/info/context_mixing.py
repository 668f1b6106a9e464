"""Context mixing, in integers only: the probability that the next bit is a one. As its definition, and over many
streams at once.

Each byte is eight decisions. Every context (the last 0, 1, 2, 3, 4 and 6 bytes, the word so far, the word with the one
before it) names a slot of a table of its own, where two counts n_0, n_1 hold what followed it; an adaptive map takes
each pair of counts to a probability p_k, and logistic mixing joins them: P(1) = squash(sum_k w_k stretch(p_k)),
stretch(p) = ln(p / (1 - p)). Counts, maps and weights w learn from every bit, on both sides of the code alike.

Streams are parts of a file that advance together and share all that is learnt. What they do to it in one step is
defined without an order among them (sums, and functions of the old value), so NumPy may do it in any; and it uses no
floats, so every machine does the same. Coding the bits is rans.py's.   K contexts, L streams
"""

from collections.abc import Sequence
from decimal import Context, Decimal
from functools import cache
from typing import NamedTuple

import numpy as np

from quoin.display import shown

__all__ = ["MOST_STREAMS", "WHOLE", "ContextMixer", "ContextModel", "VectorizedContextMixer"]

ORDERS = (0, 1, 2, 3, 4, 6)
NUM_CONTEXTS = len(ORDERS) + 2  # and the two of words
WHOLE = 1 << 16  # a probability p is given as round(p WHOLE), at least 1 and at most WHOLE - 1
# so many increments of a slot still fit beside MOST_COUNT in a byte, and so many steps of a map do not go past their
# aim
MOST_STREAMS = 128

MOST_COUNT = 127
UNIT = 256  # of stretch: ln(p / (1 - p)) is given in 1 / UNIT
MOST_SCORE = 11 * UNIT  # squash is then 1 / WHOLE away from 0 and 1
MAP_BITS, MAP_RATE = 22, 8  # the maps' probabilities have 22 bits and move 2^-8 of the way to each bit that comes
SURE = (1 << MAP_BITS) - 1
WEIGHT_BITS = 16
FIRST_WEIGHT = (1 << WEIGHT_BITS) // 4

WORD64 = (1 << 64) - 1
SPREAD, SALT, NODE = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xC2B2AE3D27D4EB4F  # odd, with their bits well mixed
LETTERS = frozenset(
    byte for byte in range(256) if chr(byte | 32).isalpha() or byte >= 128
)  # bytes from 128 on: other alphabets


class Tables(NamedTuple):
    """The lookup tables of both forms; lists for Python, made arrays by `VectorizedContextMixer`."""

    stretch: list[int]  # of the first 12 bits of a map's probability
    squash: list[int]  # of a score, counted from -MOST_SCORE
    fresh: list[int]  # a map before it learns: (n_1 + 1/2) / (n_0 + n_1 + 1), at n_0 + 256 n_1
    shrunk: list[int]  # what is left of a count when the other bit comes


@cache
def tables() -> Tables:
    """Computed with `decimal`, which rounds exp and ln correctly everywhere; a machine's own need not agree in
    the last digit.
    """
    exact = Context(prec=20)
    whole, unit = Decimal(WHOLE), Decimal(UNIT)
    upper = [
        int((whole / (1 + exact.exp(-exact.divide(Decimal(score), unit)))).to_integral_value())
        for score in range(MOST_SCORE + 1)
    ]
    high = [
        int((exact.ln(exact.divide(Decimal(2 * i + 1), Decimal(8191 - 2 * i))) * unit).to_integral_value())
        for i in range(2048, 4096)
    ]
    return Tables(
        stretch=[-value for value in reversed(high)] + high,
        squash=[WHOLE - value for value in reversed(upper[1:])] + upper,
        fresh=[(2 * (state >> 8) + 1) * SURE // (2 * ((state >> 8) + (state & 255) + 1)) for state in range(1 << 16)],
        shrunk=[count if count <= 2 else count // 2 + 1 for count in range(256)],
    )


@cache
def array_tables() -> list[np.ndarray]:
    return [np.array(table, np.int64) for table in tables()]


def weight_rate(met: int) -> int:
    """The weights' step is 2^-rate of the error times the input: longer while little has been met."""
    return min(max(met.bit_length() - 3, 14), 16)


class _Seen(NamedTuple):
    """What a stream used to give its probability, kept until its bit comes."""

    slots: list[int]
    states: list[int]
    map_probabilities: list[int]
    inputs: list[int]
    chosen: int
    probability: int


class _Stream:
    """The state of a stream: the bits of its byte so far behind a leading one, the bytes before, and its words."""

    def __init__(self) -> None:
        self.node, self.history, self.word, self.word_before = 1, 0, 0, 0
        self.hashes = self._hashed()

    def _hashed(self) -> list[int]:
        contexts = [self.history & ((1 << 8 * order) - 1) for order in ORDERS] + [
            self.word,
            self.word + SALT * self.word_before,
        ]
        return [(context * SPREAD + (k + 1) * SALT) & WORD64 for k, context in enumerate(contexts)]

    def advance(self, bit: int) -> None:
        self.node = 2 * self.node + bit
        if self.node < 256:
            return
        byte, self.node = self.node - 256, 1
        self.history = (self.history << 8 | byte) & WORD64
        if byte in LETTERS:
            self.word = (self.word + (byte | 32)) * SPREAD & WORD64
        elif self.word:
            self.word, self.word_before = 0, self.word
        self.hashes = self._hashed()


@shown
class ContextMixer:
    """Context mixing as defined, in Python's integers: `probs()` gives every stream's P(1), `update(bits)` takes
    every stream's bit.

    Args:
        num_streams: Sequences of bits that are predicted side by side, at most `MOST_STREAMS`.
        slot_bits: Each context has a hash table of 2^slot_bits slots.

    >>> mixer = ContextMixer(1, 12)
    >>> for bit in [0, 1] * 40:
    ...     _ = mixer.probs()
    ...     mixer.update([bit])
    >>> mixer.probs()[0] < WHOLE // 20
    True
    """

    def __init__(self, num_streams: int, slot_bits: int) -> None:
        assert 1 <= num_streams <= MOST_STREAMS
        self._streams = [_Stream() for _ in range(num_streams)]
        self._shift = 64 - slot_bits
        self._starts = [
            k << slot_bits for k in range(NUM_CONTEXTS)
        ]  # of the contexts' tables: only streams meet in a slot
        self._counts = bytearray(2 * NUM_CONTEXTS << slot_bits)
        self._maps: list[dict[int, int]] = [{} for _ in range(NUM_CONTEXTS)]  # fresh where absent
        self._weights: dict[int, list[int]] = {}
        self._seen: list[_Seen] = []
        self._met = 0  # bits

    def probs(self) -> list[int]:
        self._seen = [self._look(stream) for stream in self._streams]
        return [each.probability for each in self._seen]

    def _look(self, stream: _Stream) -> _Seen:
        stretch, squash, fresh, _ = tables()
        counts, offset = self._counts, stream.node * NODE
        slots = [
            start + (((hashed + offset) & WORD64) >> self._shift) for start, hashed in zip(self._starts, stream.hashes)
        ]
        states = [counts[2 * slot] | counts[2 * slot + 1] << 8 for slot in slots]
        map_probabilities = [map.get(state, fresh[state]) for map, state in zip(self._maps, states)]
        inputs = [stretch[map_probability >> MAP_BITS - 12] for map_probability in map_probabilities]
        # How many contexts have been met before decides which weights are used, and that differs from bit to bit of a
        # byte.
        chosen = (NUM_CONTEXTS - states.count(0)) * 256 + stream.node
        weights = self._weights.setdefault(chosen, [FIRST_WEIGHT] * NUM_CONTEXTS)
        score = sum(weight * input for weight, input in zip(weights, inputs)) >> WEIGHT_BITS
        return _Seen(
            slots,
            states,
            map_probabilities,
            inputs,
            chosen,
            squash[min(max(score, -MOST_SCORE), MOST_SCORE) + MOST_SCORE],
        )

    def update(self, bits: Sequence[int] | np.ndarray) -> None:
        bits = [int(bit) for bit in bits]  # NumPy's would overflow
        _, _, fresh, shrunk = tables()
        counts, rate = self._counts, weight_rate(self._met)
        self._met += len(bits)
        for bit, seen in zip(bits, self._seen):
            error, aim = (bit << 16) - seen.probability, SURE * bit
            weights = self._weights[seen.chosen]
            for k in range(NUM_CONTEXTS):
                weights[k] += (seen.inputs[k] * error + (1 << rate - 1)) >> rate
                state, map = seen.states[k], self._maps[k]
                map[state] = map.get(state, fresh[state]) + (
                    (aim - seen.map_probabilities[k] + (1 << MAP_RATE - 1)) >> MAP_RATE
                )
                counts[2 * seen.slots[k] + 1 - bit] = shrunk[state & 255 if bit else state >> 8]
        for bit, seen in zip(bits, self._seen):  # all have shrunk before any grows: no stream comes first
            for slot in seen.slots:
                counts[2 * slot + bit] = min(counts[2 * slot + bit] + 1, MOST_COUNT)
        for bit, stream in zip(bits, self._streams):
            stream.advance(bit)


@shown
class ContextModel:
    """One stream of a mixer as a `CodingModel` of bits, for the arithmetic coder.

    Args:
        slot_bits: Each context has a hash table of 2^slot_bits slots.
    """

    def __init__(self, slot_bits: int = 20) -> None:
        self._mixer = ContextMixer(1, slot_bits)

    def frequencies(self) -> list[int]:
        return [0, WHOLE - self._mixer.probs()[0], WHOLE]

    def update(self, symbol: int) -> None:
        self._mixer.update([symbol])


@shown
class VectorizedContextMixer:
    """`ContextMixer` on arrays, a row for each context and a column for each stream: quicker from a few streams on.

    Args:
        num_streams: Sequences of bits that are predicted side by side, at most `MOST_STREAMS`.
        slot_bits: Each context has a hash table of 2^slot_bits slots.
    """

    def __init__(self, num_streams: int, slot_bits: int) -> None:
        assert 1 <= num_streams <= MOST_STREAMS
        self._stretch, self._squash, fresh, shrunk = array_tables()
        self._shrunk = shrunk.astype(np.uint8)
        self._shift = np.uint64(64 - slot_bits)
        self._counts = np.zeros(2 * NUM_CONTEXTS << slot_bits, np.uint8)
        self._states = self._counts.view("<u2")  # n_0 + 256 n_1, on machines of either endianness
        self._maps = np.tile(fresh, NUM_CONTEXTS)
        self._weights = np.full((NUM_CONTEXTS + 1) * 256 * NUM_CONTEXTS, FIRST_WEIGHT, np.int64)
        rows = np.arange(NUM_CONTEXTS, dtype=np.int64)[:, None]
        self._starts, self._map_starts, self._row = rows << slot_bits, rows << 16, rows
        self._salts = np.array([(k + 1) * SALT & WORD64 for k in range(NUM_CONTEXTS)], np.uint64)[:, None]
        self._kept = np.array([(1 << 8 * order) - 1 for order in ORDERS], np.uint64)[:, None]
        self._is_letter = np.array([byte in LETTERS for byte in range(256)])
        self._met = 0
        self._node = np.ones(num_streams, np.int64)
        self._history, self._word, self._word_before = (np.zeros(num_streams, np.uint64) for _ in range(3))
        self._hash()

    def _hash(self) -> None:
        words = np.stack([self._word, self._word + np.uint64(SALT) * self._word_before])
        self._hashes = np.concatenate([self._history & self._kept, words]) * np.uint64(SPREAD) + self._salts

    def probs(self) -> np.ndarray:
        offset = self._node.view(np.uint64) * np.uint64(NODE)
        self._slots = ((self._hashes + offset) >> self._shift).view(
            np.int64
        ) + self._starts  # (K, L), and so are those below
        states = self._states.take(self._slots)
        self._mapped = states + self._map_starts
        self._map_probabilities = self._maps.take(self._mapped)
        self._inputs = self._stretch.take(self._map_probabilities >> (MAP_BITS - 12))
        chosen = np.add.reduce(states != 0) * 256 + self._node
        self._weighed = chosen * NUM_CONTEXTS + self._row
        score = np.add.reduce(self._weights.take(self._weighed) * self._inputs) >> WEIGHT_BITS
        self._probability = self._squash.take(score + MOST_SCORE, mode="clip")
        return self._probability

    def update(self, bits: np.ndarray) -> None:
        error, rate = (bits << 16) - self._probability, weight_rate(self._met)
        self._met += len(bits)
        # add.at, because two streams may be at one index; of what is assigned below, equal indices get equal values.
        # Flat, because add.at is four times as quick on one axis.
        np.add.at(self._weights, self._weighed.ravel(), ((self._inputs * error + (1 << rate - 1)) >> rate).ravel())
        np.add.at(
            self._maps,
            self._mapped.ravel(),
            ((bits * SURE + (1 << MAP_RATE - 1) - self._map_probabilities) >> MAP_RATE).ravel(),
        )
        same = (2 * self._slots + bits).ravel()
        other = same ^ 1
        self._counts[other] = self._shrunk.take(self._counts.take(other))
        np.add.at(self._counts, same, np.uint8(1))
        self._counts[same] = np.minimum(self._counts.take(same), MOST_COUNT)
        self._node = 2 * self._node + bits
        if self._node[0] >= 256:  # all streams are at the same bit of their bytes
            self._advance(self._node - 256)

    def _advance(self, byte: np.ndarray) -> None:
        self._node = np.ones_like(byte)
        letter = self._is_letter.take(byte)
        ended = ~letter & (self._word != 0)
        self._word_before = np.where(ended, self._word, self._word_before)
        grown = (self._word + (byte | 32).view(np.uint64)) * np.uint64(SPREAD)
        self._word = np.where(letter, grown, np.uint64(0))
        self._history = self._history << np.uint64(8) | byte.view(np.uint64)
        self._hash()
