"""A text coded in four ways, with the bits that each character takes, read back; a file's size by coders."""

import functools
import lzma
import zlib
from typing import NamedTuple

import torch

from quoin.info import (
    ArithmeticEncoder,
    ContextModel,
    StaticModel,
    arithmetic_decode,
    arithmetic_encode_definition,
    context_mixing_encode,
    entropy,
    huffman_code,
    self_information,
)

__all__ = ["WAYS", "CodedText", "coded_sizes", "coded_text", "letter_distribution"]

WAYS = ("8 bits each", "Huffman", "arithmetic", "context mixing")
_SLOT_BITS = 12


class CodedText(NamedTuple):
    """The bits of each character by each of `WAYS`, the bits that were sent in all, and whether all were read back."""

    bits: dict[str, list[float]]
    sent: dict[str, int]
    read_back: bool


def letter_distribution(text: str) -> tuple[list[str], torch.Tensor]:
    """The characters of a text, in order, and how often each stands in it."""
    letters = sorted(set(text))
    counts = torch.tensor([text.count(letter) for letter in letters], dtype=torch.float64)
    return letters, counts / counts.sum()


@functools.lru_cache(maxsize=8)
def coded_sizes(content: bytes) -> dict[str, float]:
    """The bytes that `content` takes as it is, by the entropy of its bytes, by zlib, by xz and by context mixing."""
    counts = torch.bincount(torch.tensor(list(content)), minlength=256).double()
    return {
        "as it is": float(len(content)),
        "bytes' entropy": len(content) * float(entropy(counts / counts.sum(), base=2)) / 8,
        "zlib": float(len(zlib.compress(content, 9))),
        "xz": float(len(lzma.compress(content, format=lzma.FORMAT_ALONE, preset=9))),
        "context mixing": float(len(context_mixing_encode(content))),
    }


@functools.lru_cache(maxsize=64)
def coded_text(text: str) -> CodedText:
    """`text` by a byte a character, by the codes of its own letters, and by a mixer of contexts that begins knowing
    nothing. What tells the decoder the letters' frequencies is not counted."""
    letters, distribution = letter_distribution(text)
    symbols = [letters.index(letter) for letter in text]
    prefix = huffman_code(distribution)
    lengths = [float(len(prefix.codewords[symbol] or "")) for symbol in symbols]
    surprises = self_information(distribution[symbols], base=2).tolist()
    pieces = [letter.encode() for letter in text]
    mixed, mixed_code = _mixed(pieces)
    plain = b"".join(pieces)
    back = (
        bytes(_bytes_of(arithmetic_decode(mixed_code, ContextModel(_SLOT_BITS), 8 * len(plain)))) == plain
        and prefix.decode(prefix.encode(torch.tensor(symbols)), len(symbols)).tolist() == symbols
        and arithmetic_decode(_static_code(symbols, distribution), StaticModel(distribution), len(symbols)) == symbols
    )
    sent = {
        WAYS[0]: 8 * len(plain),
        WAYS[1]: int(sum(lengths)),
        WAYS[2]: len(arithmetic_encode_definition(symbols, StaticModel(distribution))),
        WAYS[3]: 8 * len(mixed_code),
    }
    bits = {WAYS[0]: [8.0 * len(piece) for piece in pieces], WAYS[1]: lengths, WAYS[2]: surprises, WAYS[3]: mixed}
    return CodedText(bits, sent, back)


def _static_code(symbols: list[int], distribution: torch.Tensor) -> bytes:
    encoder, model = ArithmeticEncoder(), StaticModel(distribution)
    for symbol in symbols:
        encoder.push(symbol, model.frequencies())
    return encoder.finish()


def _mixed(pieces: list[bytes]) -> tuple[list[float], bytes]:
    """The bits that context mixing takes for each character, and the code."""
    model, encoder, widths = ContextModel(_SLOT_BITS), ArithmeticEncoder(), []
    for piece in pieces:
        width = 1.0
        for bit in _bits_of(piece):
            frequencies = model.frequencies()
            width *= (frequencies[bit + 1] - frequencies[bit]) / frequencies[-1]
            encoder.push(bit, frequencies)
            model.update(bit)
        widths.append(width)
    return self_information(torch.tensor(widths, dtype=torch.float64), base=2).tolist(), encoder.finish()


def _bits_of(piece: bytes) -> list[int]:
    return [byte >> 7 - place & 1 for byte in piece for place in range(8)]


def _bytes_of(bits: list[int]) -> list[int]:
    return [sum(bit << 7 - place for place, bit in enumerate(bits[at : at + 8])) for at in range(0, len(bits), 8)]
