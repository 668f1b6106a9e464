"""How often every n-gram occurs in a text: from the definition for one n, and all n up to an order at millions of
tokens a second.

The fast form is a tree whose nodes are the n-grams that occur, shortest first: node 0 is the empty one, and a node's
children are one token longer. Its edges are one rising list of whole numbers, so finding a child is a binary search,
and the children of a node stand side by side.   m tokens in the vocabulary, n-grams of 1 .. N tokens, v nodes
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float, Int, Int64, Integer, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor import check_token_ids

__all__ = ["NgramCounts", "find_children", "ngram_counts", "ngram_counts_definition", "relative_frequencies"]

MOST_NUMBERS = 2**26  # entries of a dense table
DENSE_RATIO = 8  # a table of all possible keys beats sorting up to about so many entries a token


def ngram_counts_definition(tokens: Integer[Tensor, "seq"], vocab_size: int, length: int) -> Int64[Tensor, "..."]:
    """n(x_1, ..., x_k): how often these k = `length` tokens stand one after the other, one axis of the vocabulary for
    each.

    >>> ngram_counts_definition(torch.tensor([0, 1, 0, 0, 1]), 2, 2)
    tensor([[1, 2],
            [1, 0]])

    Notes: Z9.3.
    """
    _check(tokens, vocab_size, length)
    if vocab_size**length > MOST_NUMBERS:
        raise UserError(
            f"expected a table of at most {MOST_NUMBERS} counts, got {vocab_size}^{length}: use ngram_counts"
        )
    counts = torch.zeros((vocab_size,) * length, dtype=torch.int64)
    for window in tokens.unfold(0, length, 1).tolist():
        counts[tuple(window)] += 1
    return counts


def relative_frequencies(counts: Real[Tensor, "*batch vocab"]) -> Float[Tensor, "*batch vocab"]:
    """n(x, x') / n(x), where n(x) counts how often x has a successor; NaN after an x that has none.

    >>> relative_frequencies(torch.tensor([[1, 2], [1, 0]]))
    tensor([[0.3333, 0.6667],
            [1.0000, 0.0000]])

    Notes: Z9.3.
    """
    return counts / counts.sum(dim=-1, keepdim=True)


@shown
@dataclass(frozen=True)
class NgramCounts:
    """The n-grams of a text, up to N tokens long, and how often each occurs; 16 bytes for each that does."""

    vocab_size: int
    keys: Int64[Tensor, "nodes"]  # rising: parent m + last token; -1 for the empty one
    counts: Int64[Tensor, "nodes"]  # the empty one occurs before every token
    begins: tuple[int, ...]  # the first node of each length 0 .. N, and v

    @property
    def order(self) -> int:
        return len(self.begins) - 2

    def up_to(self, order: int) -> "NgramCounts":
        """The counts of n-grams of at most `order` tokens."""
        if not 1 <= order <= self.order:
            raise UserError(
                f"expected an order from 1 to {self.order}, up to which was counted, got {order}: count again"
            )
        end = self.begins[order + 1]
        return NgramCounts(self.vocab_size, self.keys[:end], self.counts[:end], self.begins[: order + 2])

    @property
    def parents(self) -> Int[Tensor, "nodes"]:
        """The n-gram without its last token; the empty one is its own."""
        return self.keys.div(self.vocab_size, rounding_mode="floor").clamp(min=0)

    @property
    def tokens(self) -> Int[Tensor, "nodes"]:
        """The last token of each; that of the empty one says nothing."""
        return self.keys.remainder(self.vocab_size)

    def lengths(self) -> Int[Tensor, "nodes"]:
        sizes = torch.tensor([end - begin for begin, end in pairwise(self.begins)])
        return torch.repeat_interleave(torch.arange(self.order + 1), sizes)

    def children_sums(self, values: Real[Tensor, "nodes"]) -> Real[Tensor, "nodes"]:
        """For each node the sum of its children's values."""
        return torch.zeros_like(values).index_add_(0, self.parents[1:], values[1:])

    def suffixes(self) -> Int[Tensor, "nodes"]:
        """For each n-gram the node of it without its first token. It occurs wherever the whole does, so there is
        one."""
        found = torch.zeros_like(self.keys)
        for begin, end in list(pairwise(self.begins))[2:]:
            found[begin:end] = find_children(
                self.keys, self.vocab_size, found[self.parents[begin:end]], self.tokens[begin:end]
            )
        return found


def find_children(
    keys: Int[Tensor, "tree"], vocab_size: int, nodes: Int[Tensor, "*batch"], tokens: Integer[Tensor, "*batch"]
) -> Int[Tensor, "*batch"]:
    """The node of each n-gram of `nodes` with a token after it; -1 where that occurs nowhere or the n-gram itself is
    -1."""
    wanted = nodes * vocab_size + tokens
    found = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    return torch.where((nodes >= 0) & (keys[found] == wanted), found, -1)


def ngram_counts(tokens: Integer[Tensor, "seq"], vocab_size: int, order: int) -> NgramCounts:
    """How often each n-gram of 1 to `order` tokens occurs, as `ngram_counts_definition` counts them.

    Every length numbers the n-grams of the text from the numbers of those one token shorter, by one sort of n whole
    numbers.

    >>> found = ngram_counts(torch.tensor([0, 1, 0, 0, 1]), 2, 2)
    >>> found.counts  # of nothing, 0, 1, 00, 01, 10
    tensor([5, 3, 2, 1, 2, 1])

    Notes: Z9.3.
    """
    _check(tokens, vocab_size, order)
    tokens = tokens.cpu().long()
    # Nodes are numbered from 0 to n N, and the largest key is such a number times m.
    if (order * len(tokens) + 2) * vocab_size >= 2**63:
        raise UserError(
            f"expected fewer tokens, a smaller vocabulary or a lower order, got {len(tokens)}, {vocab_size} and {order}"
        )
    nodes = torch.zeros_like(tokens)  # of the n-gram that begins at each place
    keys, counts, begins = [torch.tensor([-1])], [torch.tensor([len(tokens)])], [0, 1]
    for length in range(1, order + 1):
        first = begins[-2] * vocab_size
        key_range = (begins[-1] - begins[-2]) * vocab_size
        indices = (
            (nodes[: len(tokens) - length + 1] - begins[-2]).mul_(vocab_size).add_(tokens[length - 1 :])
        )  # from 0 to key_range - 1
        found, count, nodes = (
            _numbered(indices, key_range, begins[-1]) if length < order else (*_counted(indices, key_range), nodes)
        )
        keys.append(found.add_(first))
        counts.append(count)
        begins.append(begins[-1] + len(found))
    return NgramCounts(vocab_size, torch.cat(keys), torch.cat(counts), tuple(begins))


def _counted(keys: Tensor, key_range: int) -> tuple[Tensor, Tensor]:  # (n,) from 0 to key_range - 1
    """The different keys, rising, and how often each comes."""
    if key_range <= DENSE_RATIO * len(keys):
        count = torch.bincount(keys, minlength=key_range)
        found = count.nonzero().squeeze(1)
        return found, count[found]
    return _runs(_narrow(keys, key_range).sort().values)[:2]


def _numbered(
    keys: Tensor, key_range: int, first: int
) -> tuple[Tensor, Tensor, Tensor]:  # (n,) from 0 to key_range - 1
    """What `_counted` gives, and for each key its number among the different ones, counted from `first`."""
    if key_range <= DENSE_RATIO * len(keys):
        found, count = _counted(keys, key_range)
        numbers = torch.empty(key_range, dtype=torch.int64).scatter_(0, found, torch.arange(first, first + len(found)))
        return found, count, numbers[keys]
    rising, order = _narrow(keys, key_range).sort()
    found, count, fresh = _runs(rising)
    return found, count, torch.empty_like(keys).scatter_(0, order, fresh.cumsum(0).add_(first - 1))


def _narrow(keys: Tensor, key_range: int) -> Tensor:
    return keys.int() if key_range <= 2**31 else keys  # which sort in half the time


def _runs(rising: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The different values, how often each comes, and where each comes first."""
    fresh = torch.ones_like(rising, dtype=torch.bool)
    torch.ne(rising[1:], rising[:-1], out=fresh[1:])
    indices = fresh.nonzero().squeeze(1)
    return rising[indices].long(), indices.diff(append=torch.tensor([len(rising)])), fresh


def _check(tokens: Tensor, vocab_size: int, order: int) -> None:
    if order < 1 or vocab_size < 1:
        raise UserError(f"expected an order and a vocabulary of 1 or more, got {order} and {vocab_size}: raise them")
    check_token_ids(tokens, vocab_size, ndim=1)
    if tokens.shape[0] < order:
        raise UserError(
            f"expected a text of {order} tokens or more for n-grams of that length, got {tokens.shape[0]}: lower the "
            "order"
        )
