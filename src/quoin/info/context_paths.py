"""The contexts of a whole text at once, for the encoder: it knows every byte beforehand, so that of context mixing only
what is learnt has to go step by step.

`ContextMixer` run over the same streams is the definition of `mixed_probs`.   n bytes, L streams, T steps, K contexts
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from quoin.info.code_trees import CodeTrees
from quoin.info.context_arrays import VectorizedMix, context_values
from quoin.info.context_mixing import (
    KINDS,
    LETTERS,
    NUM_CONTEXTS,
    SALT,
    SPREAD,
    WORD64,
    context_orders,
)

__all__ = ["Streams", "cut_streams", "mixed_probs"]

PAD = 16  # zeros before each stream: as many bytes as contexts look back, and none of them of the stream before
STEPS_AT_ONCE = 64  # whose slots are computed together, few enough to stay in the cache


class Streams(NamedTuple):
    """A text cut into streams. Each but the last has its bytes' decisions up to the first byte that ends after
    `quota` of them.
    """

    starts: np.ndarray  # (L + 1,): the first byte of each, and n
    counts: np.ndarray  # (L,): decisions of each
    quota: int
    bits: np.ndarray  # (T, L), zero where a stream rests
    resting: np.ndarray  # (T, L)
    steps: np.ndarray  # (T, L), where a decision is among all, of any stream
    before: np.ndarray  # (n,), the byte before, zero where a stream begins
    path: np.ndarray  # decisions as 2 node + bit
    symbols: np.ndarray  # of each decision, the byte that it belongs to


def cut_streams(content: np.ndarray, trees: CodeTrees, quota: int) -> Streams:  # (n,) uint8
    """All decisions of a text, in streams of `quota` decisions, or as many as end the byte."""
    lengths, paths = trees.paths
    tree_of, first = np.array(trees.tree_of), lengths[trees.tree_of[0]]
    before = np.concatenate([np.zeros(1, np.uint8), content[:-1]])
    num_decisions = lengths[tree_of[before], content]
    ends = np.cumsum(num_decisions)
    starts = [0]
    while starts[-1] < len(content):
        start = starts[-1]
        wanted = quota - first[content[start]] + ends[start]  # the first byte of a stream knows none before it
        starts.append(min(int(np.searchsorted(ends, wanted)), len(content) - 1) + 1)
    starts = np.array(starts)
    before[starts[:-1]] = 0
    num_decisions[starts[:-1]] = first[content[starts[:-1]]]
    counts = np.add.reduceat(num_decisions, starts[:-1])
    symbols = np.repeat(np.arange(len(content)), num_decisions)
    begins = np.cumsum(num_decisions) - num_decisions
    depths = np.arange(len(symbols)) - np.repeat(begins, num_decisions)
    rows = (tree_of[before] * 256 + content) * paths.shape[-1]  # of a table of paths
    path = paths.ravel().take(np.repeat(rows, num_decisions) + depths)
    number = np.arange(counts.max())[:, None]
    resting = number >= counts
    steps = np.where(resting, 0, number + begins[starts[:-1]])
    bits = np.where(resting, 0, (path & 1).take(steps))
    return Streams(starts, counts, quota, bits, resting, steps, before, path, symbols)


def mixed_probs(
    content: np.ndarray, trees: CodeTrees, streams: Streams, slot_bits: int, on_step: Callable[[int], None]
) -> np.ndarray:  # (T, L) uint16
    """P(1) of every decision, zero where a stream rests."""
    num_steps, num_streams = streams.bits.shape
    mix = VectorizedMix(num_streams, slot_bits)
    hashes = [mix.shifted(hashed) + start for hashed, start in zip(_hashes(content, trees, streams), mix.starts)]
    trees_of = np.array(trees.tree_of)[streams.before] * 256
    offsets = mix.offsets(trees).ravel().take(trees_of.take(streams.symbols) + (streams.path >> 1))
    sets = (np.array(KINDS) * (NUM_CONTEXTS + 1)).take(streams.before)
    probs = np.empty((num_steps, num_streams), np.uint16)
    for first in range(0, num_steps, STEPS_AT_ONCE):
        part = slice(first, first + STEPS_AT_ONCE)
        steps, resting = streams.steps[part], streams.resting[part]
        symbols, offset = streams.symbols.take(steps), offsets.take(steps)
        shape = len(steps), NUM_CONTEXTS, num_streams
        slots, keys = np.empty(shape, np.int64), np.empty(shape, np.uint16)
        for k, hashed in enumerate(hashes):
            mix.name(hashed.take(symbols) ^ offset, slots[:, k], keys[:, k])
        some_rest: list[bool] = np.any(resting, axis=1).tolist()
        np.copyto(slots, mix.nowhere, where=resting[:, None])
        for row, key, bits, chosen, rest, any_rest, out in zip(
            slots, keys, streams.bits[part], sets.take(symbols), resting, some_rest, probs[part]
        ):
            out[:] = mix.look(row, key, chosen)
            mix.learn(bits, rest if any_rest else None)
        on_step(first)
    probs[streams.resting] = 0
    return probs


def _hashes(content: np.ndarray, trees: CodeTrees, streams: Streams) -> list[np.ndarray]:  # K of (n,)
    """Of every byte its contexts' hashes, as a stream has them before it."""
    num_bytes = np.diff(streams.starts)
    padding = PAD * (1 + np.repeat(np.arange(len(num_bytes)), num_bytes))
    places = np.arange(len(content)) + padding
    padded = np.zeros(len(content) + PAD * len(num_bytes), np.uint8)
    padded[places] = content
    eights = np.lib.stride_tricks.sliding_window_view(padded, 8)
    history, earlier = (eights[places - back].view(">u8")[:, 0].astype(np.uint64) for back in (8, 16))
    word, word_before = _words(padded, places, places[streams.starts[:-1]].repeat(num_bytes))
    contexts = context_values(history, earlier, word, word_before, context_orders(trees))
    return [context * np.uint64(SPREAD) + np.uint64((k + 1) * SALT & WORD64) for k, context in enumerate(contexts)]


def _words(padded: np.ndarray, places: np.ndarray, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The word so far and the one before it at each place of a stream that begins at `begins`.

    A word is hashed by w = (w + letter) SPREAD, which is SPREAD^(q + 1) times the sum of letter_j SPREAD^-j over its
    places j up to q: a difference of running sums, modulo 2^64.
    """
    is_letter = np.array([byte in LETTERS for byte in range(256)])[padded]
    number = np.arange(len(padded))
    powers, inverses = (
        np.multiply.accumulate(np.full(len(padded), base, np.uint64)) for base in (SPREAD, pow(SPREAD, -1, 1 << 64))
    )
    letters = np.where(is_letter, padded | 32, 0).astype(np.uint64)
    sums = np.cumsum(letters * inverses * np.uint64(SPREAD), dtype=np.uint64)  # inverses begins with the power -1
    outside = np.maximum.accumulate(np.where(is_letter, 0, number))  # the last place that is in no word
    words = np.where(is_letter, (sums - sums[outside]) * powers, np.uint64(0))
    ended = np.zeros(len(padded), np.int64)
    ended[1:] = np.where((words[:-1] != 0) & ~is_letter[1:], number[1:], 0)
    last = np.maximum.accumulate(ended)[places - 1]  # place where a word was last seen to have ended
    return words[places - 1], np.where(last >= begins, words[np.maximum(last - 1, 0)], np.uint64(0))
