"""Context mixing over many streams at once, on NumPy's arrays: `ContextMixer` at full speed.

Tables hold numbers of pairs of counts instead of pairs, so that a step of all streams is a few lookups.
K contexts, L streams, S pairs of counts
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from quoin.display import shown
from quoin.info.code_trees import LEAF, LEVELS, ROOT, CodeTrees
from quoin.info.context_mixing import (
    FIRST_WEIGHT,
    KINDS,
    LETTERS,
    MOST_SCORE,
    MOST_STREAMS,
    NODE,
    NUM_CONTEXTS,
    NUM_KINDS,
    NUMBER_BITS,
    SALT,
    SPREAD,
    WEIGHT_BITS,
    WHOLE,
    WORD64,
    after,
    context_orders,
    tables,
    weight_rate,
)

__all__ = ["VectorizedContextMixer", "VectorizedMix", "context_values"]


class States(NamedTuple):
    """The pairs of counts that can be, numbered from 0 with (0, 0) last, as arrays."""

    votes: np.ndarray  # (S,)
    next: np.ndarray  # (2 S,), after a zero, then after a one
    fresh: int  # the number of (0, 0)


KEY = (1 << NUMBER_BITS) - 1  # a slot holds the number of its counts, exclusive or the check before as many ones


@cache
def states() -> States:
    pairs = [after((0, 0), 0), after((0, 0), 1)]
    numbers = {counts: number for number, counts in enumerate(pairs)}
    for counts in pairs:
        for bit in (0, 1):
            if (new := after(counts, bit)) not in numbers:
                numbers[new] = len(pairs)
                pairs.append(new)
    fresh = len(pairs)
    assert fresh <= KEY
    pairs.append((0, 0))
    log = tables().log
    votes = [log[ones] - log[zeros] for zeros, ones in pairs]
    following = [numbers[after(counts, bit)] for bit in (0, 1) for counts in pairs]
    return States(np.array(votes, np.float64), np.array(following, np.uint16), fresh)


@cache
def squash_array() -> np.ndarray:
    return np.array(tables().squash, np.int64)


class VectorizedMix:
    """Slots and weights of all contexts on arrays, whoever names the slots: `look` is P(1), `learn` takes the bits.

    Votes and weights are whole numbers in floats, which are quicker to multiply and to sum. What is made of them stays
    below 2^53, so it is exact in any order.
    """

    def __init__(self, num_streams: int, slot_bits: int) -> None:
        self.nowhere = NUM_CONTEXTS << slot_bits  # a slot that resting streams may write to
        self._shift = np.uint64(64 - slot_bits - 16)
        self.starts = np.arange(NUM_CONTEXTS) << slot_bits + 16
        self._slots = np.zeros(self.nowhere + 1, np.uint16)
        self._votes, self._next, fresh = states()
        self._fresh = np.array(fresh, np.uint16)
        self._squash = squash_array()
        num_sets = NUM_KINDS * (NUM_CONTEXTS + 1)
        self._weights = np.full(NUM_CONTEXTS * num_sets, float(FIRST_WEIGHT))
        self._weight_starts = (np.arange(NUM_CONTEXTS) * num_sets)[:, None]
        self._met, self._num_streams = 0, num_streams

    def shifted(self, hashes: np.ndarray) -> np.ndarray:
        """The bits of hashes that name slots, and sixteen below them."""
        return (hashes >> self._shift).view(np.int64)

    def offsets(self, trees: CodeTrees) -> np.ndarray:  # (trees, 256)
        """What a node does to the place of its context."""
        families = trees.families
        hashed = self.shifted((families >> LEVELS).astype(np.uint64) * np.uint64(NODE))
        return hashed >> 16 + LEVELS << 16 + LEVELS | hashed & 0xFFFF | families % (1 << LEVELS) << 16

    def name(self, places: np.ndarray, slots: np.ndarray, keys: np.ndarray) -> None:
        """Slots and keys into arrays, of shifted hashes of contexts with their `starts` added and nodes' offsets."""
        np.bitwise_or(places.astype(np.uint16), np.uint16(KEY), out=keys)
        np.right_shift(places, 16, out=slots)

    def look(self, slots: np.ndarray, keys: np.ndarray, sets: np.ndarray) -> np.ndarray:  # (K, L), (K, L), (L,) -> (L,)
        """P(1); `sets` is the first of the sets of weights for the last byte's kind."""
        self._places, self._keys = slots, keys
        self._now = self._slots.take(slots)
        self._now ^= keys  # of another check, or never used: KEY or more
        np.minimum(self._now, self._fresh, out=self._now)
        self._vote = self._votes.take(self._now)
        chosen = sets + np.add.reduce((self._now != self._fresh).view(np.int8), dtype=np.int8)
        self._weighed = self._weight_starts + chosen
        products = self._weights.take(self._weighed)
        products *= self._vote
        score = np.add.reduce(products)
        score *= 2.0**-WEIGHT_BITS
        score = np.floor(score).astype(np.int64)
        score += MOST_SCORE
        self._probability = self._squash.take(score, mode="clip")
        return self._probability

    def learn(self, bits: np.ndarray, resting: np.ndarray | None = None) -> None:  # (L,)
        rate = weight_rate(self._met)
        self._met += self._num_streams
        error = bits * float(WHOLE)
        error -= self._probability
        if resting is not None:  # the caller has sent those to `nowhere`
            error[resting] = 0
        gradient = np.bincount(self._weighed.ravel(), (self._vote * error).ravel(), len(self._weights))
        gradient *= 2.0**-rate
        gradient += 0.5
        self._weights += np.floor(gradient, out=gradient)
        # Where a slot stands twice NumPy keeps the last.
        self._slots[self._places] = self._next.take(self._now + bits * len(self._votes)) ^ self._keys


@shown
class VectorizedContextMixer:
    """`ContextMixer` on arrays, a row for each context and a column for each stream: quicker from a few streams on.

    Args:
        num_streams: Sequences of bits that are predicted side by side, at most `MOST_STREAMS`.
        slot_bits: Each context has a hash table of 2^slot_bits slots.
        trees: What a byte's bits are; without, as they stand in it.
    """

    def __init__(self, num_streams: int, slot_bits: int, trees: CodeTrees | None = None) -> None:
        assert 1 <= num_streams <= MOST_STREAMS
        trees = trees or CodeTrees()
        self._mix = VectorizedMix(num_streams, slot_bits)
        self._children = trees.child_array.ravel()
        self._tree_of = np.array(trees.tree_of, np.int64) << 9
        self._is_letter = np.array([byte in LETTERS for byte in range(256)])
        self._orders = context_orders(trees)
        self._sets_of = np.array(KINDS) * (NUM_CONTEXTS + 1)
        self.nodes = np.full(num_streams, ROOT)
        self._tree, self._sets = (np.full(num_streams, table[0]) for table in (self._tree_of, self._sets_of))
        self._history, self._earlier, self._word, self._word_before = np.zeros((4, num_streams), np.uint64)
        self._offsets = self._mix.offsets(trees).ravel()
        self._places = np.empty((NUM_CONTEXTS, num_streams), np.int64)
        self._hash(np.arange(num_streams))
        self._ended: list[np.ndarray] = []
        self._bytes: list[np.ndarray] = []

    def _hash(self, ended: np.ndarray) -> None:
        history, earlier = self._history[ended], self._earlier[ended]
        words = self._word[ended], self._word_before[ended]
        contexts = context_values(history, earlier, *words, self._orders)
        for k, context in enumerate(contexts):
            hashed = context * np.uint64(SPREAD) + np.uint64((k + 1) * SALT & WORD64)
            self._places[k, ended] = self._mix.shifted(hashed) + self._mix.starts[k]

    def probs(self, resting: np.ndarray | None = None) -> np.ndarray:
        offset = self._offsets.take((self._tree >> 1) + self.nodes)
        slots, keys = np.empty_like(self._places), np.empty(self._places.shape, np.uint16)
        self._mix.name(self._places ^ offset, slots, keys)
        if resting is not None:
            slots[:, resting] = self._mix.nowhere
        return self._mix.look(slots, keys, self._sets)

    def update(self, bits: np.ndarray, resting: np.ndarray | None = None) -> None:
        """As `ContextMixer.update`; streams that rest must have been named to `probs` too."""
        self._mix.learn(bits, resting)
        moved = self._children.take(self._tree + 2 * self.nodes + bits)
        self.nodes = moved if resting is None else np.where(resting, self.nodes, moved)
        ended = np.flatnonzero(self.nodes >= LEAF)
        if len(ended):
            self._advance(ended, self.nodes[ended] - LEAF)

    def content(self) -> bytes:
        """The bytes that came, one stream after the other."""
        if not self._ended:
            return b""
        order = np.argsort(np.concatenate(self._ended), kind="stable")
        return np.concatenate(self._bytes)[order].astype(np.uint8).tobytes()

    def _advance(self, ended: np.ndarray, byte: np.ndarray) -> None:
        self._ended.append(ended)
        self._bytes.append(byte)
        self.nodes[ended], self._tree[ended], self._sets[ended] = (
            ROOT,
            self._tree_of.take(byte),
            self._sets_of.take(byte),
        )
        letter, word = self._is_letter.take(byte), self._word[ended]
        self._word_before[ended] = np.where(~letter & (word != 0), word, self._word_before[ended])
        grown = (word + (byte | 32).view(np.uint64)) * np.uint64(SPREAD)
        self._word[ended] = np.where(letter, grown, np.uint64(0))
        history = self._history[ended]
        self._earlier[ended] = self._earlier[ended] << np.uint64(8) | history >> np.uint64(56)
        self._history[ended] = history << np.uint64(8) | byte.view(np.uint64)
        self._hash(ended)


def context_values(
    history: np.ndarray, earlier: np.ndarray, word: np.ndarray, word_before: np.ndarray, orders: tuple[int, ...]
) -> list[np.ndarray]:
    """The contexts as numbers, of the last eight bytes, the eight before, and the words."""
    last = [history & np.uint64((1 << 8 * min(order, 8)) - 1) for order in orders]
    far = [earlier & np.uint64((1 << 8 * (order - 8)) - 1) if order > 8 else None for order in orders]
    recent = [near if before is None else near + np.uint64(SALT) * before for near, before in zip(last, far)]
    return [*recent, word, word + np.uint64(SALT) * word_before]
