"""Laplace smoothing: as if, beside what was counted, so many tokens had been seen, by the lower order's probabilities.

    P(x | c) = (n(c, x) + ε P(x | shorter)) / (n(c) + ε),   n(c) = sum_x n(c, x)

n(c) counts contexts, that is occurrences with a successor: the last token of a text has none, and counted nonetheless
it would take the sum below one.   m tokens in the vocabulary
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.models.ngram import NgramModel
from quoin.models.ngram_counts import NgramCounts
from quoin.tensor import as_floating

__all__ = ["laplace_bigram", "laplace_ngram", "laplace_probs", "laplace_trigram", "laplace_unigram"]


def laplace_probs(
    counts: Real[Tensor, "*#batch vocab"],
    pseudo_count: float | Real[Tensor, "..."],
    lower_order: Real[Tensor, "*#batch vocab"],
) -> Float[Tensor, "*#batch vocab"]:
    """(n(c, x) + ε P(x)) / (n(c) + ε) with ε = `pseudo_count` and P = `lower_order`; P itself where nothing follows c.

    Notes: Z9.6c.
    """
    lower_order = as_floating(lower_order)
    pseudo_count = torch.as_tensor(pseudo_count, dtype=lower_order.dtype)
    if bool((pseudo_count < 0).any()) or bool(pseudo_count.isnan().any()):
        raise UserError(f"expected pseudo-counts of 0 or more, got {float(pseudo_count.min()):g}: raise it")
    total = counts.sum(dim=-1, keepdim=True)
    known = (total > 0) & pseudo_count.isfinite()
    smoothed = (counts + torch.where(known, pseudo_count, 0) * lower_order) / torch.where(
        known, total + pseudo_count, 1
    )
    return torch.where(known, smoothed, lower_order)


def laplace_unigram(counts: Real[Tensor, "vocab"], pseudo_count: float | Real[Tensor, ""]) -> Float[Tensor, "vocab"]:
    """P(x) = (n(x) + ε₁/m) / (n + ε₁) for n tokens.

    Args:
        counts: n(x) of each token.
        pseudo_count: ε₁; 0 gives the relative frequencies.

    >>> laplace_unigram(torch.tensor([3, 1, 0, 0]), 4.0)
    tensor([0.5000, 0.2500, 0.1250, 0.1250])

    Notes: Z9.4.
    """
    m = counts.shape[-1]
    dtype = torch.result_type(counts, torch.as_tensor(pseudo_count))
    return laplace_probs(counts, pseudo_count, torch.full((m,), 1 / m, dtype=dtype))


def laplace_bigram(
    counts: Real[Tensor, "vocab vocab"], unigram: Float[Tensor, "vocab"], pseudo_count: float | Real[Tensor, "..."]
) -> Float[Tensor, "vocab vocab"]:
    """P(x' | x) = (n(x, x') + ε₂ P(x')) / (n(x) + ε₂), n(x) counting the x that have a successor.

    Args:
        unigram: P, as `laplace_unigram` gives it.
        pseudo_count: ε₂; 0 gives the relative frequencies of what follows x.

    Notes: Z9.5, ZE20.
    """
    return laplace_probs(counts, pseudo_count, unigram.expand(counts.shape))


def laplace_trigram(
    counts: Real[Tensor, "vocab vocab vocab"],
    unigram: Float[Tensor, "vocab"],
    pseudo_count: float | Real[Tensor, "..."],
) -> Float[Tensor, "vocab vocab vocab"]:
    """P(x'' | x, x') = (n(x, x', x'') + ε₃ P(x'')) / (n(x, x') + ε₃): the distribution of single tokens stands in, not
    that of pairs.

    Args:
        unigram: P, as `laplace_unigram` gives it.
        pseudo_count: ε₃; 0 gives the relative frequencies of what follows x, x'.

    Notes: Z9.6, ZE20.
    """
    return laplace_probs(counts, pseudo_count, unigram.expand(counts.shape))


def laplace_ngram(
    counts: NgramCounts, pseudo_counts: float | Sequence[float], *, dtype: torch.dtype = torch.float32
) -> NgramModel:
    """The smoothed distribution of every context: what stands in for one of k tokens is the smoothed distribution of
    its last k - 1.

    `pseudo_counts` are ε₁, ε₂, ... for n-grams of 1, 2, ... tokens, or one for all. At ε = 0 a context that occurred
    gives the frequencies alone; at infinity its distribution is that of the shorter one, so that (ε₁, inf, ε₃) is
    `laplace_trigram`.

    Notes: Z9.4, Z9.5, Z9.6.
    """
    given = (
        [float(pseudo_counts)] * counts.order
        if isinstance(pseudo_counts, (int, float))
        else [float(each) for each in pseudo_counts]
    )
    if len(given) != counts.order:
        raise UserError(
            f"expected a pseudo-count for each of the {counts.order} lengths of n-grams, or one for all, got "
            f"{len(given)}"
        )
    if wrong := [each for each in given if not each >= 0]:
        raise UserError(f"expected pseudo-counts of 0 or more, got {wrong[0]:g}: raise it")
    total = counts.children_sums(counts.counts).double()
    pseudo_count = torch.tensor([*given, math.inf], dtype=torch.float64)[
        counts.lengths()
    ]  # of the context that the node is
    mixed = (total > 0) & pseudo_count.isfinite()
    whole = torch.where(mixed, total + pseudo_count, math.inf)  # by which all probabilities become 0
    weights = torch.where(mixed, pseudo_count / (total + pseudo_count), 1.0)
    return NgramModel.from_counts(counts, counts.counts / whole[counts.parents], weights, dtype=dtype)
