"""A text in tokens, ready for a language model: three parts, the vocabulary, and how many characters each part has.

p parts: the text to learn from, to validate and to test on (see text.py)
"""

from collections.abc import Iterable
from typing import NamedTuple, get_args

import torch
from torch import Tensor

from quoin.data.memory import memory_told
from quoin.data.sources import VocabularyName
from quoin.data.text import Text, load_text
from quoin.data.token_batches import StoredTokens, read_windows
from quoin.data.vocabulary import ByteVocabulary, CharacterVocabulary, Vocabulary, WordVocabulary
from quoin.errors import Mistake, nearest, shown

__all__ = ["Corpus", "CorpusPart", "check_length", "fit_vocabulary", "last_token", "load_corpus", "tokenize_text"]

LEAST_CHARACTERS = 10  # so that no part is empty


class CorpusPart(NamedTuple):
    """One part in tokens."""

    tokens: Tensor | StoredTokens  # (n,)
    num_characters: int
    before: int | None  # the token before the first, which a model may read to predict it; None at the beginning of the text

    def in_memory(self) -> Tensor:  # (n,), int64
        """All of its tokens at once."""
        return read_windows(self.tokens, torch.tensor([0]), len(self.tokens))[0]


class Corpus(NamedTuple):
    """A text in tokens; bits per character divide by `num_characters` of a part, whatever the tokens are."""

    name: str
    vocabulary: Vocabulary
    train: CorpusPart
    validation: CorpusPart
    test: CorpusPart
    fingerprint: str  # of the text, or of the token file


@memory_told("the text does not fit in memory: write its tokens to a file with `quoin tokenize` and give tokens:PATH, or give less")
def load_corpus(source: str, vocabulary: VocabularyName = "characters", size: int = 2000) -> Corpus:
    """The tokens of `topics`, `text:PATH` or `tokens:PATH`; the last brings its own vocabulary and may be larger than memory.

    `size` is the most tokens of a vocabulary of words or byte pairs.
    """
    form, _, place = source.partition(":")
    if form == "tokens" and place:
        from quoin.data.token_file import open_tokens

        return open_tokens(place)
    text = load_text(source)
    check_length(source, len(text.content))
    return tokenize_text(text, fit_vocabulary(vocabulary, size, characters=text.content, training=[text.parts().train]))


def fit_vocabulary(name: VocabularyName, size: int, *, characters: Iterable[str], training: Iterable[str]) -> Vocabulary:
    """The vocabulary of this name: common words and byte pairs are those of the `training` text, given in pieces.

    `characters` are those of the whole text, since a model without one of them could give the text no probability at all.
    """
    match name:
        case "characters":
            return CharacterVocabulary(sorted(set(characters)))
        case "words":
            return WordVocabulary.of(training, size, alphabet=characters)
        case "bytes":
            return ByteVocabulary()
        case "bpe":
            from quoin.data.byte_pairs import BytePairVocabulary

            return BytePairVocabulary.of(training, size)
    raise Mistake(f"expected a vocabulary, got {shown(name)}: {nearest(str(name), get_args(VocabularyName))}")


def tokenize_text(text: Text, vocabulary: Vocabulary) -> Corpus:
    """`text` in tokens, part by part: no token reaches over from one into the next."""
    check_length(text.name, len(text.content))
    parts = text.parts()
    train, validation, test = (vocabulary.encode(part) for part in parts)
    return Corpus(
        name=text.name,
        vocabulary=vocabulary,
        train=CorpusPart(train, len(parts.train), None),
        validation=CorpusPart(validation, len(parts.validation), last_token(train)),
        test=CorpusPart(test, len(parts.test), last_token(validation)),
        fingerprint=text.fingerprint,
    )


def last_token(tokens: Tensor | StoredTokens) -> int:
    return int(read_windows(tokens, torch.tensor([len(tokens) - 1]), 1))


def check_length(name: str, num_characters: int) -> None:
    """Refuse a text too short to be parted."""
    if num_characters < LEAST_CHARACTERS:
        came = f"{shown(name)} has {num_characters}"
        raise Mistake(f"expected a text of {LEAST_CHARACTERS} characters or more, but {came}: give a longer one")
