"""What a language model must know of its text, and what a run records of it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from quoin.data.corpus import Corpus
from quoin.data.data_info import DataInfo
from quoin.data.tokenizers import Tokenizer, tokenizer_from_json
from quoin.display import shown
from quoin.documents import Count

__all__ = ["TextInfo", "text_info"]


@shown
@dataclass(frozen=True)
class TextInfo(DataInfo):
    """Where the text came from, how long it is, and what its tokens stand for."""

    num_tokens: Count
    num_characters: Count
    tokenizer_json: dict[str, Any]  # as `Tokenizer.as_json` says it

    def __post_init__(self) -> None:
        _ = self.tokenizer

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return tokenizer_from_json(self.tokenizer_json)

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.vocab_size


def text_info(corpus: Corpus) -> TextInfo:
    """The data info of a text that is at hand."""
    splits = (corpus.train, corpus.validation, corpus.test)
    return TextInfo(
        source=corpus.name,
        num_tokens=sum(len(split.tokens) for split in splits),
        num_characters=sum(split.num_characters for split in splits),
        tokenizer_json=corpus.tokenizer.as_json(),
        fingerprint=corpus.fingerprint,
    )
