"""Pairs of sentences ready for a translation model: three parts in tokens, a vocabulary for each side, and what a run remembers of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch

from quoin.data.corpus import fit_vocabulary
from quoin.data.memory import memory_told
from quoin.data.pair_tokens import PairVocabulary, TokenPairs
from quoin.data.pairs import load_pairs, part_pairs
from quoin.data.remembered import RememberedData
from quoin.data.sources import VocabularyName
from quoin.documents import Count, Size

__all__ = ["PairCorpus", "PairFacts", "load_pair_corpus", "pair_facts"]


class PairCorpus(NamedTuple):
    """Pairs in tokens; no source of one part is in another."""

    name: str
    source_vocabulary: PairVocabulary
    target_vocabulary: PairVocabulary
    train: TokenPairs
    validation: TokenPairs
    test: TokenPairs
    fingerprint: str


@memory_told("the pairs do not fit in memory: give fewer lines, or fewer --pairs")
def load_pair_corpus(
    source: str,
    *,
    source_tokens: VocabularyName = "characters",
    target_tokens: VocabularyName = "characters",
    size: int = 2000,
    num_pairs: int = 10_000,
    seed: int = 0,
    device: torch.device | str | None = None,
) -> PairCorpus:
    """The pairs of `dates`, `numbers` or `tsv:PATH` in tokens; `size` is the most tokens of a vocabulary of words or byte pairs.

    >>> corpus = load_pair_corpus("dates", num_pairs=100)
    >>> batch = corpus.train.read(torch.tensor([0, 1]))
    >>> [corpus.target_vocabulary.decode(row) for row in batch.targets] == list(corpus.train.pairs.targets[:2])
    True
    """
    pairs = load_pairs(source, num_pairs=num_pairs, seed=seed)
    parts = part_pairs(pairs, seed)
    ours = _vocabulary(source_tokens, size, pairs.sources, parts.train.sources)
    theirs = _vocabulary(target_tokens, size, pairs.targets, parts.train.targets)
    train, validation, test = (TokenPairs(part, ours, theirs, device) for part in parts)
    return PairCorpus(source, ours, theirs, train, validation, test, pairs.fingerprint)


def _vocabulary(name: VocabularyName, size: int, sentences: Sequence[str], training: Sequence[str]) -> PairVocabulary:
    return PairVocabulary(fit_vocabulary(name, size, characters=set().union(*sentences), training=training))


@dataclass(frozen=True)
class PairFacts(RememberedData):
    """Where pairs came from, and what the tokens of each side stand for: what a run remembers when the data are gone."""

    source: str
    num_pairs: Count
    source_vocabulary: dict[str, Any]  # as `PairVocabulary.as_json` says it
    target_vocabulary: dict[str, Any]
    longest_target: Size  # tokens of the longest to learn from, with the mark of its end
    fingerprint: str

    def __post_init__(self) -> None:
        _ = self.source_tokens, self.target_tokens

    @cached_property
    def source_tokens(self) -> PairVocabulary:
        return PairVocabulary.from_json(self.source_vocabulary)

    @cached_property
    def target_tokens(self) -> PairVocabulary:
        return PairVocabulary.from_json(self.target_vocabulary)


def pair_facts(corpus: PairCorpus) -> PairFacts:
    """The facts of pairs that are at hand."""
    return PairFacts(
        source=corpus.name,
        num_pairs=sum(map(len, (corpus.train, corpus.validation, corpus.test))),
        source_vocabulary=corpus.source_vocabulary.as_json(),
        target_vocabulary=corpus.target_vocabulary.as_json(),
        longest_target=int(corpus.train.lengths()[1].max()),
        fingerprint=corpus.fingerprint,
    )
