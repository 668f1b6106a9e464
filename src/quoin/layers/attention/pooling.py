"""Attention pooling: a query weighs the keys of a store by a score, and gathers their values by these weights.

Scores are in scores.py. A way of weighing takes the scores (..., n, m) and a mask that broadcasts to them, or None; the
three here are soft, hard and blind. A store read by unit vectors is in lookup.py, kernels of distances are in
nadaraya_watson.py.

n queries, m keys of dimension e with values of dimension v
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor import as_floating, check_floating, check_mask, check_shapes, masked_softmax, zero_masked

__all__ = [
    "Pooled",
    "argmax_weights",
    "attention_pooling",
    "attention_pooling_definition",
    "pool_values",
    "pool_values_definition",
    "softmax_weights",
    "uniform_weights",
]

Score = Callable[[Tensor, Tensor], Tensor]  # (..., n, d), (..., m, e) -> (..., n, m)
Weigh = Callable[[Tensor, Tensor | None], Tensor]  # (..., n, m), its mask -> (..., n, m)


@shown
class Pooled(NamedTuple):
    """The values gathered for each query, and the weights that gathered them."""

    output: Float[Tensor, "... query value_dim"]
    weights: Float[Tensor, "... query key"]


def pool_values_definition(
    weights: Real[Tensor, "*batch query key"],
    value: Real[Tensor, "*batch key value_dim"],
    mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
) -> Float[Tensor, "*batch query value_dim"]:
    """sum_i alpha_i v_i: for each query one linear combination of all values that it may see, with any real weights.

    Args:
        mask: True where a query may attend to a key; None lets it attend to all.

    Notes: Z11.1.
    """
    check_shapes("... n m, ... m v", weights=weights, value=value)
    weights, value = as_floating(weights, value), as_floating(value, weights)
    seen = _pairs(weights.shape, weights, mask)
    shown = [torch.where(seen[..., i, None], value[..., i, :].unsqueeze(-2), 0) for i in range(value.shape[-2])]
    terms = [weights[..., i, None] * v for i, v in enumerate(shown)]
    return sum(terms, start=weights.new_zeros(*weights.shape[:-1], value.shape[-1]))


def pool_values(
    weights: Real[Tensor, "*batch query key"],
    value: Real[Tensor, "*batch key value_dim"],
    mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
) -> Float[Tensor, "*batch query value_dim"]:
    """`pool_values_definition` as one matrix product; a value that no query may see counts as zero, even if it is NaN.

    Args:
        mask: True where a query may attend to a key; None lets it attend to all.

    Notes: Z11.1.
    """
    check_shapes("... n m, ... m v", weights=weights, value=value)
    weights, value = as_floating(weights, value), as_floating(value, weights)
    if mask is not None:
        check_mask(mask, weights.shape)
        value = zero_masked(value, mask)
    return weights @ value


def attention_pooling_definition(
    query: Real[Tensor, "*batch query query_dim"],
    key: Real[Tensor, "*batch key key_dim"],
    value: Real[Tensor, "*batch key value_dim"],
    score: Score,
    weigh: Weigh,
    *,
    mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
) -> Pooled:
    """Attention(q, D) = sum_i alpha(q, k_i) v_i over the pairs (k_i, v_i) of D, with weights that come from the scores
    a(q, k_i).

    The score is computed for one query and one key at a time; a key that the query may not see counts as zero, and so
    does its value.

    Args:
        score: a, from queries (..., n, d) and keys (..., m, e) to (..., n, m), such as `scaled_dot_score`.
        weigh: From scores and mask to weights of the same shape, such as `softmax_weights`.
        mask: True where a query may attend to a key; None lets it attend to all.

    Notes: Z11.1.
    """
    _check(query, key, value)
    seen = _pairs((*query.shape[:-1], key.shape[-2]), query, mask)
    pairs = [
        [score(q, torch.where(seen[..., i, j, None, None], k, 0)) for j, k in enumerate(key.split(1, dim=-2))]
        for i, q in enumerate(query.split(1, dim=-2))
    ]
    weights = weigh(torch.cat([torch.cat(row, dim=-1) for row in pairs], dim=-2), mask)
    return Pooled(pool_values_definition(weights, value, mask), weights)


def attention_pooling(
    query: Real[Tensor, "*batch query query_dim"],
    key: Real[Tensor, "*batch key key_dim"],
    value: Real[Tensor, "*batch key value_dim"],
    score: Score,
    weigh: Weigh,
    *,
    mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
) -> Pooled:
    """`attention_pooling_definition` with all scores at once. Keys and values that no query may see are never used.

    Of queries, keys and values that are one input x it makes a layer that is no activation of A x + b, entry by entry.

    Args:
        score: a, from queries (..., n, d) and keys (..., m, e) to (..., n, m), such as `scaled_dot_score`.
        weigh: From scores and mask to weights of the same shape, such as `softmax_weights`.
        mask: True where a query may attend to a key; None lets it attend to all.

    >>> from quoin.layers.attention.scores import scaled_dot_score
    >>> store = torch.eye(3)
    >>> attention_pooling(store[1:2], store, 10 * store, scaled_dot_score, argmax_weights).output
    tensor([[ 0., 10.,  0.]])

    Notes: Z11.1, D1.1-26.
    """
    _check(query, key, value)
    if mask is not None:
        check_mask(mask, (*query.shape[:-1], key.shape[-2]))
        key = zero_masked(key, mask)
    weights = weigh(score(query, key), mask)
    return Pooled(pool_values(weights, value, mask), weights)


def softmax_weights(
    scores: Float[Tensor, "*batch query key"],
    mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Soft weights: alpha(q, k_i) = exp a(q, k_i) / sum_j exp a(q, k_j), the sum over the keys that the query may see.

    Args:
        mask: True where a query may attend to a key; None lets it attend to all.

    Notes: Z11.6.
    """
    return masked_softmax(scores, mask)


def argmax_weights(
    scores: Float[Tensor, "*batch query key"],
    mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Weight 1 for the key of the highest score, the first of equals, and 0 for the others: a query to a database.

    Args:
        mask: True where a query may attend to a key; None lets it attend to all.

    Notes: Z11.4.
    """
    check_floating(scores, "scores")
    if mask is not None:
        check_mask(mask, scores.shape)
        scores = scores.masked_fill(~mask, -math.inf)
    chosen = torch.zeros_like(scores).scatter(-1, scores.argmax(dim=-1, keepdim=True), 1)
    return chosen if mask is None else chosen.masked_fill(~mask, 0)


def uniform_weights(
    scores: Float[Tensor, "*batch query key"],
    mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Weight 1/m for each of the m keys that the query may see, whatever the scores: average pooling.

    Args:
        mask: True where a query may attend to a key; None lets it attend to all.

    Notes: Z11.5.
    """
    check_floating(scores, "scores")
    if mask is None:
        return torch.full_like(scores, 1 / scores.shape[-1])
    check_mask(mask, scores.shape)
    seen = mask.expand(scores.shape).to(scores.dtype)
    return seen / seen.sum(dim=-1, keepdim=True).clamp(min=1)


def _pairs(shape: Sequence[int], like: Tensor, mask: Tensor | None) -> Tensor:  # -> (..., n, m)
    """Whether the query may see the key, for each pair."""
    if mask is None:
        return torch.ones(tuple(shape), dtype=torch.bool, device=like.device)
    check_mask(mask, shape)
    return mask.expand(tuple(shape))


def _check(query: Tensor, key: Tensor, value: Tensor) -> None:
    check_shapes("... n d, ... m e, ... m v", query=query, key=key, value=value)
    if not key.shape[-2]:
        raise UserError(f"expected at least one key to weigh, got shape {tuple(key.shape)}; give the store a pair")
