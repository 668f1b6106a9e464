"""How far apart two laws are: L^p, total variation, Kullback-Leibler, cross-entropy; in nats, one number for each pair of laws.

A law stands along the last axis, and what comes before are batch axes. That p comes first and q second matters for the last
two: what p does not do costs nothing (0 log 0 = 0), and what q calls impossible while p does it costs infinity.   n outcomes
"""

from typing import NamedTuple

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.prob.law import check_law
from quoin.tensor import check_shapes

__all__ = [
    "TotalVariation",
    "cross_entropy_of",
    "kl",
    "lp_distance",
    "lp_distance_definition",
    "total_variation",
    "total_variation_definition",
]

_MOST_OUTCOMES = 20  # a million events


def lp_distance_definition(p: Tensor, q: Tensor, order: float) -> Tensor:  # (..., n), (..., n) -> (...)
    """(sum_i |p_i - q_i|^order)^(1/order) for order >= 1; max_i |p_i - q_i| for an infinite one.

    Notes: D1.4-2.
    """
    _check(p, q)
    _check_order(order)
    apart = (p - q).abs()
    return apart.amax(dim=-1) if order == float("inf") else apart.pow(order).sum(dim=-1).pow(1 / order)


def lp_distance(p: Tensor, q: Tensor, order: float) -> Tensor:  # (..., n), (..., n) -> (...)
    """`lp_distance_definition` on torch's kernel, which has a gradient (zero) where p = q too.

    Notes: D1.4-2.
    """
    _check(p, q)
    _check_order(order)
    return torch.linalg.vector_norm(p - q, ord=order, dim=-1)


class TotalVariation(NamedTuple):
    """The largest gap, and an event at which it is reached."""

    output: Tensor  # ()
    event: Tensor  # (n,) of truth values: which outcomes belong to the event


def total_variation_definition(p: Tensor, q: Tensor) -> TotalVariation:  # (n,), (n,)
    """The largest |p(A) - q(A)| over all 2^n events A, each tried.

    Notes: D1.4-4.
    """
    _check(p, q)
    check_shapes("n, n", p=p, q=q)
    n = len(p)
    if n > _MOST_OUTCOMES:
        raise Mistake(f"expected at most {_MOST_OUTCOMES} outcomes to try every event of, came {n}; use total_variation")
    events = torch.arange(2**n, device=p.device).unsqueeze(-1) >> torch.arange(n, device=p.device) & 1  # (2^n, n)
    gaps = (events.to(p.dtype) @ (p - q)).abs()
    largest = gaps.argmax()
    return TotalVariation(gaps[largest], events[largest].bool())


def total_variation(p: Tensor, q: Tensor) -> Tensor:  # (..., n), (..., n) -> (...)
    """`total_variation_definition(p, q).output` as half the L^1 distance, reached at the event {p >= q}.

    Notes: D1.4-4.
    """
    return lp_distance(p, q, 1) / 2


def cross_entropy_of(p: Tensor, q: Tensor) -> Tensor:  # (..., n), (..., n) -> (...)
    """CE(p, q) = -sum_i p_i log q_i; with q = p it is the entropy of p.

    >>> cross_entropy_of(torch.tensor([1.0, 0.0]), torch.tensor([0.25, 0.75]))  # log 4
    tensor(1.3863)
    """
    _check(p, q)
    # Where both are zero the term is 0 log 0 = 0; a one in q's place gives that, and a gradient that is a number.
    q = torch.where((p == 0) & (q == 0), 1, q)
    return -(p * q.log()).sum(dim=-1)


def kl(p: Tensor, q: Tensor) -> Tensor:  # (..., n), (..., n) -> (...)
    """KL(p || q) = sum_i p_i log(p_i / q_i).

    At p_i = 0, where the slope in p_i is minus infinity, the gradient takes -log q_i instead.

    >>> kl(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]))
    tensor(inf)
    """
    _check(p, q)
    nothing = p == 0
    q = torch.where(nothing & (q == 0), 1, q)
    return (p * (torch.where(nothing, 1, p).log() - q.log())).sum(dim=-1)


def _check(p: Tensor, q: Tensor) -> None:
    check_law(p, "p")
    check_law(q, "q")
    check_shapes("... n, ... n", p=p, q=q)


def _check_order(order: float) -> None:
    if not order >= 1:
        raise Mistake(f"expected an order of at least 1, came {order}; below it the triangle inequality fails")
