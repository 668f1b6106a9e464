"""Pairs of sentences in tokens: padded batches, and the marks where a sentence begins and ends.

b pairs, n tokens of the longest source, t tokens of the longest target, with the mark of its end
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from quoin.data.pairs import Pairs
from quoin.data.vocabulary import Vocabulary, check_tokens, vocabulary_from_json
from quoin.tensor.labels import as_indices

__all__ = ["BOS", "EOS", "PAD", "PairBatch", "PairVocabulary", "TokenPairs"]

PAD, BOS, EOS = 0, 1, 2  # padding, the beginning of a sentence, its end
MARKS = 3


class PairVocabulary:
    """The tokens of a vocabulary behind three marks: padding 0, the beginning of a sentence 1, its end 2.

    >>> from quoin.data import CharacterVocabulary
    >>> letters = PairVocabulary(CharacterVocabulary.of("abc"))
    >>> letters.encode("cab"), letters.decode([1, 5, 3, 4, 2, 0, 0])
    (tensor([5, 3, 4, 2]), 'cab')
    """

    def __init__(self, tokens: Vocabulary) -> None:
        self.tokens = tokens

    @property
    def size(self) -> int:
        return MARKS + self.tokens.size

    def encode(self, text: str) -> Tensor:  # -> (n + 1,), int64
        """The tokens of a sentence and the mark of its end."""
        return torch.cat([self.tokens.encode(text) + MARKS, torch.tensor([EOS])])

    def decode(self, tokens: Tensor | Sequence[int]) -> str:
        """The sentence up to the first mark of its end; other marks say nothing."""
        found = check_tokens(tokens, self.size).tolist()
        found = found[: found.index(EOS)] if EOS in found else found
        return self.tokens.decode([token - MARKS for token in found if token >= MARKS])

    def as_json(self) -> dict[str, Any]:
        """All there is to it, for `from_json`."""
        return self.tokens.as_json()

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "PairVocabulary":
        return cls(vocabulary_from_json(values))


class PairBatch(NamedTuple):
    """What a translation model reads and what it shall say; the lengths count what is not padding."""

    source: Tensor  # (b, n), int64, each ends with EOS
    source_lengths: Tensor  # (b,)
    inputs: Tensor  # (b, t), int64: BOS y_1 ... y_{t-1}
    targets: Tensor  # (b, t), int64: y_1 ... y_{t-1} EOS
    target_lengths: Tensor  # (b,)


class TokenPairs:
    """Pairs in tokens; `read(rows)` gives those of a batch, padded to the longest among them.

    Each side is kept in one row with the places where its sentences begin, so that a long one does not widen the others.
    """

    def __init__(self, pairs: Pairs, source: PairVocabulary, target: PairVocabulary, device: torch.device | str | None = None) -> None:
        self.pairs = pairs
        self._source, self._target = (_Sentences(side, words, device) for side, words in ((pairs.sources, source), (pairs.targets, target)))

    def __len__(self) -> int:
        return len(self.pairs)

    def read(self, rows: Tensor) -> PairBatch:  # (b,)
        source, source_lengths = self._source.read(rows)
        targets, target_lengths = self._target.read(rows)
        inputs = targets.roll(1, dims=1)
        inputs[:, 0] = BOS
        inputs = inputs.masked_fill(inputs == EOS, PAD)  # the end is said, not read
        return PairBatch(source, source_lengths, inputs, targets, target_lengths)

    def lengths(self) -> tuple[Tensor, Tensor]:  # (n,), (n,)
        """How many tokens each source and each target has, with the mark of its end."""
        return self._source.lengths, self._target.lengths


class _Sentences:
    def __init__(self, sentences: Sequence[str], vocabulary: PairVocabulary, device: torch.device | str | None) -> None:
        encoded = [vocabulary.encode(sentence) for sentence in sentences]
        self.lengths = torch.tensor([len(tokens) for tokens in encoded], device=device)
        self.starts = self.lengths.cumsum(0) - self.lengths
        self.tokens = torch.cat(encoded).to(device)

    def read(self, rows: Tensor) -> tuple[Tensor, Tensor]:  # (b,) -> (b, longest), (b,)
        rows = as_indices(rows, "rows").to(self.tokens.device)
        lengths = self.lengths[rows]
        within = torch.arange(int(lengths.max()), device=rows.device).expand(len(rows), -1)
        real = within < lengths[:, None]
        places = self.starts[rows][:, None] + within
        return torch.where(real, self.tokens[places.clamp(max=len(self.tokens) - 1)], PAD), lengths
