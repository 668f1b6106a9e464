"""Asymmetric numeral systems (rANS): bits of many interleaved streams as one sequence of words, with context mixing.

A stream's state x holds all its bits: a bit of probability f / WHOLE, with c below it, makes x into (x // f) WHOLE + x
% f + c, and the decoder reads the bit off x % WHOLE and undoes the step. States stay in [2^24, 2^40): what runs over
goes out in words of 16 bits. The last bit is coded first, so the encoder asks the model for all distributions
beforehand and the decoder goes along with it.   L streams, T steps
"""

from collections.abc import Iterator, Sequence

import numpy as np

from quoin.callbacks import ProgressCallback
from quoin.display import shown
from quoin.errors import UserError
from quoin.info.context_mixing import MOST_STREAMS, WHOLE, ContextMixer, VectorizedContextMixer

__all__ = ["RANSDecoder", "context_mixing_decode", "context_mixing_encode", "rans_encode", "rans_encode_definition"]

LEAST_STATE = 1 << 24  # 2^8 times WHOLE, so that the rounding in x // f costs some hundredths of a percent only
STATE_BYTES = 5
BLOCK = 1 << 22  # bytes coded with one mixer; its probabilities take 16 times as many while they wait
BYTES_PER_STREAM = 1 << 10  # a file has a stream for so many of its bytes
MOST_TIMES_SMALLER = (
    WHOLE  # a bit costs log2(WHOLE / (WHOLE - 1)) at least: a shorter code is none, and would keep the decoder busy
)
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
    states, words = np.full(bits.shape[1], LEAST_STATE, np.int64), []
    for bit, step_probs in zip(bits[::-1], probs[::-1]):
        one, zero = bit != 0, WHOLE - step_probs.astype(np.int64)
        frequency = np.where(one, step_probs, zero)
        over = states >= frequency << 24
        words.append((states[over] & 0xFFFF).astype("<u2"))
        states = np.where(over, states >> 16, states)
        quotient, rest = np.divmod(states, frequency)
        states = quotient * WHOLE + rest + zero * one
    final = states.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :STATE_BYTES]
    return final.tobytes() + b"".join(each.tobytes() for each in reversed(words))


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
    """`content` by context mixing: for each block the size of its code (4 bytes) and the code; nothing for nothing.

    Args:
        on_progress: Called with how much is done and of how much.
    """
    coded_blocks = []
    for start, size in _blocks(len(content)):
        block = np.frombuffer(content, np.uint8, size, start)
        num_streams, num_steps, last = _layout(size)
        # The first `last` streams have a byte in the last step, the others have had all theirs.
        padded = np.zeros((num_streams, num_steps), np.uint8)
        padded[:last] = block[: last * num_steps].reshape(last, num_steps)
        padded[last:, : num_steps - 1] = block[last * num_steps :].reshape(num_streams - last, num_steps - 1)
        bits = np.unpackbits(padded, axis=1).T  # (8 num_steps, num_streams)
        probs = np.empty(bits.shape, np.uint16)
        mixer = _mixer(size)
        for step, step_bits in enumerate(bits):
            probs[step] = mixer.probs()
            mixer.update(step_bits.astype(np.int64))
            if step % 512 == 0:
                on_progress(start + step * num_streams // 8, len(content))
        probs[-8:, last:] = 0
        code = rans_encode(bits, probs)
        coded_blocks += [len(code).to_bytes(4, "little"), code]
    on_progress(len(content), len(content))
    return b"".join(coded_blocks)


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
        end = position + 4 + int.from_bytes(code[position : position + 4], "little")
        if end > len(code):
            raise _damaged()
        num_streams, num_steps, last = _layout(size)
        decoder, mixer = RANSDecoder(code[position + 4 : end], num_streams), _mixer(size)
        bits = np.zeros((8 * num_steps, num_streams), np.uint8)
        for step in range(8 * num_steps):
            step_probs = np.asarray(mixer.probs())
            if step >= 8 * (num_steps - 1):
                step_probs = np.where(np.arange(num_streams) < last, step_probs, 0)
            bits[step] = decoded = decoder.pop(step_probs)
            mixer.update(decoded)
            if step % 512 == 0:
                on_progress(start + step * num_streams // 8, length)
        decoder.finish()
        padded = np.packbits(bits.T, axis=1)
        blocks += [padded[:last].tobytes(), padded[last:, : num_steps - 1].tobytes()]
        position = end
    if position != len(code):
        raise _damaged()
    on_progress(length, length)
    return b"".join(blocks)


def _blocks(length: int) -> Iterator[tuple[int, int]]:
    return ((start, min(BLOCK, length - start)) for start in range(0, length, BLOCK))


def _layout(size: int) -> tuple[int, int, int]:
    """For a block of `size` bytes: streams, bytes of the longest, and how many are as long as that; the others
    have one less.
    """
    num_streams = min(max(size // BYTES_PER_STREAM, 1), MOST_STREAMS)
    num_steps = -(-size // num_streams)
    return num_streams, num_steps, size - num_streams * (num_steps - 1)


def _mixer(size: int) -> ContextMixer | VectorizedContextMixer:
    """A slot for each bit of the block, if they are not too many: text meets about that many in its longer contexts."""
    num_streams, slot_bits = _layout(size)[0], min(max((8 * size - 1).bit_length(), 8), 22)
    return (
        ContextMixer(num_streams, slot_bits)
        if num_streams <= FEW_STREAMS
        else VectorizedContextMixer(num_streams, slot_bits)
    )


def _damaged() -> UserError:
    return UserError("expected the code of context mixing, got bytes that are none; they are damaged or cut")
