"""Byte-level byte-pair encoding: tokens 0 .. 255 are the bytes of UTF-8, and each one after stands for a pair of
earlier ones.

The pairs are learnt and merged by the `tokenizers` library (`pip install 'quoin[text]'`); what is kept of them is a
list of pairs.
"""

import functools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from quoin.data.tokenizers import token_array, utf8
from quoin.display import shown
from quoin.errors import UserError

__all__ = ["BPETokenizer", "byte_letters", "pieces_of"]

_PIECE = 1 << 15  # characters that the library is given at a time; it works on several such pieces at once
_END = re.compile(r"\S[ \n]")  # where a word ends: no pair reaches over it, so encoding piece by piece changes nothing


@shown
class BPETokenizer:
    """`merges` are pairs of tokens, the first to be merged first; each makes a new token, unless one spells the same
    bytes already.

    Pairs lie within a word with the space before it, as in GPT-2.

    >>> pairs = BPETokenizer([(ord("a"), ord("n")), (256, ord("a"))])
    >>> pairs.encode("banana"), pairs.decode([98, 257])
    (tensor([ 98, 256, 257]), 'bana')
    """

    def __init__(self, merges: Iterable[tuple[int, int]]) -> None:
        self.merges = tuple(merges)
        spelt = [bytes([byte]) for byte in range(256)]
        known = set(spelt)
        for left, right in self.merges:
            if not (0 <= left < len(spelt) and 0 <= right < len(spelt)):
                raise UserError(
                    f"expected pairs of tokens from 0 to {len(spelt) - 1}, got {left} and {right}: restore the "
                    "tokenizer"
                )
            whole = spelt[left] + spelt[right]
            if whole not in known:
                spelt.append(whole)
                known.add(whole)
        self._spelt = spelt
        shown = [_shown(each) for each in spelt]
        library = _library()
        pairs = [(shown[left], shown[right]) for left, right in self.merges]
        self._merger = library.Tokenizer(
            library.models.BPE(vocab={each: token for token, each in enumerate(shown)}, merges=pairs)
        )
        self._merger.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)

    @classmethod
    def fit(cls, texts: Iterable[str], vocab_size: int) -> "BPETokenizer":
        """Merge the commonest pair of tokens of `texts`, again and again, until there are `vocab_size` tokens or no
        pair comes twice."""
        if vocab_size < 256:
            raise UserError(f"expected a size that holds the 256 bytes, got {vocab_size}: raise it")
        library = _library()
        learner = library.Tokenizer(library.models.BPE())
        learner.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
        letters = library.pre_tokenizers.ByteLevel.alphabet()
        trainer = library.trainers.BpeTrainer(
            vocab_size=vocab_size, min_frequency=2, show_progress=False, initial_alphabet=letters
        )
        learner.train_from_iterator((piece for text in texts for piece in pieces_of(text)), trainer)
        tokens = {_shown(bytes([byte])): byte for byte in range(256)}
        merges = []
        for left, right in json.loads(learner.to_str())["model"]["merges"]:
            merges.append((tokens[left], tokens[right]))
            tokens.setdefault(left + right, len(tokens))
        return cls(merges)

    @property
    def vocab_size(self) -> int:
        return len(self._spelt)

    def encode(self, text: str) -> Int[Tensor, "seq"]:
        utf8(text)  # refuses what is no text
        found = self._merger.encode_batch_fast(list(pieces_of(text)), add_special_tokens=False)
        return torch.from_numpy(
            np.concatenate([np.zeros(0, np.int64), *(np.asarray(each.ids, dtype=np.int64) for each in found)])
        )

    def decode(self, tokens: Int[Tensor, "seq"] | Sequence[int]) -> str:
        """The text of the tokens; what is no UTF-8, as a model may sample it, becomes the replacement character."""
        return b"".join(map(self._spelt.__getitem__, token_array(tokens, self.vocab_size).tolist())).decode(
            "utf-8", "replace"
        )

    def shown(self, token: int) -> str:
        """What the token is called in files of the library: a printable character for each of its bytes."""
        return _shown(self._spelt[token])

    def as_json(self) -> dict[str, Any]:
        return {"kind": "bpe", "merges": [list(pair) for pair in self.merges]}


def pieces_of(text: str) -> Iterator[str]:
    """`text` in pieces that end where a word ends."""
    begin = 0
    while begin < len(text):
        found = _END.search(text, begin + _PIECE)
        end = found.start() + 1 if found else len(text)
        yield text[begin:end]
        begin = end


@functools.cache
def byte_letters() -> tuple[str, ...]:
    """The printable character by which the library shows each byte: itself where it is one, else the next from U+0100
    on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte if byte in printable else next(others)) for byte in range(256))


def _shown(word: bytes) -> str:
    return "".join(map(byte_letters().__getitem__, word))


def _library() -> ModuleType:
    try:
        import tokenizers
        import tokenizers.models
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError:
        raise UserError(
            "byte pairs need the library `tokenizers`, which is not installed: pip install 'quoin[text]'"
        ) from None
    return tokenizers
