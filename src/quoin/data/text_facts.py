"""What a language model must know of its text, and what a run remembers of it when the text is gone."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from quoin.data.corpus import Corpus
from quoin.data.remembered import RememberedData
from quoin.data.vocabulary import Vocabulary, vocabulary_from_json
from quoin.documents import Count

__all__ = ["TextFacts", "facts_of_text"]


@dataclass(frozen=True)
class TextFacts(RememberedData):
    """Where the text came from, how long it is, and what its tokens stand for."""

    source: str
    num_tokens: Count
    num_characters: Count
    vocabulary: dict[str, Any]  # as `Vocabulary.as_json` says it
    fingerprint: str

    def __post_init__(self) -> None:
        _ = self.tokens

    @cached_property
    def tokens(self) -> Vocabulary:
        """The vocabulary itself."""
        return vocabulary_from_json(self.vocabulary)

    @property
    def vocabulary_size(self) -> int:
        return self.tokens.size


def facts_of_text(corpus: Corpus) -> TextFacts:
    """The facts of a text that is at hand."""
    parts = (corpus.train, corpus.validation, corpus.test)
    return TextFacts(
        source=corpus.name,
        num_tokens=sum(len(part.tokens) for part in parts),
        num_characters=sum(part.num_characters for part in parts),
        vocabulary=corpus.vocabulary.as_json(),
        fingerprint=corpus.fingerprint,
    )
