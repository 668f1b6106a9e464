"""Context mixing, in integers only: the probability that the next decision is a one. This is the definition; many
streams at once are in context_arrays.py.

A byte is a path through a code tree (code_trees.py). Every context (the last few bytes for several orders, the word so
far, the word with the one before it) names with the node of the tree a slot of a table of its own, where two counts
n_0, n_1 hold what followed it, with a check that they are of this context and not of one that shares the slot. Each
pair of counts is a vote, ln((n_1 + 1/16) / (n_0 + 1/16)), and logistic mixing joins them: P(1) = squash(sum_k w_k
vote_k). Counts and weights w learn from every bit, on both sides of the code alike.

Streams are parts of a file that advance together and share all that is learnt: in one step all look first, and then
all learn, where of streams that meet in a slot the last one's counts stay. No floats, so every machine does the same.
Coding the bits is rans.py's.   K contexts, L streams
"""

from collections.abc import Sequence
from decimal import Context, Decimal
from functools import cache
from typing import NamedTuple

import numpy as np

from quoin.display import shown
from quoin.info.code_trees import LEAF, LEVELS, ROOT, CodeTrees

__all__ = ["MOST_STREAMS", "WHOLE", "ContextMixer", "ContextModel"]

# Code trees of a table know the last byte themselves, and there is text enough for a long context.
PLAIN_ORDERS, TREE_ORDERS = (1, 2, 3, 4, 6), (2, 3, 4, 6, 12)
NUM_CONTEXTS = len(PLAIN_ORDERS) + 2  # and the two of words
WHOLE = 1 << 16  # a probability p is given as round(p WHOLE), at least 1 and at most WHOLE - 1
MOST_STREAMS = 256

MOST_COUNT = 127
CHECK_BITS, NUMBER_BITS = 6, 10  # of the hash after those that name the slot, and of the counts' number
UNIT = 256  # of votes: ln(p / (1 - p)) is given in 1 / UNIT
MOST_SCORE = 11 * UNIT  # squash is then 1 / WHOLE away from 0 and 1
WEIGHT_BITS = 16
FIRST_WEIGHT = (1 << WEIGHT_BITS) // 4

WORD64 = (1 << 64) - 1
SPREAD, SALT, NODE = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xC2B2AE3D27D4EB4F  # odd, with their bits well mixed
LETTERS = frozenset(
    byte for byte in range(256) if chr(byte | 32).isalpha() or byte >= 128
)  # bytes from 128 on: other alphabets


def after(counts: tuple[int, int], bit: int) -> tuple[int, int]:
    """n_0, n_1 after one more bit: its own count grows, and of the other half is forgotten."""
    zeros, ones = counts
    return (_shrunk(zeros), min(ones + 1, MOST_COUNT)) if bit else (min(zeros + 1, MOST_COUNT), _shrunk(ones))


def _shrunk(count: int) -> int:
    return count if count <= 2 else count // 2 + 1


class Tables(NamedTuple):
    """The lookup tables of both forms. `decimal` rounds exp and ln correctly everywhere; a machine's own need not agree
    in the last digit.
    """

    log: list[int]  # of n + 1/16, in UNIT
    squash: list[int]  # of a score, counted from -MOST_SCORE


@cache
def tables() -> Tables:
    exact = Context(prec=20)
    whole, unit = Decimal(WHOLE), Decimal(UNIT)
    upper = [
        int((whole / (1 + exact.exp(-exact.divide(Decimal(score), unit)))).to_integral_value())
        for score in range(MOST_SCORE + 1)
    ]
    log = [int((exact.ln(Decimal(16 * count + 1) / 16) * unit).to_integral_value()) for count in range(MOST_COUNT + 1)]
    return Tables(log, [WHOLE - value for value in reversed(upper[1:])] + upper)


def weight_rate(met: int) -> int:
    """The weights' step is 2^-rate of the error times the vote: longer while little has been met."""
    return min(max(met.bit_length() - 1, 15), 18)


def context_orders(trees: CodeTrees) -> tuple[int, ...]:
    return PLAIN_ORDERS if trees.is_plain else TREE_ORDERS


def kind(byte: int) -> int:
    """Small and capital letters, digits, the space, control characters, other signs, and what is not ASCII."""
    text = chr(byte)
    tests = byte >= 128, text.islower(), text.isupper(), text.isdigit(), text == " ", byte < 32
    return tests.index(True) if any(tests) else NUM_KINDS - 1


NUM_KINDS = 7
KINDS = [kind(byte) for byte in range(256)]


class _Seen(NamedTuple):
    """What a stream used to give its probability, kept until its bit comes."""

    slots: list[int]
    checks: list[int]
    counts: list[tuple[int, int]]
    votes: list[int]
    chosen: int
    probability: int


class _Stream:
    """The state of a stream: the node in the tree of its byte, the bytes before, and its words."""

    def __init__(self, trees: CodeTrees) -> None:
        self.trees, self.orders = trees, context_orders(trees)
        self.node, self.family, self.place = ROOT, ROOT, 0
        self.history, self.word, self.word_before = 0, 0, 0
        self.content = bytearray()
        self.hashes = self._hashed()

    def _hashed(self) -> list[int]:
        recent = [self.history & ((1 << 8 * order) - 1) for order in self.orders]
        contexts = [(last & WORD64) + SALT * (last >> 64) for last in recent]
        contexts += [self.word, self.word + SALT * self.word_before]
        return [(context * SPREAD + (k + 1) * SALT) & WORD64 for k, context in enumerate(contexts)]

    def advance(self, bit: int) -> None:
        tree = self.trees.children[self.trees.tree_of[self.history & 255]]
        self.node, self.place = tree[self.node][bit], 2 * self.place + 1 + bit
        if self.place >= (1 << LEVELS) - 1:
            self.family, self.place = self.node, 0
        if self.node < LEAF:
            return
        byte, self.node, self.family, self.place = self.node - LEAF, ROOT, ROOT, 0
        self.content.append(byte)
        self.history = (self.history << 8 | byte) & ((1 << 8 * max(self.orders)) - 1)
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
        trees: What a byte's bits are; without, as they stand in it.

    >>> mixer = ContextMixer(1, 12)
    >>> for bit in [0, 1] * 40:
    ...     _ = mixer.probs()
    ...     mixer.update([bit])
    >>> mixer.probs()[0] < WHOLE // 20
    True
    """

    def __init__(self, num_streams: int, slot_bits: int, trees: CodeTrees | None = None) -> None:
        assert 1 <= num_streams <= MOST_STREAMS
        trees = trees or CodeTrees()
        self.streams = [_Stream(trees) for _ in range(num_streams)]
        self._shift = 64 - slot_bits - CHECK_BITS
        self._slots: list[dict[int, tuple[int, tuple[int, int]]]] = [{} for _ in range(NUM_CONTEXTS)]
        self._weights: dict[int, list[int]] = {}
        self._seen: list[_Seen] = []
        self._met = 0  # bits

    @property
    def nodes(self) -> list[int]:
        """Where in its tree each stream stands."""
        return [stream.node for stream in self.streams]

    def content(self) -> bytes:
        """The bytes that came, one stream after the other."""
        return b"".join(stream.content for stream in self.streams)

    def probs(self, resting: object = None) -> list[int]:
        self._seen = [self._look(stream) for stream in self.streams]
        return [each.probability for each in self._seen]

    def _look(self, stream: _Stream) -> _Seen:
        log, squash = tables()
        # Nodes of a family are side by side, so that a byte's next decision mostly finds its slots in the cache.
        named = [(hashed ^ stream.family * NODE & WORD64) >> self._shift for hashed in stream.hashes]
        own = [(hashed >> self._shift + CHECK_BITS) % (1 << LEVELS) ^ stream.place for hashed in stream.hashes]
        slots = [(name >> CHECK_BITS + LEVELS << LEVELS) + place for name, place in zip(named, own)]
        checks = [name % (1 << CHECK_BITS) for name in named]
        found = [table.get(slot, (0, (0, 0))) for table, slot in zip(self._slots, slots)]
        counts = [held if check == expected else (0, 0) for (check, held), expected in zip(found, checks)]
        votes = [log[ones] - log[zeros] for zeros, ones in counts]
        # How many contexts have been met before decides which weights are used, and the kind of the last byte.
        chosen = KINDS[stream.history & 255] * (NUM_CONTEXTS + 1) + NUM_CONTEXTS - counts.count((0, 0))
        weights = self._weights.setdefault(chosen, [FIRST_WEIGHT] * NUM_CONTEXTS)
        score = sum(weight * vote for weight, vote in zip(weights, votes)) >> WEIGHT_BITS
        return _Seen(
            slots, checks, counts, votes, chosen, squash[min(max(score, -MOST_SCORE), MOST_SCORE) + MOST_SCORE]
        )

    def update(self, bits: Sequence[int] | np.ndarray, resting: Sequence[bool] | np.ndarray | None = None) -> None:
        """Every stream's bit, but for streams that rest: those stay where they are, and nothing is learnt from them."""
        rate = weight_rate(self._met)
        self._met += len(self.streams)
        gradients: dict[int, list[int]] = {}
        for index, (stream, seen) in enumerate(zip(self.streams, self._seen)):
            if resting is not None and resting[index]:
                continue
            bit = int(bits[index])  # NumPy's would overflow
            error, gradient = (bit << 16) - seen.probability, gradients.setdefault(seen.chosen, [0] * NUM_CONTEXTS)
            for k in range(NUM_CONTEXTS):
                gradient[k] += seen.votes[k] * error
                self._slots[k][seen.slots[k]] = seen.checks[k], after(seen.counts[k], bit)
            stream.advance(bit)
        for chosen, gradient in gradients.items():
            weights = self._weights[chosen]
            weights[:] = [weight + ((sum + (1 << rate - 1)) >> rate) for weight, sum in zip(weights, gradient)]


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
