"""A trained language model as a compressor: any bytes in, the same bytes out, at -log2 P of their text and next to nothing more.

The content is read as tokens of the model's vocabulary; a byte that is no part of any goes into the code as it is, behind an escape
that costs more the rarer it is. Both ends step the same model with the same lanes on one thread, so that equal builds see equal
floats.   L lanes, v tokens of the vocabulary
"""

import re
from collections.abc import Sequence

import numpy as np
import torch

import quoin
from quoin.data import Vocabulary, vocabulary_fingerprint
from quoin.errors import Mistake
from quoin.info import lane_frequencies, model_fingerprint, token_lanes_decode, token_lanes_encode
from quoin.info.lanes import Tell
from quoin.info.token_lanes import TOTAL
from quoin.models import AutoregressiveModel
from quoin.runs.kinds.language_modeling import TrainedLanguageModel
from quoin.tensor.single_thread import single_thread

__all__ = ["LanguageCodec", "as_symbols", "from_symbols", "in_bytes"]

ESCAPES = 1 << 12  # symbols that are believed to be seen without an escape before the first one


class LanguageCodec:
    """A `Codec` for archives, by the model of a run."""

    method = 3

    def __init__(self, trained: TrainedLanguageModel) -> None:
        self._model, self._vocabulary = trained.reader(), trained.vocabulary
        with single_thread():
            tokens = torch.tensor([*bytes.fromhex(vocabulary_fingerprint(trained.vocabulary))])
            weights = trained.model.state_dict() | {"the vocabulary": tokens}
            self.fingerprint = model_fingerprint(f"{trained.recipe.name}, Quoin {quoin.__version__},", weights)

    def encode(self, content: bytes, tell: Tell = lambda done, total: None) -> bytes:
        symbols = as_symbols(content, self._vocabulary)
        with single_thread():
            code = token_lanes_encode(symbols, self._lanes, in_bytes(tell, len(content)))
        return len(symbols).to_bytes(_count_bytes(len(content)), "little") + code

    def decode(self, code: bytes, length: int, tell: Tell = lambda done, total: None) -> bytes:
        begin = _count_bytes(length)
        count = int.from_bytes(code[:begin], "little")
        if count > length:
            raise Mistake(f"expected at most {length} symbols for as many bytes, came {count}; the archive is damaged")
        try:
            with single_thread():
                symbols = token_lanes_decode(code[begin:], self._lanes, count, in_bytes(tell, length))
        except Mistake as error:
            raise Mistake(f"the model gives other numbers here than where the archive was made ({error}); decode it there") from None
        return from_symbols(symbols, self._vocabulary)

    def _lanes(self, num_lanes: int) -> "_Lanes":
        return _Lanes(self._model, self._vocabulary.size, num_lanes)


class _Lanes:
    """A `LaneModel`: the language model's laws of v tokens, and behind them the 256 bytes, which share the escape's chance."""

    def __init__(self, model: AutoregressiveModel, vocabulary_size: int, num_lanes: int) -> None:
        self._model, self._size = model, vocabulary_size
        self._state = model.start(num_lanes, 0)
        self._laws = torch.full((num_lanes, vocabulary_size), 1 / vocabulary_size, dtype=torch.float64)  # before anything is read
        self._seen = self._escaped = 0

    def frequencies(self) -> np.ndarray:
        byte = TOTAL * (self._escaped + 1) // (256 * (self._seen + self._escaped + ESCAPES))
        tokens = lane_frequencies(self._laws, TOTAL - 256 * byte)
        of_bytes = tokens[:, -1:] + byte * torch.arange(1, 257)
        return torch.cat([tokens, of_bytes], dim=1).numpy()

    @torch.no_grad()
    def update(self, symbols: Sequence[int]) -> None:
        read = torch.tensor(symbols)
        escaped = read >= self._size
        self._seen, self._escaped = self._seen + len(symbols), self._escaped + int(escaped.sum())
        # In the place of a byte that it has no token for, the model reads what it thought likeliest.
        read = torch.where(escaped, self._laws.argmax(-1), read)
        logits, self._state = self._model.step(self._state, read[:, None])
        self._laws = logits[:, -1].double().softmax(-1)


def as_symbols(content: bytes, vocabulary: Vocabulary) -> list[int]:
    """Tokens 0 .. v - 1, and v + b for a byte b of what is no text or of a character without a token.

    >>> from quoin.data import CharacterVocabulary
    >>> as_symbols(b"ab\\xff", CharacterVocabulary("ab"))
    [0, 1, 257]
    """
    text = content.decode("utf-8", "surrogateescape")  # a byte that is no UTF-8 becomes half of a character, which no text has
    strange = "".join(each for each in sorted(set(text)) if not _knows(vocabulary, each))
    symbols: list[int] = []
    pieces = re.split(f"([{re.escape(strange)}]+)", text) if strange else [text]
    for number, piece in enumerate(pieces):
        if number % 2:
            symbols += [vocabulary.size + byte for byte in piece.encode("utf-8", "surrogateescape")]
        elif piece:
            symbols += vocabulary.encode(piece).tolist()
    return symbols


def from_symbols(symbols: Sequence[int], vocabulary: Vocabulary) -> bytes:
    """The bytes that `as_symbols` made `symbols` of."""
    pieces, begin = [], 0
    for end, symbol in enumerate(symbols):
        if symbol >= vocabulary.size:
            pieces += [vocabulary.decode(symbols[begin:end]).encode(), bytes([symbol - vocabulary.size])]
            begin = end + 1
    return b"".join([*pieces, vocabulary.decode(symbols[begin:]).encode()])


def _knows(vocabulary: Vocabulary, character: str) -> bool:
    if "\ud800" <= character <= "\udfff":
        return False
    try:
        return vocabulary.decode(vocabulary.encode(character)) == character
    except Mistake:
        return False


def _count_bytes(length: int) -> int:
    """Bytes that hold the number of symbols: there are as many as bytes of content at most."""
    return -(-length.bit_length() // 8)


def in_bytes(tell: Tell, length: int) -> Tell:
    """Progress in bytes of the content, from progress in anything."""
    return lambda done, total: tell(done * length // total, length)
