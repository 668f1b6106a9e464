"""Text to token numbers and back. Every tokenizer is lossless: `decode(encode(text)) == text`, or encoding is an error.

So the probability of the tokens is a probability of the text, and bits per character compare one tokenizer with
another. Byte pairs are in bpe.py.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict, runtime_checkable

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from quoin.display import shown
from quoin.documents import Size, checked
from quoin.errors import UserError, did_you_mean, format_value
from quoin.tensor import check_token_ids

__all__ = [
    "ByteTokenizer",
    "CharTokenizer",
    "Tokenizer",
    "WordTokenizer",
    "check_same_tokenizer",
    "token_array",
    "tokenizer_fingerprint",
    "tokenizer_from_json",
    "utf8",
]

_PIECES = re.compile(r"\w+|\W", re.DOTALL)  # words, and what stands between them character by character


@runtime_checkable
class Tokenizer(Protocol):
    """Tokens 0 .. size - 1 and the text that each stands for."""

    @property
    def vocab_size(self) -> int: ...

    def encode(self, text: str) -> Int[Tensor, "seq"]:
        """The tokens of `text`; a UserError names the first character that there are none for, and its position."""
        ...

    def decode(self, tokens: Int[Tensor, "seq"] | Sequence[int]) -> str:
        """The text of the tokens; a UserError names the first number that is no token."""
        ...

    def as_json(self) -> dict[str, Any]:
        """All there is to it, for `tokenizer_from_json`."""
        ...


@shown
class CharTokenizer:
    """One token for each character; `fit` takes them in the order of their code points.

    Args:
        characters: Each once; token i stands for the i-th of them.

    >>> letters = CharTokenizer.fit("banana")
    >>> letters.encode("nab"), letters.decode([1, 0, 2])
    (tensor([2, 0, 1]), 'ban')
    """

    def __init__(self, characters: Iterable[str]) -> None:
        self.characters = tuple(characters)
        if (
            not self.characters
            or len(set(self.characters)) != len(self.characters)
            or any(len(each) != 1 for each in self.characters)
        ):
            raise UserError(
                f"expected different characters, at least one, got {format_value(self.characters)}: give each once"
            )
        self._points = np.array([ord(each) for each in self.characters], dtype=np.uint32)
        self._tokens = np.full(int(self._points.max()) + 1, -1, dtype=np.int64)
        self._tokens[self._points] = np.arange(len(self.characters))

    @classmethod
    def fit(cls, text: str) -> "CharTokenizer":
        """The characters of `text`."""
        if not text:
            raise UserError("expected a text to take the characters from, got an empty one: give some text")
        return cls(map(chr, np.unique(_code_points(text)).tolist()))

    @property
    def vocab_size(self) -> int:
        return len(self.characters)

    def encode(self, text: str) -> Int[Tensor, "seq"]:
        points = _code_points(text)
        tokens = self._tokens[np.minimum(points, len(self._tokens) - 1)]
        tokens[points >= len(self._tokens)] = -1
        if len(tokens) and tokens.min() < 0:
            raise _unknown(text, int(np.argmax(tokens < 0)))
        return torch.from_numpy(tokens)

    def decode(self, tokens: Int[Tensor, "seq"] | Sequence[int]) -> str:
        return (
            self._points[token_array(tokens, self.vocab_size)]
            .astype("<u4")
            .tobytes()
            .decode("utf-32-le", "surrogatepass")
        )

    def as_json(self) -> dict[str, Any]:
        return {"kind": "char", "characters": "".join(self.characters)}


@shown
class WordTokenizer:
    """A token for each character and for each of the commonest words; a word that has none is spelt character by
    character.

    Args:
        characters: Each once, the first tokens.
        words: Of two or more characters, the tokens after those of the characters.

    >>> words = WordTokenizer.fit(["to be or not to be"], 9)
    >>> words.encode("to bet"), words.vocab_size
    (tensor([8, 0, 1, 2, 6]), 9)
    """

    def __init__(self, characters: Iterable[str], words: Sequence[str]) -> None:
        self._spelling = CharTokenizer(characters)
        self.words = tuple(words)
        self._pieces = (*self._spelling.characters, *self.words)
        self._tokens = {piece: token for token, piece in enumerate(self._pieces)}
        if len(self._tokens) != len(self._pieces):
            raise UserError(
                f"expected different words of two or more characters, got {format_value(self.words)}: give each once"
            )

    @classmethod
    def fit(cls, texts: Iterable[str], vocab_size: int, *, alphabet: Iterable[str] = ()) -> "WordTokenizer":
        """The characters of `texts` and of `alphabet`, and the commonest words of `texts`, `vocab_size` tokens at
        most."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(_PIECES.findall(text))
        letters = sorted({letter for piece in counts for letter in piece} | set(alphabet))
        if vocab_size < len(letters):
            raise UserError(
                f"expected a size that holds the {len(letters)} characters of the text, got {vocab_size}: raise it"
            )
        words = sorted((piece for piece in counts if len(piece) > 1), key=lambda word: (-counts[word], word))
        return cls(letters, sorted(words[: vocab_size - len(letters)]))

    @property
    def characters(self) -> tuple[str, ...]:
        return self._spelling.characters

    @property
    def vocab_size(self) -> int:
        return len(self._pieces)

    def encode(self, text: str) -> Int[Tensor, "seq"]:
        known, spell = self._tokens, self._spell
        found: list[int] = []
        for match in _PIECES.finditer(text):
            token = known.get(match[0])
            if token is None:
                found.extend(spell(text, match.start(), match.end()))
            else:
                found.append(token)
        return torch.tensor(found, dtype=torch.int64)

    def _spell(self, text: str, begin: int, end: int) -> list[int]:
        try:
            return [self._tokens[text[at]] for at in range(begin, end)]
        except KeyError:
            raise _unknown(text, next(at for at in range(begin, end) if text[at] not in self._tokens)) from None

    def decode(self, tokens: Int[Tensor, "seq"] | Sequence[int]) -> str:
        return "".join(map(self._pieces.__getitem__, token_array(tokens, self.vocab_size).tolist()))

    def as_json(self) -> dict[str, Any]:
        return {"kind": "word", "characters": "".join(self.characters), "words": list(self.words)}


@shown
class ByteTokenizer:
    """The 256 bytes of UTF-8: every text has tokens, and none needs be seen before.

    >>> ByteTokenizer().encode("aé")
    tensor([ 97, 195, 169])
    """

    vocab_size = 256

    def encode(self, text: str) -> Int[Tensor, "seq"]:
        return torch.from_numpy(np.frombuffer(utf8(text), dtype=np.uint8).astype(np.int64))

    def decode(self, tokens: Int[Tensor, "seq"] | Sequence[int]) -> str:
        """The text of the bytes; what is no UTF-8, as a model may sample it, becomes the replacement character."""
        return token_array(tokens, self.vocab_size).astype(np.uint8).tobytes().decode("utf-8", "replace")

    def as_json(self) -> dict[str, Any]:
        return {"kind": "byte"}


class _Characters(TypedDict):
    kind: Literal["char"]
    characters: str


class _Words(TypedDict):
    kind: Literal["word"]
    characters: str
    words: tuple[str, ...]


class _Bytes(TypedDict):
    kind: Literal["byte"]


class _BytePairs(TypedDict):
    kind: Literal["bpe"]
    merges: tuple[tuple[int, int], ...]


class _HuggingFace(TypedDict):
    kind: Literal["huggingface"]
    content: dict[str, Any]
    vocab_size: Size


_KINDS = {"char": _Characters, "word": _Words, "byte": _Bytes, "bpe": _BytePairs, "huggingface": _HuggingFace}


def tokenizer_from_json(values: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer that `as_json` described."""
    kind = values.get("kind") if isinstance(values, Mapping) else values
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UserError(
            f"expected a tokenizer, got the kind {format_value(kind)}: {did_you_mean(str(kind)[:40], _KINDS)}"
        )
    described = checked(_KINDS[kind], dict(values), "the tokenizer")
    match kind:
        case "char":
            return CharTokenizer(described["characters"])
        case "word":
            return WordTokenizer(described["characters"], described["words"])
        case "byte":
            return ByteTokenizer()
        case "huggingface":
            from quoin.data.tokenizer_json import HuggingFaceTokenizer

            return HuggingFaceTokenizer(described["content"], described["vocab_size"])
    from quoin.data.bpe import BPETokenizer

    return BPETokenizer(described["merges"])


def check_same_tokenizer(expected: Tokenizer, got: Tokenizer, what: str) -> None:
    """Raise an error for tokens of another tokenizer than the model's: to it they would be other words. `what` names
    where they come from."""
    if tokenizer_fingerprint(expected) != tokenizer_fingerprint(got):
        raise UserError(
            f"expected tokens of the tokenizer that the model was trained with ({_described(expected)}), but "
            f"{what} has another "
            f"({_described(got)}): give the text itself, or tokens of the same tokenizer"
        )


def _described(tokenizer: Tokenizer) -> str:
    return f"{tokenizer.as_json()['kind']}, {tokenizer.vocab_size} tokens, {tokenizer_fingerprint(tokenizer)[:8]}"


def tokenizer_fingerprint(tokenizer: Tokenizer) -> str:
    """SHA-256 of what the tokens stand for: two tokenizers agree on every text where it is the same."""
    described = json.dumps(tokenizer.as_json(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(described.encode()).hexdigest()


def utf8(text: str) -> bytes:
    """The bytes of `text`; half of a surrogate pair, which no text has, is an error."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        half, at = text[error.start], error.start
        raise UserError(
            f"expected text, got half of a character, {half!r}, at position {at}: save it as UTF-8"
        ) from None


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _unknown(text: str, at: int) -> UserError:
    return UserError(
        f"expected characters of the vocabulary, got {text[at]!r} (U+{ord(text[at]):04X}) at position {at}: "
        "leave it out, or choose the tokenizer byte or bpe, which know all"
    )


def token_array(tokens: Int[Tensor, "seq"] | Sequence[int], vocab_size: int) -> np.ndarray:
    """One sequence of token ids as an array, each of them checked to be one of the vocabulary's."""
    ids = torch.as_tensor(tokens).detach().cpu()
    if ids.numel() == 0:  # an empty list becomes a tensor of floats
        return np.zeros(0, dtype=np.int64)
    check_token_ids(ids, vocab_size, ndim=1)
    return ids.numpy()
