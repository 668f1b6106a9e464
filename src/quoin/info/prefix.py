"""Prefix codes: a string of bits for each symbol, none the beginning of another, so that a message needs no commas.

Coding and decoding stand here as definitions on strings of 0 and 1; `PrefixCode` does the same on packed bytes
(prefix_bits.py). How to choose the lengths is shannon.py's and huffman.py's matter.   k symbols in the alphabet,
numbered from 0
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from quoin.display import code_tree, shown, table
from quoin.errors import UserError, format_value
from quoin.info.prefix_bits import Packer, Unpacker
from quoin.prob import check_probs
from quoin.tensor import check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["PrefixCode", "canonical_code", "kraft_sum", "prefix_decode_definition", "prefix_encode_definition"]


def kraft_sum(lengths: Iterable[int | None]) -> Fraction:
    """sum_s 2^(-l_s), exactly; codewords of these lengths, none the beginning of another, exist iff it is at most 1.

    >>> kraft_sum([1, 2, None, 3])
    Fraction(7, 8)
    """
    used = [length for length in lengths if length is not None]
    if used and min(used) < 0:
        raise UserError(f"expected lengths of at least 0, got {min(used)}; give None to a symbol without codeword")
    longest = max(used, default=0)
    return Fraction(sum(1 << longest - length for length in used), 1 << longest)


@shown
@dataclass(frozen=True)
class PrefixCode:
    """The codewords of symbols 0, 1, ..., k - 1; None for a symbol that never comes.

    >>> code = PrefixCode(("0", "10", "11"))
    >>> code.encode(torch.tensor([0, 1, 2, 0])).hex()  # 0 10 11 0, and two bits to fill the byte
    '58'
    >>> code.decode(bytes.fromhex("58"), count=4)
    tensor([0, 1, 2, 0])
    """

    codewords: tuple[str | None, ...]

    def __post_init__(self):
        words = sorted(
            word for word in self.codewords if word is not None
        )  # a beginning sorts right before what begins with it
        if not words or set("".join(words)) - {"0", "1"}:
            raise UserError(
                f"expected a codeword of 0 and 1 for at least one symbol, got {format_value(self.codewords)}; give "
                "strings of bits"
            )
        for first, second in pairwise(words):
            if second.startswith(first):
                raise UserError(
                    f"expected no codeword to begin another, got {first!r} and {second!r}; canonical_code makes others"
                )

    @property
    def lengths(self) -> tuple[int | None, ...]:
        return tuple(None if word is None else len(word) for word in self.codewords)

    def _repr_html_(self) -> str:
        rows = [(symbol, word or ("(empty)" if word == "" else "none")) for symbol, word in enumerate(self.codewords)]
        return code_tree(self.codewords) + table(("symbol", "codeword"), rows, caption=f"{len(rows)} symbols")

    def expected_length(self, p: Float[Tensor, "*batch k"] | ArrayLike) -> Float[Tensor, "*batch"]:
        """sum_s p_s l_s bits, infinite where the distribution has a symbol without codeword."""
        p = float_tensor(p, "p")
        check_probs(p, "p")
        if p.shape[-1] != len(self.codewords):
            raise UserError(
                f"expected a distribution over the code's {len(self.codewords)} symbols, got {p.shape[-1]}; give "
                "each its probability"
            )
        lengths = torch.tensor(
            [math.nan if length is None else length for length in self.lengths], dtype=p.dtype, device=p.device
        )
        missing = ((p > 0) & lengths.isnan()).any(dim=-1)
        return (p * lengths.nan_to_num(0.0)).sum(dim=-1).masked_fill(missing, math.inf)

    def encode(self, symbols: Integer[Tensor, "symbols"] | bytes) -> bytes:
        """The codewords one after the other, eight bits a byte, the last byte filled with zeros."""
        return self._packer.pack(symbols)

    def decode(self, data: bytes, count: int) -> Int[Tensor, "symbols"]:
        """The `count` symbols that `encode` made `data` of; how many there were, the padded last byte does not show."""
        return self._unpacker.unpack(data, count)

    @cached_property
    def _packer(self) -> Packer:
        return Packer(self.codewords)

    @cached_property
    def _unpacker(self) -> Unpacker:
        return Unpacker(self.codewords)


def canonical_code(lengths: Sequence[int | None]) -> PrefixCode:
    """The code whose words, read as numbers, grow with their length and at equal length with the symbol.

    The word after w is w + 1, with zeros appended up to its length: Kraft's inequality is what keeps it
    from running over.

    >>> canonical_code([2, 1, None, 2]).codewords
    ('10', '0', None, '11')
    """
    if kraft_sum(lengths) > 1:
        raise UserError(
            f"expected lengths with a Kraft sum of at most 1, got {float(kraft_sum(lengths)):.6g}; lengthen some "
            "codewords"
        )
    words: list[str | None] = [None] * len(lengths)
    value = previous = 0
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(lengths) if length is not None):
        value <<= length - previous
        words[symbol] = f"{value:0{length}b}" if length else ""
        value, previous = value + 1, length
    return PrefixCode(tuple(words))


def prefix_encode_definition(code: PrefixCode, symbols: Iterable[int]) -> str:
    """The codewords, one after the other."""
    words, symbols = dict(enumerate(code.codewords)), list(symbols)
    found = [words.get(symbol) for symbol in symbols]
    if None in found:
        raise UserError(
            f"expected symbols of the code, got {format_value(symbols[found.index(None)])}, which has none; give "
            "it some probability"
        )
    return "".join(word for word in found if word is not None)


def prefix_decode_definition(code: PrefixCode, bits: str, count: int) -> list[int]:
    """Bit after bit until a codeword is complete, `count` times; no other codeword could have been meant."""
    meant = {word: symbol for symbol, word in enumerate(code.codewords) if word is not None}
    symbols, start = [], 0
    for _ in range(count):
        end = start
        while bits[start:end] not in meant:
            if end == len(bits):
                raise UserError(
                    f"expected {count} symbols, got bits that end inside codeword {len(symbols) + 1}; were they cut?"
                )
            end += 1
        symbols.append(meant[bits[start:end]])
        start = end
    if start < len(bits):
        raise UserError(
            f"expected bits for {count} symbols, got {len(bits) - start} more; ask for as many symbols as were coded"
        )
    return symbols


def exact_weights(probs: Float[Tensor, "k"]) -> tuple[list[int], int]:
    """A checked distribution as integers in units of 1/one, exactly, and that one: rounded logarithms could
    break Kraft's inequality.
    """
    check_shapes("k", probs=probs)
    check_probs(probs, "probs")
    ratios = [each.as_integer_ratio() for each in probs.detach().double().tolist()]
    one = max(denominator for _, denominator in ratios)  # all are powers of two
    return [numerator * (one // denominator) for numerator, denominator in ratios], one
