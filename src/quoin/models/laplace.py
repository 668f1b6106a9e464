"""Laplace smoothing: as if, beside what was counted, so many tokens had been seen that were spread as a shorter context says.

    P(x | c) = (n(c, x) + ε P(x | shorter)) / (n(c) + ε),   n(c) = sum_x n(c, x)

n(c) counts contexts, that is occurrences with a successor: the last token of a text has none, and counted nonetheless it would take the sum
below one.   m tokens in the vocabulary
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.models.ngram import NgramModel
from quoin.models.ngram_counts import NgramCounts
from quoin.tensor import as_floating

__all__ = ["laplace_bigram", "laplace_law", "laplace_ngram", "laplace_trigram", "laplace_unigram"]


def laplace_law(counts: Tensor, strength: float | Tensor, shorter: Tensor) -> Tensor:  # (..., m), (..., m) -> (..., m)
    """(n(c, x) + ε P(x)) / (n(c) + ε) with ε = `strength` and P = `shorter`; P itself where nothing follows c.

    Notes: Z9.6c.
    """
    shorter = as_floating(shorter)
    strength = torch.as_tensor(strength, dtype=shorter.dtype)
    if bool((strength < 0).any()) or bool(strength.isnan().any()):
        raise Mistake(f"expected strengths of 0 or more, got {float(strength.min()):g}: raise it")
    total = counts.sum(dim=-1, keepdim=True)
    known = (total > 0) & strength.isfinite()
    smoothed = (counts + torch.where(known, strength, 0) * shorter) / torch.where(known, total + strength, 1)
    return torch.where(known, smoothed, shorter)


def laplace_unigram(counts: Tensor, strength: float | Tensor) -> Tensor:  # (m,) -> (m,)
    """P(x) = (n(x) + ε₁/m) / (n + ε₁) for n tokens.

    >>> laplace_unigram(torch.tensor([3, 1, 0, 0]), 4.0)
    tensor([0.5000, 0.2500, 0.1250, 0.1250])

    Notes: Z9.4.
    """
    m = counts.shape[-1]
    dtype = torch.result_type(counts, torch.as_tensor(strength))
    return laplace_law(counts, strength, torch.full((m,), 1 / m, dtype=dtype))


def laplace_bigram(counts: Tensor, unigram: Tensor, strength: float | Tensor) -> Tensor:  # (m, m), (m,) -> (m, m)
    """P(x' | x) = (n(x, x') + ε₂ P(x')) / (n(x) + ε₂), n(x) counting the x that have a successor.

    Notes: Z9.5, ZE20.
    """
    return laplace_law(counts, strength, unigram.expand(counts.shape))


def laplace_trigram(counts: Tensor, unigram: Tensor, strength: float | Tensor) -> Tensor:  # (m, m, m), (m,) -> (m, m, m)
    """P(x'' | x, x') = (n(x, x', x'') + ε₃ P(x'')) / (n(x, x') + ε₃): the law of single tokens stands in, not that of pairs.

    Notes: Z9.6, ZE20.
    """
    return laplace_law(counts, strength, unigram.expand(counts.shape))


def laplace_ngram(counts: NgramCounts, strengths: float | Sequence[float], *, dtype: torch.dtype = torch.float32) -> NgramModel:
    """The smoothed law of every context: what stands in for one of k tokens is the smoothed law of its last k - 1.

    `strengths` are ε₁, ε₂, ... for n-grams of 1, 2, ... tokens, or one for all. At ε = 0 a context that occurred gives the frequencies
    alone; at infinity its law is that of the shorter one, so that (ε₁, inf, ε₃) is `laplace_trigram`.

    Notes: Z9.4, Z9.5, Z9.6.
    """
    given = [float(strengths)] * counts.order if isinstance(strengths, (int, float)) else [float(each) for each in strengths]
    if len(given) != counts.order:
        raise Mistake(f"expected a strength for each of the {counts.order} lengths of n-grams, or one for all, got {len(given)}")
    if wrong := [each for each in given if not each >= 0]:
        raise Mistake(f"expected strengths of 0 or more, got {wrong[0]:g}: raise it")
    total = counts.children_sums(counts.counts).double()
    strength = torch.tensor([*given, math.inf], dtype=torch.float64)[counts.lengths()]  # of the context that the node is
    mixed = (total > 0) & strength.isfinite()
    whole = torch.where(mixed, total + strength, math.inf)  # by which all shares become 0
    weights = torch.where(mixed, strength / (total + strength), 1.0)
    return NgramModel.of(counts, counts.counts / whole[counts.parents], weights, dtype=dtype)
