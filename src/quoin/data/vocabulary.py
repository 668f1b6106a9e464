"""Text to token numbers and back. Every vocabulary is lossless: `decode(encode(text)) == text`, or the text is refused.

So the probability of the tokens is a probability of the text, and bits per character compare one vocabulary with another. Byte pairs are in
byte_pairs.py.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from quoin.documents import checked
from quoin.errors import Mistake, nearest, shown

__all__ = [
    "ByteVocabulary",
    "CharacterVocabulary",
    "Vocabulary",
    "WordVocabulary",
    "check_same_vocabulary",
    "check_tokens",
    "utf8",
    "vocabulary_fingerprint",
    "vocabulary_from_json",
]

_PIECES = re.compile(r"\w+|\W", re.DOTALL)  # words, and what stands between them character by character


@runtime_checkable
class Vocabulary(Protocol):
    """Tokens 0 .. size - 1 and the text that each stands for."""

    @property
    def size(self) -> int: ...

    def encode(self, text: str) -> Tensor:  # -> (n,), int64
        """The tokens of `text`; a Mistake names the first character that there are none for, and its place."""
        ...

    def decode(self, tokens: Tensor | Sequence[int]) -> str:
        """The text of the tokens; a Mistake names the first number that is no token."""
        ...

    def as_json(self) -> dict[str, Any]:
        """All there is to it, for `vocabulary_from_json`."""
        ...


class CharacterVocabulary:
    """One token for each character, in the order of their code points.

    >>> letters = CharacterVocabulary.of("banana")
    >>> letters.encode("nab"), letters.decode([1, 0, 2])
    (tensor([2, 0, 1]), 'ban')
    """

    def __init__(self, characters: Iterable[str]) -> None:
        self.characters = tuple(characters)
        if not self.characters or len(set(self.characters)) != len(self.characters) or any(len(each) != 1 for each in self.characters):
            raise Mistake(f"expected different characters, at least one, got {shown(self.characters)}: give each once")
        self._points = np.array([ord(each) for each in self.characters], dtype=np.uint32)
        self._tokens = np.full(int(self._points.max()) + 1, -1, dtype=np.int64)
        self._tokens[self._points] = np.arange(len(self.characters))

    @classmethod
    def of(cls, text: str) -> "CharacterVocabulary":
        """The characters of `text`."""
        if not text:
            raise Mistake("expected a text to take the characters from, got an empty one: give some text")
        return cls(map(chr, np.unique(_code_points(text)).tolist()))

    @property
    def size(self) -> int:
        return len(self.characters)

    def encode(self, text: str) -> Tensor:
        points = _code_points(text)
        tokens = self._tokens[np.minimum(points, len(self._tokens) - 1)]
        tokens[points >= len(self._tokens)] = -1
        if len(tokens) and tokens.min() < 0:
            raise _unknown(text, int(np.argmax(tokens < 0)))
        return torch.from_numpy(tokens)

    def decode(self, tokens: Tensor | Sequence[int]) -> str:
        return self._points[check_tokens(tokens, self.size)].astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")

    def as_json(self) -> dict[str, Any]:
        return {"kind": "characters", "characters": "".join(self.characters)}


class WordVocabulary:
    """A token for each character and for each of the commonest words; a word that has none is spelt character by character.

    >>> words = WordVocabulary.of(["to be or not to be"], 9)
    >>> words.encode("to bet"), words.size
    (tensor([8, 0, 1, 2, 6]), 9)
    """

    def __init__(self, characters: Iterable[str], words: Sequence[str]) -> None:
        self._spelling = CharacterVocabulary(characters)
        self.words = tuple(words)
        self._pieces = (*self._spelling.characters, *self.words)
        self._tokens = {piece: token for token, piece in enumerate(self._pieces)}
        if len(self._tokens) != len(self._pieces):
            raise Mistake(f"expected different words of two or more characters, got {shown(self.words)}: give each once")

    @classmethod
    def of(cls, texts: Iterable[str], size: int, *, alphabet: Iterable[str] = ()) -> "WordVocabulary":
        """The characters of `texts` and of `alphabet`, and the commonest words of `texts`, `size` tokens at most."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(_PIECES.findall(text))
        letters = sorted({letter for piece in counts for letter in piece} | set(alphabet))
        if size < len(letters):
            raise Mistake(f"expected a size that holds the {len(letters)} characters of the text, got {size}: raise it")
        words = sorted((piece for piece in counts if len(piece) > 1), key=lambda word: (-counts[word], word))
        return cls(letters, sorted(words[: size - len(letters)]))

    @property
    def size(self) -> int:
        return len(self._pieces)

    def encode(self, text: str) -> Tensor:
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

    def decode(self, tokens: Tensor | Sequence[int]) -> str:
        return "".join(map(self._pieces.__getitem__, check_tokens(tokens, self.size).tolist()))

    def as_json(self) -> dict[str, Any]:
        return {"kind": "words", "characters": "".join(self._spelling.characters), "words": list(self.words)}


class ByteVocabulary:
    """The 256 bytes of UTF-8: no text is refused, and none needs be seen before.

    >>> ByteVocabulary().encode("aé")
    tensor([ 97, 195, 169])
    """

    size = 256

    def encode(self, text: str) -> Tensor:
        return torch.from_numpy(np.frombuffer(utf8(text), dtype=np.uint8).astype(np.int64))

    def decode(self, tokens: Tensor | Sequence[int]) -> str:
        """The text of the bytes; what is no UTF-8, as a model may draw it, becomes the replacement character."""
        return check_tokens(tokens, self.size).astype(np.uint8).tobytes().decode("utf-8", "replace")

    def as_json(self) -> dict[str, Any]:
        return {"kind": "bytes"}


class _Characters(TypedDict):
    kind: Literal["characters"]
    characters: str


class _Words(TypedDict):
    kind: Literal["words"]
    characters: str
    words: tuple[str, ...]


class _Bytes(TypedDict):
    kind: Literal["bytes"]


class _BytePairs(TypedDict):
    kind: Literal["bpe"]
    merges: tuple[tuple[int, int], ...]


_KINDS = {"characters": _Characters, "words": _Words, "bytes": _Bytes, "bpe": _BytePairs}


def vocabulary_from_json(values: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary that `as_json` described."""
    kind = values.get("kind") if isinstance(values, Mapping) else values
    if not isinstance(kind, str) or kind not in _KINDS:
        raise Mistake(f"expected a vocabulary, got the kind {shown(kind)}: {nearest(str(kind)[:40], _KINDS)}")
    told = checked(_KINDS[kind], dict(values), "the vocabulary")
    match kind:
        case "characters":
            return CharacterVocabulary(told["characters"])
        case "words":
            return WordVocabulary(told["characters"], told["words"])
        case "bytes":
            return ByteVocabulary()
    from quoin.data.byte_pairs import BytePairVocabulary

    return BytePairVocabulary(told["merges"])


def check_same_vocabulary(expected: Vocabulary, came: Vocabulary, what: str) -> None:
    """Refuse tokens of another vocabulary than the model's: to it they would be other words. `what` names where they come from."""
    if vocabulary_fingerprint(expected) != vocabulary_fingerprint(came):
        raise Mistake(
            f"expected tokens of the vocabulary that the model was trained with ({_described(expected)}), but {what} has another "
            f"({_described(came)}): give the text itself, or tokens of the same vocabulary"
        )


def _described(vocabulary: Vocabulary) -> str:
    return f"{vocabulary.as_json()['kind']}, {vocabulary.size} tokens, {vocabulary_fingerprint(vocabulary)[:8]}"


def vocabulary_fingerprint(vocabulary: Vocabulary) -> str:
    """SHA-256 of what the tokens stand for: two vocabularies agree on every text where it is the same."""
    described = json.dumps(vocabulary.as_json(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(described.encode()).hexdigest()


def utf8(text: str) -> bytes:
    """The bytes of `text`; half of a surrogate pair, which no text has, is refused."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        half, at = text[error.start], error.start
        raise Mistake(f"expected text, got half of a character, {half!r}, at position {at}: save it as UTF-8") from None


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _unknown(text: str, at: int) -> Mistake:
    return Mistake(
        f"expected characters of the vocabulary, got {text[at]!r} (U+{ord(text[at]):04X}) at position {at}: "
        "leave it out, or choose the vocabulary bytes or bpe, which know all"
    )


def check_tokens(tokens: Tensor | Sequence[int], size: int) -> np.ndarray:
    """`tokens` as an array, known to be of one axis and from 0 to size - 1."""
    found = torch.as_tensor(tokens).detach().cpu().numpy()
    if found.size == 0:
        return np.zeros(0, dtype=np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise Mistake(f"expected one sequence of whole numbers as tokens, got {found.dtype} of shape {found.shape}: decode row by row")
    if found.min() < 0 or found.max() >= size:
        at = int(np.argmax((found < 0) | (found >= size)))
        raise Mistake(f"expected tokens from 0 to {size - 1}, got {found[at]} at position {at}: use the vocabulary they were made with")
    return found
