"""Modified Kneser-Ney smoothing, interpolated (Chen and Goodman, 1998): take a little off every count, and give it to
shorter contexts.

    P(x | c) = (n(c, x) - D(n(c, x))) / n(c) + γ(c) P(x | shorter),   γ(c) = sum_x D(n(c, x)) / n(c)

Counts of n-grams shorter than the longest are not how often they occur but after how many different tokens: `Francisco`
is common, and yet unlikely where no `San` stands before it.
"""

import torch
from jaxtyping import Float, Float64, Int, Real
from torch import Tensor

from quoin.models.ngram import NgramModel
from quoin.models.ngram_counts import NgramCounts
from quoin.tensor import as_floating

__all__ = ["kneser_ney_counts", "kneser_ney_discounts", "kneser_ney_ngram", "kneser_ney_probs"]

WITHOUT_EVIDENCE = (0.5, 1.0, 1.5)  # where a text is too small or too regular to estimate them


def kneser_ney_discounts(counts: Real[Tensor, "..."]) -> Float64[Tensor, "4"]:
    """D(0) = 0 and D(j) = j - (j + 1) Y t_{j+1} / t_j for j = 1, 2, and 3 or more, with Y = t_1 / (t_1 + 2 t_2).

    t_j is how many n-grams have count j, so that what is taken off is what such n-grams would lose in a second text of
    the same kind. Where one of them is not above 0 and at most j, as with some t_j = 0, D = 1/2, 1, 3/2.

    >>> kneser_ney_discounts(torch.tensor([1, 1, 1, 1, 2, 2, 3, 4]))  # t = 4, 2, 1, 1; Y = 1/2
    tensor([0.0000, 0.5000, 1.2500, 1.0000], dtype=torch.float64)
    """
    t = torch.bincount(counts.flatten().clamp(max=5).long(), minlength=6)[1:5].double()
    j = torch.arange(1, 4)
    found = j - (j + 1) * t[0] / (t[0] + 2 * t[1]) * t[1:] / t[:-1]
    if not bool(((found > 0) & (found <= j)).all()):  # NaN is neither
        found = torch.tensor(WITHOUT_EVIDENCE, dtype=torch.float64)
    return torch.cat([found.new_zeros(1), found])


def kneser_ney_probs(
    counts: Real[Tensor, "*#batch vocab"], discounts: Float[Tensor, "4"], lower_order: Real[Tensor, "*#batch vocab"]
) -> Float[Tensor, "*#batch vocab"]:
    """(n(c, x) - D(n(c, x))) / n(c) + γ(c) P(x) with P = `lower_order`; P itself where nothing follows c.

    Args:
        counts: n(c, x) for each token x on the last axis.
        discounts: D(0), ..., D(3), as `kneser_ney_discounts` gives them; the last is that of larger counts too.
    """
    total = counts.sum(dim=-1, keepdim=True)
    lower_order = as_floating(lower_order, discounts)
    taken = discounts.to(lower_order.dtype)[counts.clamp(max=3).long()]  # as bytes they would be a mask
    mixed = (counts - taken + taken.sum(dim=-1, keepdim=True) * lower_order) / total.clamp(min=1)
    return torch.where(total > 0, mixed, lower_order)


def kneser_ney_counts(counts: NgramCounts) -> Int[Tensor, "nodes"]:
    """How often each of the longest n-grams occurs; of each shorter one, how many different tokens stand before it."""
    before = torch.zeros_like(counts.counts)
    second, longest = counts.begins[1], counts.begins[-2]
    suffixes = counts.suffixes()
    before.index_add_(0, suffixes[second:], torch.ones_like(suffixes[second:]))
    before[longest:] = counts.counts[longest:]
    return before


def kneser_ney_ngram(counts: NgramCounts, *, dtype: torch.dtype = torch.float32) -> NgramModel:
    """The smoothed distribution of every context; the discounts of each length come from its own counts, below single
    tokens all are alike.
    """
    found = kneser_ney_counts(counts)
    taken = torch.zeros(len(found), dtype=torch.float64)
    for begin, end in zip(counts.begins[1:], counts.begins[2:]):
        taken[begin:end] = kneser_ney_discounts(found[begin:end])[found[begin:end].clamp(max=3)]
    total = counts.children_sums(found).double()
    weights = torch.where(total > 0, counts.children_sums(taken) / total, 1.0)
    return NgramModel.from_counts(counts, (found - taken) / total[counts.parents].clamp(min=1), weights, dtype=dtype)
