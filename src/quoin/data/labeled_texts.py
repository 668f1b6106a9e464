"""Text classification data: three splits in tokens, padded batch by batch, and their data info."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from quoin.data.corpus import fit_tokenizer
from quoin.data.data_info import DataInfo
from quoin.data.dataset import MAX_CLASSES
from quoin.data.pairs import Pairs, split_pairs
from quoin.data.sources import TokenizerName
from quoin.data.tokenizers import Tokenizer, tokenizer_from_json
from quoin.display import shown
from quoin.documents import Count
from quoin.errors import UserError, format_value
from quoin.tensor.labels import as_indices

__all__ = [
    "LabeledBatch",
    "LabeledCorpus",
    "LabeledTextInfo",
    "LabeledTexts",
    "encode_texts",
    "labeled_text_info",
    "load_labeled_corpus",
]


@shown
class LabeledBatch(NamedTuple):
    """Texts padded to the longest among them, and the number of each one's class."""

    tokens: Int[Tensor, "batch seq"]
    lengths: Int[Tensor, "batch"]  # how many tokens are real
    labels: Int[Tensor, "batch"]


@shown
class LabeledTexts:
    """Texts in tokens with their classes; `read(rows)` gives those of a batch, padded to the longest among them, or
    `among` other rows.

    All are kept in one row with the indices where they begin, so that a long one does not widen the others.

    Args:
        pairs: Texts as sources, the names of their classes as targets.
        class_names: All classes; a label is the index of its name here.
    """

    def __init__(
        self, pairs: Pairs, tokenizer: Tokenizer, class_names: Sequence[str], device: torch.device | str | None = None
    ) -> None:
        self.pairs = pairs
        numbers = {name: number for number, name in enumerate(class_names)}
        encoded = encode_texts(tokenizer, pairs.sources)
        self.labels = torch.tensor([numbers[name] for name in pairs.targets], device=device)
        self.lengths = torch.tensor([len(tokens) for tokens in encoded], device=device)
        self._starts = self.lengths.cumsum(0) - self.lengths
        self._tokens = torch.cat(encoded).to(device)

    def __len__(self) -> int:
        return len(self.pairs)

    def read(self, rows: Int[Tensor, "batch"], among: Int[Tensor, "total"] | None = None) -> LabeledBatch:
        rows = rows.to(self._tokens.device)
        rows = as_indices(rows, "rows")
        lengths = self.lengths[rows]
        longest = lengths.max() if among is None else self.lengths[among.to(rows.device)].max()
        within = torch.arange(int(longest), device=rows.device).expand(len(rows), -1)
        indices = (self._starts[rows][:, None] + within).clamp(max=len(self._tokens) - 1)
        return LabeledBatch(
            torch.where(within < lengths[:, None], self._tokens[indices], 0), lengths, self.labels[rows]
        )


@shown
class LabeledCorpus(NamedTuple):
    """Texts in tokens; no text of one split is in another."""

    name: str
    tokenizer: Tokenizer
    class_names: tuple[str, ...]
    train: LabeledTexts
    validation: LabeledTexts
    test: LabeledTexts
    fingerprint: str


def load_labeled_corpus(
    pairs: Pairs,
    *,
    tokenizer: TokenizerName = "char",
    vocab_size: int = 2000,
    seed: int = 0,
    device: torch.device | str | None = None,
) -> LabeledCorpus:
    """Pairs of a text and its class, split and in tokens.

    Args:
        tokenizer: "char", "word", "byte" or "bpe"; words and byte pairs are those of the training split.
        vocab_size: Most tokens of a word or byte-pair tokenizer; the other two ignore it.
        seed: Decides which texts are in which split.

    >>> corpus = load_labeled_corpus(Pairs("here", tuple("abcdefghij"), ("vowel", "other") * 5))
    >>> corpus.class_names, len(corpus.test), corpus.train.read(torch.tensor([0, 1])).lengths
    (('other', 'vowel'), 1, tensor([1, 1]))
    """
    class_names = tuple(sorted(set(pairs.targets)))
    if not 2 <= len(class_names) <= MAX_CLASSES:
        got = f"{len(class_names)} in {format_value(pairs.name, 200)}" + (
            f", {format_value(class_names[0])}" if len(class_names) == 1 else ""
        )
        raise UserError(
            f"expected from 2 to {MAX_CLASSES} different classes, got {got}; "
            + (
                "add texts of another class"
                if len(class_names) == 1
                else "name the column of the classes with --target"
            )
        )
    splits = split_pairs(pairs, seed)
    if absent := sorted(set(class_names) - set(splits.train.targets)) if pairs.splits else []:
        raise UserError(
            f"expected every class in the training texts of {format_value(pairs.name, 200)}, got none of "
            f"{format_value(absent[0])}: add some"
        )
    fitted = fit_tokenizer(tokenizer, vocab_size, characters=set().union(*pairs.sources), training=splits.train.sources)
    train, validation, test = (LabeledTexts(split, fitted, class_names, device) for split in splits)
    return LabeledCorpus(pairs.name, fitted, class_names, train, validation, test, pairs.fingerprint)


def encode_texts(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Int[Tensor, "_seq"]]:
    """The tokens of each text; one that is empty or has unknown characters is an error with its number, counted from
    1."""
    found = []
    for number, text in enumerate(texts, 1):
        try:
            found.append(tokenizer.encode(text))
        except UserError as error:
            raise UserError(f"text {number}, {format_value(text)}: {error}") from None
        if not len(found[-1]):
            raise UserError(
                f"expected a token or more in every text, got none in text {number}; fill it in or leave it out"
            )
    return found


@shown
@dataclass(frozen=True)
class LabeledTextInfo(DataInfo):
    """Where texts came from, what their tokens and their classes are."""

    num_texts: Count
    tokenizer_json: dict[str, Any]  # as `Tokenizer.as_json` says it
    class_names: tuple[str, ...]
    text_column: str | None = None  # of the file, where it names its columns
    target_name: str = "class"

    def __post_init__(self) -> None:
        _ = self.tokenizer

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return tokenizer_from_json(self.tokenizer_json)

    @property
    def num_classes(self) -> int:
        return len(self.class_names)


def labeled_text_info(corpus: LabeledCorpus) -> LabeledTextInfo:
    """The data info of texts that are at hand."""
    return LabeledTextInfo(
        source=corpus.name,
        num_texts=sum(map(len, (corpus.train, corpus.validation, corpus.test))),
        tokenizer_json=corpus.tokenizer.as_json(),
        class_names=corpus.class_names,
        text_column=corpus.train.pairs.column_names[0],
        target_name=corpus.train.pairs.column_names[1] or "class",
        fingerprint=corpus.fingerprint,
    )
