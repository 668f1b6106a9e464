"""Pairs of sentences in tokens: padded batches, and the special tokens BOS, EOS and PAD."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from quoin.data.pairs import Pairs
from quoin.data.tokenizers import Tokenizer, token_array, tokenizer_from_json
from quoin.display import shown
from quoin.tensor.labels import as_indices

__all__ = ["BOS", "EOS", "PAD", "PairBatch", "SpecialTokenTokenizer", "TokenPairs"]

PAD = 0  # padding
BOS = 1  # the beginning of a sentence
EOS = 2  # its end
NUM_SPECIAL_TOKENS = 3


@shown
class SpecialTokenTokenizer:
    """A tokenizer behind three special tokens: PAD 0, BOS 1, EOS 2.

    >>> from quoin.data import CharTokenizer
    >>> letters = SpecialTokenTokenizer(CharTokenizer.fit("abc"))
    >>> letters.encode("cab"), letters.decode([1, 5, 3, 4, 2, 0, 0])
    (tensor([5, 3, 4, 2]), 'cab')
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    @property
    def vocab_size(self) -> int:
        return NUM_SPECIAL_TOKENS + self.tokenizer.vocab_size

    def encode(self, text: str) -> Int[Tensor, "seq"]:
        """The tokens of a sentence and EOS."""
        return torch.cat([self.tokenizer.encode(text) + NUM_SPECIAL_TOKENS, torch.tensor([EOS])])

    def decode(self, tokens: Int[Tensor, "seq"] | Sequence[int]) -> str:
        """The sentence up to the first EOS; other special tokens are skipped."""
        found = token_array(tokens, self.vocab_size).tolist()
        found = found[: found.index(EOS)] if EOS in found else found
        return self.tokenizer.decode([token - NUM_SPECIAL_TOKENS for token in found if token >= NUM_SPECIAL_TOKENS])

    def as_json(self) -> dict[str, Any]:
        """All there is to it, for `from_json`."""
        return self.tokenizer.as_json()

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "SpecialTokenTokenizer":
        return cls(tokenizer_from_json(values))


@shown
class PairBatch(NamedTuple):
    """What a translation model reads and what it predicts; the lengths count what is not padding."""

    source: Int[Tensor, "batch source_seq"]  # each ends with EOS
    source_lengths: Int[Tensor, "batch"]
    inputs: Int[Tensor, "batch target_seq"]  # BOS y_1 ... y_{t-1}
    targets: Int[Tensor, "batch target_seq"]  # y_1 ... y_{t-1} EOS
    target_lengths: Int[Tensor, "batch"]


@shown
class TokenPairs:
    """Pairs in tokens; `read(rows)` gives those of a batch, padded to the longest among them, or `among` other rows.

    Each side is kept in one row with the indices where its sentences begin, so that a long one does not widen the
    others.

    Args:
        source: Tokenizer of the sources.
        target: Tokenizer of the targets.
    """

    def __init__(
        self,
        pairs: Pairs,
        source: SpecialTokenTokenizer,
        target: SpecialTokenTokenizer,
        device: torch.device | str | None = None,
    ) -> None:
        self.pairs = pairs
        self._source, self._target = (
            _Sentences(side, words, device) for side, words in ((pairs.sources, source), (pairs.targets, target))
        )

    def __len__(self) -> int:
        return len(self.pairs)

    def read(self, rows: Int[Tensor, "batch"], among: Int[Tensor, "total"] | None = None) -> PairBatch:
        source, source_lengths = self._source.read(rows, among)
        targets, target_lengths = self._target.read(rows, among)
        inputs = targets.roll(1, dims=1)
        inputs[:, 0] = BOS
        inputs = inputs.masked_fill(inputs == EOS, PAD)  # EOS is predicted, not read
        return PairBatch(source, source_lengths, inputs, targets, target_lengths)

    def lengths(self) -> tuple[Int[Tensor, "samples"], Int[Tensor, "samples"]]:
        """How many tokens each source and each target has, with its EOS."""
        return self._source.lengths, self._target.lengths


class _Sentences:
    def __init__(
        self, sentences: Sequence[str], tokenizer: SpecialTokenTokenizer, device: torch.device | str | None
    ) -> None:
        encoded = [tokenizer.encode(sentence) for sentence in sentences]
        self.lengths = torch.tensor([len(tokens) for tokens in encoded], device=device)
        self.starts = self.lengths.cumsum(0) - self.lengths
        self.tokens = torch.cat(encoded).to(device)

    def read(self, rows: Tensor, among: Tensor | None) -> tuple[Tensor, Tensor]:  # (b,) -> (b, longest), (b,)
        rows = as_indices(rows, "rows").to(self.tokens.device)
        lengths = self.lengths[rows]
        longest = lengths.max() if among is None else self.lengths[among.to(self.tokens.device)].max()
        within = torch.arange(int(longest), device=rows.device).expand(len(rows), -1)
        real = within < lengths[:, None]
        indices = self.starts[rows][:, None] + within
        return torch.where(real, self.tokens[indices.clamp(max=len(self.tokens) - 1)], PAD), lengths
