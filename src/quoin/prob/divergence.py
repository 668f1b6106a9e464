"""How far apart two laws are: L^p, total variation, Jensen-Shannon, Kullback-Leibler, cross-entropy; in nats, one number a pair of laws.

A law stands along the last axis, and what comes before are batch axes. That p comes first and q second matters for the last
two: what p does not do costs nothing (0 log 0 = 0), and what q calls impossible while p does it costs infinity. Bits instead of nats,
and laws that are `torch.distributions`, are in quoin.info.   n outcomes
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from quoin.errors import Mistake
from quoin.prob.law import check_laws
from quoin.tensor import check_shapes
from quoin.tensor.blocks import rows_per_block

__all__ = [
    "TotalVariation",
    "cross_entropy_of",
    "jensen_shannon",
    "kl",
    "kl_definition",
    "lp_distance",
    "lp_distance_definition",
    "total_variation",
    "total_variation_definition",
]

_MOST_OUTCOMES = 20  # a million events
_BLOCK = 2**18  # entries: small enough that they and their logarithms stay in a core's cache, large enough for threads to share


def lp_distance_definition(p: Tensor, q: Tensor, order: float) -> Tensor:  # (..., n), (..., n) -> (...)
    """(sum_i |p_i - q_i|^order)^(1/order) for order >= 1; max_i |p_i - q_i| for an infinite one.

    Notes: D1.4-2.
    """
    check_laws(p, q)
    _check_order(order)
    apart = (p - q).abs()
    return apart.amax(dim=-1) if order == float("inf") else apart.pow(order).sum(dim=-1).pow(1 / order)


def lp_distance(p: Tensor, q: Tensor, order: float) -> Tensor:  # (..., n), (..., n) -> (...)
    """`lp_distance_definition` on torch's kernel, which has a gradient (zero) where p = q too.

    Notes: D1.4-2.
    """
    check_laws(p, q)
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
    check_laws(p, q)
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

    Notes: Z13.26, M17.
    """
    check_laws(p, q)
    # Where both are zero the term is 0 log 0 = 0; a one in q's place gives that, and a gradient that is a number.
    q = torch.where((p == 0) & (q == 0), 1, q)
    return -(p * q.log()).sum(dim=-1)


def kl_definition(p: Tensor, q: Tensor) -> Tensor:  # (..., n), (..., n) -> (...)
    """KL(p || q) = sum_i p_i log(p_i / q_i), with 0 log(0 / q) = 0 and p log(p / 0) = infinity.

    At p_i = 0, where the slope in p_i is minus infinity, the gradient takes -log q_i instead.

    Notes: Z13.21.
    """
    check_laws(p, q)
    return _kl(p, q)


def kl(p: Tensor, q: Tensor) -> Tensor:  # (..., n), (..., n) -> (...)
    """`kl_definition`; many laws on the CPU that nobody differentiates are taken a block at a time, each in the same memory.

    >>> kl(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]))
    tensor(inf)

    Notes: Z13.21.
    """
    check_laws(p, q)
    if p.numel() <= _BLOCK or p.device.type != "cpu" or p.dtype != q.dtype or _recorded(p, q):
        return _kl(p, q)
    return _kl_in_blocks(p.reshape(-1, p.shape[-1]), q.reshape(-1, q.shape[-1])).reshape(p.shape[:-1])


def jensen_shannon(p: Tensor, q: Tensor) -> Tensor:  # (..., n), (..., n) -> (...)
    """JS(p, q) = KL(p || m)/2 + KL(q || m)/2 with m = (p + q)/2: the same both ways, 0 only for p = q, and at most ln 2.

    >>> jensen_shannon(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))  # nothing in common: ln 2
    tensor(0.6931)
    """
    check_laws(p, q)
    middle = (p + q) / 2
    return (kl(p, middle) + kl(q, middle)) / 2


def _kl(p: Tensor, q: Tensor) -> Tensor:  # (..., n), (..., n) -> (...)
    nothing = p == 0
    q = torch.where(nothing & (q == 0), 1, q)
    return (p * (torch.where(nothing, 1, p).log() - q.log())).sum(dim=-1)


def _kl_in_blocks(p: Tensor, q: Tensor) -> Tensor:  # (k, n), (k, n) -> (k,)
    """The formula with one logarithm, and without a table-sized intermediate: fresh memory costs more than logarithms do."""
    rows = rows_per_block(p.shape[-1], _BLOCK)
    divergences = p.new_empty(len(p))
    terms, nothings = p.new_empty(rows, p.shape[-1]), p.new_empty(rows, p.shape[-1], dtype=torch.bool)
    for p_i, q_i, sums in zip(p.split(rows), q.split(rows), divergences.split(rows)):
        term, nothing = terms[: len(p_i)], nothings[: len(p_i)]
        torch.div(p_i, q_i, out=term).log_().mul_(p_i)
        term.masked_fill_(torch.eq(p_i, 0, out=nothing), 0)  # there it is NaN, whatever q says
        torch.sum(term, dim=-1, out=sums)
    far = divergences.isinf()  # or p / q was beyond the floats while its logarithm is not
    divergences[far] = _kl(p[far], q[far])
    return divergences


def _recorded(p: Tensor, q: Tensor) -> bool:
    """Whether someone follows what is done to p or q: for a gradient, for a tangent, or to compile it."""
    if torch.compiler.is_compiling() or any(forward_ad.unpack_dual(each).tangent is not None for each in (p, q)):
        return True
    return torch.is_grad_enabled() and (p.requires_grad or q.requires_grad)


def _check_order(order: float) -> None:
    if not order >= 1:
        raise Mistake(f"expected an order of at least 1, came {order}; below it the triangle inequality fails")
