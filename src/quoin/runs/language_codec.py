"""A trained language model as a compressor: any bytes in, the same bytes out, at -log2 P of their text and next to
nothing more.

The content is read as tokens of the model's vocabulary; a byte of no token goes into the code as it is, behind an
escape that costs more the rarer it is. Both ends step the same model with the same interleaved streams on one thread,
so that equal builds see equal
floats.   L streams, v tokens of the vocabulary
"""

import re
from collections.abc import Sequence

import numpy as np
import torch

import quoin
from quoin.callbacks import ProgressCallback
from quoin.data import Tokenizer, tokenizer_fingerprint
from quoin.errors import UserError
from quoin.info import decode_interleaved, encode_interleaved, model_fingerprint, stream_frequencies
from quoin.info.interleaved_tokens import TOTAL
from quoin.models import CausalLM
from quoin.runs.kinds.language_modeling import TrainedLanguageModel
from quoin.tensor.single_thread import single_thread

__all__ = ["LanguageCodec", "as_symbols", "from_symbols", "in_bytes"]

ESCAPES = 1 << 12  # symbols that are believed to be seen without an escape before the first one


class LanguageCodec:
    """A `Codec` for archives, by the model of a run."""

    method = 3

    def __init__(self, trained: TrainedLanguageModel) -> None:
        self._model, self._tokenizer = trained.token_model(), trained.tokenizer
        with single_thread():
            tokens = torch.tensor([*bytes.fromhex(tokenizer_fingerprint(trained.tokenizer))])
            weights = trained.model.state_dict() | {"the vocabulary": tokens}
            self.fingerprint = model_fingerprint(f"{trained.recipe.name}, Quoin {quoin.__version__},", weights)

    def encode(self, content: bytes, on_progress: ProgressCallback = lambda done, total: None) -> bytes:
        symbols = as_symbols(content, self._tokenizer)
        with single_thread():
            code = encode_interleaved(symbols, self._streams, in_bytes(on_progress, len(content)))
        return len(symbols).to_bytes(_count_bytes(len(content)), "little") + code

    def decode(self, code: bytes, length: int, on_progress: ProgressCallback = lambda done, total: None) -> bytes:
        begin = _count_bytes(length)
        count = int.from_bytes(code[:begin], "little")
        if count > length:
            raise UserError(f"expected at most {length} symbols for as many bytes, got {count}; the archive is damaged")
        try:
            with single_thread():
                symbols = decode_interleaved(code[begin:], self._streams, count, in_bytes(on_progress, length))
        except UserError as error:
            raise UserError(
                f"the model gives other numbers here than where the archive was made ({error}); decode it there"
            ) from None
        return from_symbols(symbols, self._tokenizer)

    def _streams(self, num_streams: int) -> "_StreamState":
        return _StreamState(self._model, self._tokenizer.vocab_size, num_streams)


class _StreamState:
    """A `StreamModel`: the language model's distributions of v tokens, and behind them the 256 bytes, which have the
    escape's probability together."""

    def __init__(self, model: CausalLM, vocab_size: int, num_streams: int) -> None:
        self._model, self._size = model, vocab_size
        self._cache = model.init_cache(num_streams, 0)
        self._probs = torch.full(
            (num_streams, vocab_size), 1 / vocab_size, dtype=torch.float64
        )  # before anything is read
        self._seen = self._escaped = 0

    def frequencies(self) -> np.ndarray:
        byte = TOTAL * (self._escaped + 1) // (256 * (self._seen + self._escaped + ESCAPES))
        tokens = stream_frequencies(self._probs, TOTAL - 256 * byte)
        of_bytes = tokens[:, -1:] + byte * torch.arange(1, 257)
        return torch.cat([tokens, of_bytes], dim=1).numpy()

    @torch.no_grad()
    def update(self, symbols: Sequence[int]) -> None:
        read = torch.tensor(symbols)
        escaped = read >= self._size
        self._seen, self._escaped = self._seen + len(symbols), self._escaped + int(escaped.sum())
        # For a byte that it has no token for, the model reads the most probable one.
        read = torch.where(escaped, self._probs.argmax(-1), read)
        logits, self._cache = self._model.decode_step(self._cache, read[:, None])
        self._probs = logits[:, -1].double().softmax(-1)


def as_symbols(content: bytes, tokenizer: Tokenizer) -> list[int]:
    """Tokens 0 .. v - 1, and v + b for a byte b of what is no text or of a character without a token.

    >>> from quoin.data import CharTokenizer
    >>> as_symbols(b"ab\\xff", CharTokenizer("ab"))
    [0, 1, 257]
    """
    text = content.decode(
        "utf-8", "surrogateescape"
    )  # a byte that is no UTF-8 becomes half of a character, which no text has
    strange = "".join(each for each in sorted(set(text)) if not _knows(tokenizer, each))
    symbols: list[int] = []
    pieces = re.split(f"([{re.escape(strange)}]+)", text) if strange else [text]
    for number, piece in enumerate(pieces):
        if number % 2:
            symbols += [tokenizer.vocab_size + byte for byte in piece.encode("utf-8", "surrogateescape")]
        elif piece:
            symbols += tokenizer.encode(piece).tolist()
    return symbols


def from_symbols(symbols: Sequence[int], tokenizer: Tokenizer) -> bytes:
    """The bytes that `as_symbols` made `symbols` of."""
    pieces, begin = [], 0
    for end, symbol in enumerate(symbols):
        if symbol >= tokenizer.vocab_size:
            pieces += [tokenizer.decode(symbols[begin:end]).encode(), bytes([symbol - tokenizer.vocab_size])]
            begin = end + 1
    return b"".join([*pieces, tokenizer.decode(symbols[begin:]).encode()])


def _knows(tokenizer: Tokenizer, character: str) -> bool:
    if "\ud800" <= character <= "\udfff":
        return False
    try:
        return tokenizer.decode(tokenizer.encode(character)) == character
    except UserError:
        return False


def _count_bytes(length: int) -> int:
    """Bytes that hold the number of symbols: there are as many as bytes of content at most."""
    return -(-length.bit_length() // 8)


def in_bytes(on_progress: ProgressCallback, length: int) -> ProgressCallback:
    """Progress in bytes of the content, from progress in anything."""
    return lambda done, total: on_progress(done * length // total, length)
