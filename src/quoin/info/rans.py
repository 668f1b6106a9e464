"""Asymmetric numeral systems (rANS): bits of many interleaved streams as one sequence of words, with context mixing.

A stream's state x holds all its bits: a bit of probability f / WHOLE, with c below it, makes x into (x // f) WHOLE + x
% f + c, and the decoder reads the bit off x % WHOLE and undoes the step. States stay in [2^24, 2^40): what runs over
goes out in words of 16 bits. The last bit is coded first, so the encoder asks the model for all distributions
beforehand and the decoder goes along with it.   L streams, T steps
"""

import struct
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from quoin.callbacks import ProgressCallback
from quoin.display import shown
from quoin.errors import UserError
from quoin.info.code_trees import ROOT, CodeTrees
from quoin.info.context_arrays import VectorizedContextMixer
from quoin.info.context_mixing import MOST_STREAMS, WHOLE, ContextMixer
from quoin.info.context_paths import Streams, cut_streams, mixed_probs

__all__ = ["RANSDecoder", "context_mixing_decode", "context_mixing_encode", "rans_encode", "rans_encode_definition"]

LEAST_STATE = 1 << 24  # 2^8 times WHOLE, so that the rounding in x // f costs some hundredths of a percent only
STATE_BYTES = 5
BLOCK = 1 << 21  # bytes coded with one mixer; what the encoder knows of them takes two hundred times as many
BYTES_PER_STREAM = 1 << 10  # a file has a stream for so many of its bytes
MOST_TIMES_SMALLER = (
    WHOLE  # a bit costs log2(WHOLE / (WHOLE - 1)) at least: a shorter code is none, and would keep the decoder busy
)
TREES_FROM = 1 << 15  # bytes of a block that is worth a table of code trees
_SIZES = struct.Struct("<HHII")  # of the table, of streams, of decisions in a stream, of those in the last
MOST_DECISIONS = 255  # of a byte
FEW_STREAMS = 2  # up to here Python's integers are quicker than NumPy's arrays


def rans_encode_definition(bits: Sequence[Sequence[int]], probs: Sequence[Sequence[int]]) -> bytes:  # T lists of L
    """Each step's bits under P(1) = p / WHOLE, last step first: the final states, then the words in
    the decoder's order.

    A bit that is certain (p = 0 or WHOLE) leaves no trace.

    Args:
        bits: For each of T steps the bits of L streams.
        probs: p of each, whole numbers from 0 to WHOLE.
    """
    num_streams = len(bits[0])
    states, words = [LEAST_STATE] * num_streams, []
    for step_bits, step_probs in zip(reversed(bits), reversed(probs)):
        for stream in reversed(range(num_streams)):
            zero = WHOLE - step_probs[stream]
            below, frequency = (zero, WHOLE - zero) if step_bits[stream] else (0, zero)
            if states[stream] >= frequency << 24:
                words.append(states[stream] & 0xFFFF)
                states[stream] >>= 16
            states[stream] = (states[stream] // frequency) * WHOLE + states[stream] % frequency + below
    final = b"".join(state.to_bytes(STATE_BYTES, "little") for state in states)
    return final + b"".join(word.to_bytes(2, "little") for word in reversed(words))


def rans_encode(bits: np.ndarray, probs: np.ndarray) -> bytes:  # (T, L), (T, L)
    """`rans_encode_definition`, all streams of a step at once.

    Args:
        bits: (T, L), 0 or 1.
        probs: (T, L), whole numbers from 0 to WHOLE.
    """
    # In floats, whose arithmetic is quicker and here exact: whole numbers below 2^53, and x / f < 2^24 is 0 or more and
    # at least 2^-16 below the next whole number, far more than it is rounded by.
    one, zero = bits != 0, WHOLE - probs.astype(np.float64)
    frequencies, below = np.where(one, WHOLE - zero, zero), zero * one
    limits, others = frequencies * (1 << 24), WHOLE - frequencies
    over, before = np.empty(bits.shape, bool), np.empty(bits.shape)
    states = np.full(bits.shape[1], float(LEAST_STATE))
    for step in range(len(bits) - 1, -1, -1):
        before[step] = states
        np.greater_equal(states, limits[step], out=over[step])
        np.copyto(states, np.floor(states * 2.0**-16), where=over[step])
        quotients = np.floor(states / frequencies[step])
        quotients *= others[step]  # (x // f) WHOLE + x % f = x + (x // f) (WHOLE - f)
        states += quotients
        states += below[step]
    final = states.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :STATE_BYTES]
    return final.tobytes() + (before[over].astype(np.int64) & 0xFFFF).astype("<u2").tobytes()


@shown
class RANSDecoder:
    """Reads what `rans_encode` wrote, a step at a time: `pop(probs)` gives every stream's bit."""

    def __init__(self, data: bytes, num_streams: int) -> None:
        start = STATE_BYTES * num_streams
        if len(data) < start or (len(data) - start) % 2:
            raise _damaged()
        final = np.zeros((num_streams, 8), np.uint8)
        final[:, :STATE_BYTES] = np.frombuffer(data, np.uint8, start).reshape(num_streams, STATE_BYTES)
        self._states = final.view("<u8")[:, 0].astype(np.int64)
        self._words, self._next = np.frombuffer(data, "<u2", offset=start).astype(np.int64), 0
        if (self._states < LEAST_STATE).any():
            raise _damaged()

    def pop(self, probs: np.ndarray) -> np.ndarray:  # (L,) -> (L,)
        zero = WHOLE - probs
        position = self._states & (WHOLE - 1)
        one = position >= zero
        self._states = np.where(one, probs, zero) * (self._states >> 16) + position - zero * one
        short = self._states < LEAST_STATE
        if count := np.count_nonzero(short):
            words = self._words[self._next : self._next + count]
            if len(words) < count:
                raise _damaged()
            self._states[short] = self._states[short] << 16 | words
            self._next += count
        return one.astype(np.int64)

    def finish(self) -> None:
        """Raise an error for a stream that does not end where its encoder began."""
        if self._next != len(self._words) or (self._states != LEAST_STATE).any():
            raise _damaged()


def context_mixing_encode(content: bytes, on_progress: ProgressCallback = lambda done, total: None) -> bytes:
    """`content` by context mixing: for each block its sizes, its table of code trees if it is large, and the code;
    nothing for nothing.

    Args:
        on_progress: Called with how much is done and of how much.
    """
    coded_blocks = []
    for start, size in _blocks(len(content)):
        block = np.frombuffer(content, np.uint8, size, start)
        table = CodeTrees.table_of(block) if size >= TREES_FROM else b""
        trees = CodeTrees(table)
        num_streams, slot_bits = _layout(size)
        streams = cut_streams(block, trees, _quota(block, trees, num_streams))
        num_steps, num_streams = streams.bits.shape

        def on_step(step: int, start: int = start, size: int = size, num_steps: int = num_steps) -> None:
            on_progress(start + step * size // num_steps, len(content))

        if num_streams > FEW_STREAMS:
            probs = mixed_probs(block, trees, streams, slot_bits, on_step)
        else:
            probs = _stepped_probs(ContextMixer(num_streams, slot_bits, trees), streams, on_step)
        code = rans_encode(streams.bits, probs)
        coded_blocks.append(len(code).to_bytes(4, "little"))
        if table:
            coded_blocks += [_SIZES.pack(len(table), num_streams, streams.quota, streams.counts[-1]), table]
        coded_blocks.append(code)
    on_progress(len(content), len(content))
    return b"".join(coded_blocks)


def _stepped_probs(mixer: ContextMixer, streams: Streams, on_step: Callable[[int], None]) -> np.ndarray:
    probs = np.zeros(streams.bits.shape, np.uint16)
    for step, (bits, resting) in enumerate(zip(streams.bits, streams.resting)):
        probs[step] = np.where(resting, 0, mixer.probs())
        mixer.update(bits, resting)
        if step % 512 == 0:
            on_step(step)
    return probs


def context_mixing_decode(code: bytes, length: int, on_progress: ProgressCallback = lambda done, total: None) -> bytes:
    """The `length` bytes that `context_mixing_encode` made `code` of; bytes that are no such code raise an error where
    that can be detected.

    Args:
        on_progress: Called with how much is done and of how much.
    """
    if length > MOST_TIMES_SMALLER * len(code):
        raise _damaged()
    blocks, position = [], 0
    for start, size in _blocks(length):
        code_size, position = int.from_bytes(code[position : position + 4], "little"), position + 4
        (num_streams, slot_bits), table = _layout(size), b""
        quota = 8 * -(-size // num_streams)
        num_streams = -(-8 * size // quota)
        last_count = 8 * size - quota * (num_streams - 1)
        if size >= TREES_FROM:
            if position + _SIZES.size > len(code):
                raise _damaged()
            table_size, num_streams, quota, last_count = _SIZES.unpack_from(code, position)
            position += _SIZES.size + table_size
            table = code[position - table_size : position]
            most = MOST_DECISIONS * size  # no more work than a true code of this length may be
            if not (1 <= num_streams <= MOST_STREAMS and (num_streams - 1) * quota <= most and last_count <= most):
                raise _damaged()
        position += code_size
        if position > len(code):
            raise _damaged()
        try:
            trees = CodeTrees(table)
        except ValueError:
            raise _damaged() from None
        decoder = RANSDecoder(code[position - code_size : position], num_streams)
        mixer = (ContextMixer if num_streams <= FEW_STREAMS else VectorizedContextMixer)(num_streams, slot_bits, trees)
        step, is_last = 0, np.arange(num_streams) == num_streams - 1
        while True:
            resting = None
            if step >= min(quota, last_count):
                resting = np.where(is_last, step >= last_count, (step >= quota) & (np.asarray(mixer.nodes) == ROOT))
                if resting.all():
                    break
            step_probs = np.asarray(mixer.probs(resting))
            if resting is not None:
                step_probs = np.where(resting, 0, step_probs)
            mixer.update(decoder.pop(step_probs), resting)
            step += 1
            if step % 512 == 0:
                on_progress(start + min(step * size // max(quota, 1), size), length)
        decoder.finish()
        blocks.append(mixer.content())
        if len(blocks[-1]) != size:
            raise _damaged()
    if position != len(code):
        raise _damaged()
    on_progress(length, length)
    return b"".join(blocks)


def _blocks(length: int) -> Iterator[tuple[int, int]]:
    return ((start, min(BLOCK, length - start)) for start in range(0, length, BLOCK))


def _layout(size: int) -> tuple[int, int]:
    """For a block of `size` bytes: the most streams, and the bits that name a slot: one for each bit of the block, if
    they are not too many. Text meets about that many in its longer contexts.
    """
    num_streams = min(max(size // BYTES_PER_STREAM, 1), MOST_STREAMS)
    return num_streams, min(max((8 * size - 1).bit_length(), 8), 22)


def _quota(block: np.ndarray, trees: CodeTrees, num_streams: int) -> int:
    """Decisions of a stream, so many that `num_streams` are enough."""
    if trees.is_plain:
        return 8 * -(-len(block) // num_streams)
    lengths, tree_of = trees.paths[0], np.array(trees.tree_of)
    total = int(lengths[tree_of[block[:-1]], block[1:]].sum())
    return total // num_streams + 1 + int(lengths.max())


def _damaged() -> UserError:
    return UserError("expected the code of context mixing, got bytes that are none; they are damaged or cut")
