"""Pairs of sentences ready for a translation model: three splits in tokens, a tokenizer for each side, and their data
info."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch

from quoin.data.corpus import fit_tokenizer
from quoin.data.data_info import DataInfo
from quoin.data.memory import explain_out_of_memory
from quoin.data.pair_tokens import SpecialTokenTokenizer, TokenPairs
from quoin.data.pairs import SOURCE_COLUMN, TARGET_COLUMN, load_pairs, split_pairs
from quoin.data.sources import TokenizerName
from quoin.display import shown
from quoin.documents import Count, Size

__all__ = ["PairCorpus", "PairInfo", "load_pair_corpus", "pair_info"]


@shown
class PairCorpus(NamedTuple):
    """Pairs in tokens; no source of one split is in another."""

    name: str
    source_tokenizer: SpecialTokenTokenizer
    target_tokenizer: SpecialTokenTokenizer
    train: TokenPairs
    validation: TokenPairs
    test: TokenPairs
    fingerprint: str


@explain_out_of_memory("the pairs do not fit in memory: give fewer lines, or fewer --num-pairs")
def load_pair_corpus(
    source: str,
    *,
    source_tokenizer: TokenizerName = "char",
    target_tokenizer: TokenizerName = "char",
    vocab_size: int = 2000,
    num_pairs: int = 10_000,
    seed: int = 0,
    source_column: str | None = None,
    target_column: str | None = None,
    device: torch.device | str | None = None,
) -> PairCorpus:
    """The pairs of `dates`, `numbers`, `tsv:PATH`, `csv:PATH` or `jsonl:PATH` in tokens.

    Args:
        source_tokenizer: "char", "word", "byte" or "bpe"; words and byte pairs are those of the training split.
        target_tokenizer: The same for the targets.
        vocab_size: Most tokens of a word or byte-pair tokenizer, special ones not counted; the other two ignore it.
        num_pairs: How many are generated; a file is read as a whole.
        seed: Decides which pairs are generated, and which split each is in.
        source_column: The column of the sources in a file; unless given, by its usual name.
        target_column: The same for the targets.

    >>> corpus = load_pair_corpus("dates", num_pairs=100)
    >>> batch = corpus.train.read(torch.tensor([0, 1]))
    >>> [corpus.target_tokenizer.decode(row) for row in batch.targets] == list(corpus.train.pairs.targets[:2])
    True
    """
    pairs = load_pairs(
        source,
        num_pairs=num_pairs,
        seed=seed,
        source_column=SOURCE_COLUMN._replace(name=source_column),
        target_column=TARGET_COLUMN._replace(name=target_column),
    )
    splits = split_pairs(pairs, seed)
    ours = _tokenizer(source_tokenizer, vocab_size, pairs.sources, splits.train.sources)
    theirs = _tokenizer(target_tokenizer, vocab_size, pairs.targets, splits.train.targets)
    train, validation, test = (TokenPairs(split, ours, theirs, device) for split in splits)
    return PairCorpus(source, ours, theirs, train, validation, test, pairs.fingerprint)


def _tokenizer(
    name: TokenizerName, vocab_size: int, sentences: Sequence[str], training: Sequence[str]
) -> SpecialTokenTokenizer:
    return SpecialTokenTokenizer(fit_tokenizer(name, vocab_size, characters=set().union(*sentences), training=training))


@shown
@dataclass(frozen=True)
class PairInfo(DataInfo):
    """Where pairs came from, and what the tokens of each side stand for."""

    num_pairs: Count
    source_tokenizer_json: dict[str, Any]  # as `SpecialTokenTokenizer.as_json` says it
    target_tokenizer_json: dict[str, Any]
    longest_target: Size  # tokens of the longest training target, with its EOS
    source_column: str | None = None  # of the file, where it names its columns
    target_column: str | None = None

    def __post_init__(self) -> None:
        _ = self.source_tokenizer, self.target_tokenizer

    @cached_property
    def source_tokenizer(self) -> SpecialTokenTokenizer:
        return SpecialTokenTokenizer.from_json(self.source_tokenizer_json)

    @cached_property
    def target_tokenizer(self) -> SpecialTokenTokenizer:
        return SpecialTokenTokenizer.from_json(self.target_tokenizer_json)


def pair_info(corpus: PairCorpus) -> PairInfo:
    """The data info of pairs that are at hand."""
    return PairInfo(
        source=corpus.name,
        num_pairs=sum(map(len, (corpus.train, corpus.validation, corpus.test))),
        source_tokenizer_json=corpus.source_tokenizer.as_json(),
        target_tokenizer_json=corpus.target_tokenizer.as_json(),
        longest_target=int(corpus.train.lengths()[1].max()),
        fingerprint=corpus.fingerprint,
        source_column=corpus.train.pairs.column_names[0],
        target_column=corpus.train.pairs.column_names[1],
    )
