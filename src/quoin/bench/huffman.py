"""The benchmark `huffman`: count the bytes of a message, build the code, encode and decode; beside a coder of heapq,
strings and dicts.

The peer's encoder is the quickest that plain Python has, one join and one conversion of base two. Its decoder is the
usual one, which grows a word bit by bit until it is a codeword, and in a second run a regular expression of all
codewords.
"""

import heapq
import re
from collections import Counter
from collections.abc import Callable

import numpy as np

from quoin.bench.worker import Repeats

__all__ = ["by_dict", "by_pattern", "quoin"]

SIZE = 1_000_000  # bytes
KINDS = 96  # as many as are printable; the r-th is sampled in proportion to 1/r, as words and letters roughly are


def message() -> bytes:
    weights = 1 / np.arange(1, KINDS + 1)
    return np.random.default_rng(0).choice(KINDS, size=SIZE, p=weights / weights.sum()).astype(np.uint8).tobytes()


def quoin(repeats: Repeats) -> dict[str, float]:
    import torch  # here, so that the peers' processes do without

    from quoin.info import huffman_code

    torch.set_num_threads(repeats.threads)
    given = message()

    def round_trip() -> tuple[bytes, bytes]:
        counts = np.bincount(np.frombuffer(given, dtype=np.uint8), minlength=256)
        code = huffman_code(torch.from_numpy(counts / SIZE))
        sent = code.encode(given)
        return sent, code.decode(sent, SIZE).to(torch.uint8).numpy().tobytes()

    return _figures(given, *repeats.timed(round_trip))


def by_dict(repeats: Repeats) -> dict[str, float]:
    return _heapq(repeats, _word_by_word)


def by_pattern(repeats: Repeats) -> dict[str, float]:
    return _heapq(repeats, _pattern)


def _heapq(repeats: Repeats, decoded: Callable[[str, dict[str, int]], bytes]) -> dict[str, float]:
    given = message()

    def round_trip() -> tuple[bytes, bytes]:
        words = _codewords(given)
        bits = "".join([words[byte] for byte in given])
        filled = len(bits) + -len(bits) % 8
        sent = int(bits.ljust(filled, "0"), 2).to_bytes(filled // 8)
        read = f"{int.from_bytes(sent):0{8 * len(sent)}b}"
        return sent, decoded(read, {word: byte for byte, word in words.items()})[:SIZE]

    return _figures(given, *repeats.timed(round_trip))


def _codewords(given: bytes) -> dict[int, str]:
    trees: list[tuple[int, int, tuple[int, ...]]] = [(count, byte, (byte,)) for byte, count in Counter(given).items()]
    heapq.heapify(trees)
    words = {byte: "" for _, byte, _ in trees}
    while len(trees) > 1:
        first, second = heapq.heappop(trees), heapq.heappop(trees)
        for bit, (_, _, held) in zip("01", (first, second)):
            for byte in held:
                words[byte] = bit + words[byte]
        heapq.heappush(trees, (first[0] + second[0], min(first[1], second[1]), first[2] + second[2]))
    return words


def _word_by_word(bits: str, meant: dict[str, int]) -> bytes:
    received, word = bytearray(), ""
    for bit in bits:
        word += bit
        if word in meant:
            received.append(meant[word])
            word = ""
    return bytes(received)


def _pattern(bits: str, meant: dict[str, int]) -> bytes:
    return bytes([meant[word] for word in re.findall("|".join(sorted(meant, key=len)), bits)])


def _figures(given: bytes, sent: bytes, received: bytes) -> dict[str, float]:
    assert received == given
    return {"bits a byte": 8 * len(sent) / SIZE}
