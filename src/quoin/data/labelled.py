"""Texts of one class each, ready for a classifier: three parts in tokens, padded batch by batch, and what a run remembers of them.

b texts of a batch, n tokens of its longest
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from quoin.data.corpus import fit_vocabulary
from quoin.data.dataset import MAX_CLASSES
from quoin.data.pairs import Pairs, part_pairs
from quoin.data.remembered import RememberedData
from quoin.data.sources import VocabularyName
from quoin.data.vocabulary import Vocabulary, vocabulary_from_json
from quoin.documents import Count
from quoin.errors import Mistake, shown
from quoin.tensor.labels import as_indices

__all__ = ["LabelledBatch", "LabelledCorpus", "LabelledFacts", "LabelledTexts", "encode_texts", "label_corpus", "labelled_facts"]


class LabelledBatch(NamedTuple):
    """Texts padded to the longest among them, and the number of each one's class."""

    tokens: Tensor  # (b, n), int64
    lengths: Tensor  # (b,), how many tokens are real
    labels: Tensor  # (b,)


class LabelledTexts:
    """Texts in tokens with their classes; `read(rows)` gives those of a batch.

    All are kept in one row with the places where they begin, so that a long one does not widen the others.
    """

    def __init__(self, pairs: Pairs, vocabulary: Vocabulary, class_names: Sequence[str], device: torch.device | str | None = None) -> None:
        self.pairs = pairs
        numbers = {name: number for number, name in enumerate(class_names)}
        encoded = encode_texts(vocabulary, pairs.sources)
        self.labels = torch.tensor([numbers[name] for name in pairs.targets], device=device)
        self.lengths = torch.tensor([len(tokens) for tokens in encoded], device=device)
        self._starts = self.lengths.cumsum(0) - self.lengths
        self._tokens = torch.cat(encoded).to(device)

    def __len__(self) -> int:
        return len(self.pairs)

    def read(self, rows: Tensor) -> LabelledBatch:  # (b,)
        rows = rows.to(self._tokens.device)
        rows = as_indices(rows, "rows")
        lengths = self.lengths[rows]
        within = torch.arange(int(lengths.max()), device=rows.device).expand(len(rows), -1)
        places = (self._starts[rows][:, None] + within).clamp(max=len(self._tokens) - 1)
        return LabelledBatch(torch.where(within < lengths[:, None], self._tokens[places], 0), lengths, self.labels[rows])


class LabelledCorpus(NamedTuple):
    """Texts in tokens; no text of one part is in another."""

    name: str
    vocabulary: Vocabulary
    class_names: tuple[str, ...]
    train: LabelledTexts
    validation: LabelledTexts
    test: LabelledTexts
    fingerprint: str


def label_corpus(
    pairs: Pairs,
    *,
    tokens: VocabularyName = "characters",
    size: int = 2000,
    seed: int = 0,
    device: torch.device | str | None = None,
) -> LabelledCorpus:
    """Pairs of a text and its class, parted and in tokens; `size` is the most tokens of a vocabulary of words or byte pairs.

    >>> corpus = label_corpus(Pairs("here", tuple("abcdefghij"), ("vowel", "other") * 5))
    >>> corpus.class_names, len(corpus.test), corpus.train.read(torch.tensor([0, 1])).lengths
    (('other', 'vowel'), 1, tensor([1, 1]))
    """
    class_names = tuple(sorted(set(pairs.targets)))
    if not 2 <= len(class_names) <= MAX_CLASSES:
        came = f"{len(class_names)} in {pairs.name}" + (f", {shown(class_names[0])}" if len(class_names) == 1 else "")
        raise Mistake(f"expected from 2 to {MAX_CLASSES} different classes, came {came}; give a text, a tab and its class in each line")
    parts = part_pairs(pairs, seed)
    vocabulary = fit_vocabulary(tokens, size, characters=set().union(*pairs.sources), training=parts.train.sources)
    train, validation, test = (LabelledTexts(part, vocabulary, class_names, device) for part in parts)
    return LabelledCorpus(pairs.name, vocabulary, class_names, train, validation, test, pairs.fingerprint)


def encode_texts(vocabulary: Vocabulary, texts: Sequence[str]) -> list[Tensor]:
    """The tokens of each text; one that is empty or has unknown characters is told with its number, counted from 1."""
    found = []
    for number, text in enumerate(texts, 1):
        try:
            found.append(vocabulary.encode(text))
        except Mistake as mistake:
            raise Mistake(f"text {number}, {shown(text)}: {mistake}") from None
        if not len(found[-1]):
            raise Mistake(f"expected a token or more in every text, came none in text {number}; fill it in or leave it out")
    return found


@dataclass(frozen=True)
class LabelledFacts(RememberedData):
    """Where texts came from, what their tokens and their classes are: what a run remembers when the data are gone."""

    source: str
    num_texts: Count
    text_vocabulary: dict[str, Any]  # as `Vocabulary.as_json` says it
    class_names: tuple[str, ...]
    fingerprint: str
    target_name: str = "class"

    def __post_init__(self) -> None:
        _ = self.vocabulary

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return vocabulary_from_json(self.text_vocabulary)

    @property
    def num_classes(self) -> int:
        return len(self.class_names)


def labelled_facts(corpus: LabelledCorpus) -> LabelledFacts:
    """The facts of texts that are at hand."""
    return LabelledFacts(
        source=corpus.name,
        num_texts=sum(map(len, (corpus.train, corpus.validation, corpus.test))),
        text_vocabulary=corpus.vocabulary.as_json(),
        class_names=corpus.class_names,
        fingerprint=corpus.fingerprint,
    )
