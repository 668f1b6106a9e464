"""Coding the bits of many lanes into one stream of words: asymmetric numeral systems, and the context mix on top of it.

A lane's state x holds all that it has to say: a bit of probability f / WHOLE, with c below it, turns x into (x // f) WHOLE + x % f + c,
and the decoder reads the bit off x % WHOLE and undoes the step. States stay in [2^24, 2^40): what runs over goes to the stream in words
of 16 bits. The last bit is coded first, so the encoder asks the model for all laws beforehand and the decoder goes along with it.   L
lanes, T steps
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from quoin.errors import Mistake
from quoin.info.context import MOST_LANES, WHOLE, ContextMix, LaneMix

__all__ = ["LaneDecoder", "lanes_encode", "lanes_encode_definition", "mix_decode", "mix_encode"]

LEAST_STATE = 1 << 24  # 2^8 times WHOLE, so that the rounding in x // f costs some hundredths of a percent only
STATE_BYTES = 5
BLOCK = 1 << 22  # bytes coded with one mix; its laws take 16 times as many while they wait
LANE = 1 << 10  # a file has a lane for so many of its bytes
MOST_TIMES_SMALLER = WHOLE  # a bit costs log2(WHOLE / (WHOLE - 1)) at least: a shorter code is none, and would keep the decoder busy
FEW_LANES = 2  # up to here Python's integers are quicker than NumPy's arrays

Tell = Callable[[int, int], None]  # so many bytes are done, of so many


def lanes_encode_definition(bits: Sequence[Sequence[int]], laws: Sequence[Sequence[int]]) -> bytes:  # T lists of L
    """Each step's bits under P(1) = law / WHOLE, last step first: the final states, then the words in the decoder's order.

    A bit that is certain (a law of 0, or of WHOLE) leaves no trace.
    """
    num_lanes = len(bits[0])
    states, words = [LEAST_STATE] * num_lanes, []
    for step_bits, step_laws in zip(reversed(bits), reversed(laws)):
        for lane in reversed(range(num_lanes)):
            zero = WHOLE - step_laws[lane]
            below, share = (zero, WHOLE - zero) if step_bits[lane] else (0, zero)
            if states[lane] >= share << 24:
                words.append(states[lane] & 0xFFFF)
                states[lane] >>= 16
            states[lane] = (states[lane] // share) * WHOLE + states[lane] % share + below
    final = b"".join(state.to_bytes(STATE_BYTES, "little") for state in states)
    return final + b"".join(word.to_bytes(2, "little") for word in reversed(words))


def lanes_encode(bits: np.ndarray, laws: np.ndarray) -> bytes:  # (T, L), (T, L)
    """`lanes_encode_definition`, all lanes of a step at once."""
    states, words = np.full(bits.shape[1], LEAST_STATE, np.int64), []
    for bit, law in zip(bits[::-1], laws[::-1]):
        one, zero = bit != 0, WHOLE - law.astype(np.int64)
        share = np.where(one, law, zero)
        over = states >= share << 24
        words.append((states[over] & 0xFFFF).astype("<u2"))
        states = np.where(over, states >> 16, states)
        quotient, rest = np.divmod(states, share)
        states = quotient * WHOLE + rest + zero * one
    final = states.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :STATE_BYTES]
    return final.tobytes() + b"".join(each.tobytes() for each in reversed(words))


class LaneDecoder:
    """Reads what `lanes_encode` wrote, a step at a time: `pop(law)` gives every lane's bit."""

    def __init__(self, data: bytes, num_lanes: int) -> None:
        start = STATE_BYTES * num_lanes
        if len(data) < start or (len(data) - start) % 2:
            raise _damaged()
        final = np.zeros((num_lanes, 8), np.uint8)
        final[:, :STATE_BYTES] = np.frombuffer(data, np.uint8, start).reshape(num_lanes, STATE_BYTES)
        self._states = final.view("<u8")[:, 0].astype(np.int64)
        self._words, self._next = np.frombuffer(data, "<u2", offset=start).astype(np.int64), 0
        if (self._states < LEAST_STATE).any():
            raise _damaged()

    def pop(self, law: np.ndarray) -> np.ndarray:  # (L,) -> (L,)
        zero = WHOLE - law
        place = self._states & (WHOLE - 1)
        one = place >= zero
        self._states = np.where(one, law, zero) * (self._states >> 16) + place - zero * one
        short = self._states < LEAST_STATE
        if count := np.count_nonzero(short):
            words = self._words[self._next : self._next + count]
            if len(words) < count:
                raise _damaged()
            self._states[short] = self._states[short] << 16 | words
            self._next += count
        return one.astype(np.int64)

    def finish(self) -> None:
        """Refuse a stream that does not end where its encoder began."""
        if self._next != len(self._words) or (self._states != LEAST_STATE).any():
            raise _damaged()


def mix_encode(content: bytes, tell: Tell = lambda done, total: None) -> bytes:
    """`content` under the context mix: for each block the size of its code (4 bytes) and the code; nothing for nothing."""
    codes = []
    for start, size in _blocks(len(content)):
        block = np.frombuffer(content, np.uint8, size, start)
        num_lanes, num_steps, last = _layout(size)
        # The first `last` lanes have a byte in the last step, the others have had all theirs.
        padded = np.zeros((num_lanes, num_steps), np.uint8)
        padded[:last] = block[: last * num_steps].reshape(last, num_steps)
        padded[last:, : num_steps - 1] = block[last * num_steps :].reshape(num_lanes - last, num_steps - 1)
        bits = np.unpackbits(padded, axis=1).T  # (8 num_steps, num_lanes)
        laws = np.empty(bits.shape, np.uint16)
        mix = _mix(size)
        for step, step_bits in enumerate(bits):
            laws[step] = mix.law()
            mix.update(step_bits.astype(np.int64))
            if step % 512 == 0:
                tell(start + step * num_lanes // 8, len(content))
        laws[-8:, last:] = 0
        code = lanes_encode(bits, laws)
        codes += [len(code).to_bytes(4, "little"), code]
    tell(len(content), len(content))
    return b"".join(codes)


def mix_decode(code: bytes, length: int, tell: Tell = lambda done, total: None) -> bytes:
    """The `length` bytes that `mix_encode` made `code` of; bytes that are no such code are refused as far as they can be told."""
    if length > MOST_TIMES_SMALLER * len(code):
        raise _damaged()
    blocks, place = [], 0
    for start, size in _blocks(length):
        end = place + 4 + int.from_bytes(code[place : place + 4], "little")
        if end > len(code):
            raise _damaged()
        num_lanes, num_steps, last = _layout(size)
        decoder, mix = LaneDecoder(code[place + 4 : end], num_lanes), _mix(size)
        bits = np.zeros((8 * num_steps, num_lanes), np.uint8)
        for step in range(8 * num_steps):
            law = np.asarray(mix.law())
            if step >= 8 * (num_steps - 1):
                law = np.where(np.arange(num_lanes) < last, law, 0)
            bits[step] = decoded = decoder.pop(law)
            mix.update(decoded)
            if step % 512 == 0:
                tell(start + step * num_lanes // 8, length)
        decoder.finish()
        padded = np.packbits(bits.T, axis=1)
        blocks += [padded[:last].tobytes(), padded[last:, : num_steps - 1].tobytes()]
        place = end
    if place != len(code):
        raise _damaged()
    tell(length, length)
    return b"".join(blocks)


def _blocks(length: int) -> Iterator[tuple[int, int]]:
    return ((start, min(BLOCK, length - start)) for start in range(0, length, BLOCK))


def _layout(size: int) -> tuple[int, int, int]:
    """For a block of `size` bytes: lanes, bytes of the longest, and how many are as long as that; the others have one less."""
    num_lanes = min(max(size // LANE, 1), MOST_LANES)
    num_steps = -(-size // num_lanes)
    return num_lanes, num_steps, size - num_lanes * (num_steps - 1)


def _mix(size: int) -> ContextMix | LaneMix:
    """A slot for each bit of the block, if they are not too many: text meets about that many in its longer contexts."""
    num_lanes, slot_bits = _layout(size)[0], min(max((8 * size - 1).bit_length(), 8), 22)
    return ContextMix(num_lanes, slot_bits) if num_lanes <= FEW_LANES else LaneMix(num_lanes, slot_bits)


def _damaged() -> Mistake:
    return Mistake("expected the code of a context mix, came bytes that are none; they are damaged or cut")
