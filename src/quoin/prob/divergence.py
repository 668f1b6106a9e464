"""How far apart two distributions are: L^p, total variation, Jensen-Shannon, Kullback-Leibler, cross-entropy.

A distribution stands along the last axis of a table, and what comes before are batch axes; for the last two it may also
be a `torch.distributions` distribution or a `Density`. That p comes first and q second matters for these: what p does
not do costs nothing (0 log 0 = 0), and what q calls impossible while p does it costs infinity. Nats, unless a base is
given.   n outcomes
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd import forward_ad
from torch.distributions import Distribution

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.checks import check_probs_pair
from quoin.prob.closed_form import NoClosedFormError, closed_form_entropy, closed_form_kl
from quoin.prob.density import Density
from quoin.prob.density_nodes import integrate_pair
from quoin.prob.units import convert_base
from quoin.tensor import check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor
from quoin.tensor.blocks import rows_per_block

__all__ = [
    "TotalVariation",
    "density_kl_divergence_definition",
    "distribution_cross_entropy",
    "jensen_shannon_divergence",
    "kl_divergence",
    "kl_divergence_definition",
    "lp_distance",
    "lp_distance_definition",
    "total_variation_distance",
    "total_variation_distance_definition",
]

_Distribution = Float[Tensor, "*batch n"] | Distribution | Density

_MOST_OUTCOMES = 20  # a million events
_BLOCK = 2**18  # entries: small enough that they and their logarithms stay in a core's cache, large enough for threads


def lp_distance_definition(
    p: Float[Tensor, "*batch n"] | ArrayLike, q: Float[Tensor, "*batch n"] | ArrayLike, order: float
) -> Float[Tensor, "*batch"]:
    """(sum_i |p_i - q_i|^order)^(1/order) for order >= 1; max_i |p_i - q_i| for an infinite one.

    Notes: D1.4-2.
    """
    p = float_tensor(p, "p", q)
    q = float_tensor(q, "q", p)
    check_probs_pair(p, q)
    _check_order(order)
    apart = (p - q).abs()
    return apart.amax(dim=-1) if order == float("inf") else apart.pow(order).sum(dim=-1).pow(1 / order)


def lp_distance(
    p: Float[Tensor, "*batch n"] | ArrayLike, q: Float[Tensor, "*batch n"] | ArrayLike, order: float
) -> Float[Tensor, "*batch"]:
    """`lp_distance_definition` on torch's kernel, which has a gradient (zero) where p = q too.

    Notes: D1.4-2.
    """
    p = float_tensor(p, "p", q)
    q = float_tensor(q, "q", p)
    check_probs_pair(p, q)
    _check_order(order)
    return torch.linalg.vector_norm(p - q, ord=order, dim=-1)


@shown
class TotalVariation(NamedTuple):
    """The largest |p(A) - q(A)|, and an event at which it is reached."""

    output: Float[Tensor, ""]
    event: Bool[Tensor, "n"]  # which outcomes belong to the event


def total_variation_distance_definition(
    p: Float[Tensor, "n"] | ArrayLike, q: Float[Tensor, "n"] | ArrayLike
) -> TotalVariation:
    """The largest |p(A) - q(A)| over all 2^n events A, each tried.

    Notes: D1.4-4.
    """
    p = float_tensor(p, "p", q)
    q = float_tensor(q, "q", p)
    check_probs_pair(p, q)
    check_shapes("n, n", p=p, q=q)
    n = len(p)
    if n > _MOST_OUTCOMES:
        raise UserError(
            f"expected at most {_MOST_OUTCOMES} outcomes to try every event of, got {n}; use total_variation_distance"
        )
    events = torch.arange(2**n, device=p.device).unsqueeze(-1) >> torch.arange(n, device=p.device) & 1  # (2^n, n)
    gaps = (events.to(p.dtype) @ (p - q)).abs()
    largest = gaps.argmax()
    return TotalVariation(gaps[largest], events[largest].bool())


def total_variation_distance(
    p: Float[Tensor, "*batch n"] | ArrayLike, q: Float[Tensor, "*batch n"] | ArrayLike
) -> Float[Tensor, "*batch"]:
    """`total_variation_distance_definition(p, q).output` as half the L^1 distance, reached at the event {p >= q}.

    Notes: D1.4-4.
    """
    p = float_tensor(p, "p", q)
    q = float_tensor(q, "q", p)
    return lp_distance(p, q, 1) / 2


def distribution_cross_entropy(
    p: _Distribution | ArrayLike, q: _Distribution | ArrayLike, base: float = math.e
) -> Float[Tensor, "*batch"]:
    """CE(P, Q) = E_P[-log q] = H(P) + KL(P || Q), -sum_i p_i log q_i of tables, -∫ p(x) log q(x) dx of densities; with
    q = p the entropy.

    With base 2 the mean number of bits that samples from P cost in the code that is ideal for Q. Two torch
    distributions take the closed form where torch has one, and the integral elsewhere. Of tables the gradients -log q_i
    in p_i and -p_i / q_i in q_i are exact, at p_i = 0 too; where p_i = q_i = 0 both are given as 0.

    Args:
        base: Of the logarithm: 2 for bits, e for nats.

    >>> p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75])
    >>> distribution_cross_entropy(p, q, base=2)  # (2 + log2(4 / 3)) / 2
    tensor(1.2075)

    Notes: Z13.26, M17.
    """
    p, q = _table(p, "p", q), _table(q, "q", p)
    if isinstance(p, Tensor) and isinstance(q, Tensor):
        check_probs_pair(p, q)
        # Where both are zero the term is 0 log 0 = 0; a one in q's place gives that, and a gradient that is a number.
        log_q = torch.where((p == 0) & (q == 0), 1, q).log()
        return convert_base(-(p * log_q).sum(dim=-1), base)
    p, q = _without_tables(p, q)
    closed = _closed_form(lambda p, q: closed_form_entropy(p) + closed_form_kl(p, q), p, q)
    return convert_base(integrate_pair(p, q, lambda log_p, log_q: -log_q) if closed is None else closed, base)


def kl_divergence_definition(
    p: Float[Tensor, "*batch n"] | ArrayLike, q: Float[Tensor, "*batch n"] | ArrayLike
) -> Float[Tensor, "*batch"]:
    """KL(p || q) = sum_i p_i log(p_i / q_i), with 0 log(0 / q) = 0 and p log(p / 0) = infinity.

    The gradient in p_i is log(p_i / q_i) + 1, which tends to minus infinity as p_i falls to 0; there it is given as
    -log q_i, and as 0 where q_i = 0 too. In q_i it is -p_i / q_i, and 0 where both are 0.

    Notes: Z13.21.
    """
    p = float_tensor(p, "p", q)
    q = float_tensor(q, "q", p)
    check_probs_pair(p, q)
    return _kl(p, q)


def density_kl_divergence_definition(
    p: Density | Distribution, q: Density | Distribution, base: float = math.e
) -> Float[Tensor, ""]:
    """KL(P || Q) = ∫ p(x) log(p(x) / q(x)) dx; infinite where P gives {q = 0} a probability, and where a tail
    makes it so.

    A density rounds to zero below 1e-308 and its logarithm does not: far from where Q has its mass, give q as
    a torch distribution.

    Args:
        base: Of the logarithm: 2 for bits, e for nats.

    Notes: Z13.21.
    """
    return convert_base(integrate_pair(p, q, lambda log_p, log_q: log_p - log_q), base)


def kl_divergence(
    p: _Distribution | ArrayLike, q: _Distribution | ArrayLike, base: float = math.e
) -> Float[Tensor, "*batch"]:
    """KL(P || Q) = E_P log(p / q), the relative entropy: of tables, of torch distributions and of densities; infinite
    unless P << Q.

    Tables: `kl_divergence_definition`; many on the CPU that nobody differentiates are taken a block at a
    time, each in the same memory. Two torch distributions: the closed form where torch has one, batched.
    All else: `density_kl_divergence_definition`.

    Args:
        base: Of the logarithm: 2 for bits, e for nats.

    >>> kl_divergence(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]))
    tensor(inf)
    >>> kl_divergence(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.25, 0.25, 0.5]), base=2)
    tensor(1.)
    >>> kl_divergence(torch.distributions.Normal(0.0, 1.0), torch.distributions.Normal(1.0, 1.0))
    tensor(0.5000)
    >>> kl_divergence(torch.distributions.Cauchy(0.0, 1.0), torch.distributions.Normal(0.0, 1.0))  # by quadrature
    tensor(inf, dtype=torch.float64)

    Notes: Z13.21.
    """
    p, q = _table(p, "p", q), _table(q, "q", p)
    if isinstance(p, Tensor) and isinstance(q, Tensor):
        return convert_base(_kl_of_tables(p, q), base)
    p, q = _without_tables(p, q)
    closed = _closed_form(closed_form_kl, p, q)
    return density_kl_divergence_definition(p, q, base) if closed is None else convert_base(closed, base)


def _table(p: _Distribution | ArrayLike, name: str, other: object) -> _Distribution:
    return p if isinstance(p, Distribution | Density) else float_tensor(p, name, other)


def jensen_shannon_divergence(
    p: Float[Tensor, "*batch n"] | ArrayLike, q: Float[Tensor, "*batch n"] | ArrayLike
) -> Float[Tensor, "*batch"]:
    """JS(p, q) = KL(p || m)/2 + KL(q || m)/2 with m = (p + q)/2: the same both ways, 0 only for p = q, and at
    most ln 2.

    >>> jensen_shannon_divergence(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))  # nothing in common: ln 2
    tensor(0.6931)
    """
    p = float_tensor(p, "p", q)
    q = float_tensor(q, "q", p)
    check_probs_pair(p, q)
    middle = (p + q) / 2
    return (kl_divergence(p, middle) + kl_divergence(q, middle)) / 2


def _without_tables(p: _Distribution, q: _Distribution) -> tuple[Density | Distribution, Density | Distribution]:
    if not (isinstance(p, Density | Distribution) and isinstance(q, Density | Distribution)):
        got = f"{type(p).__name__} and {type(q).__name__}"
        raise UserError(
            f"expected two tables, or two torch distributions or densities, got {got}; the table of a Categorical "
            "is its .probs"
        )
    return p, q


def _closed_form(
    formula: Callable[[Distribution, Distribution], Tensor], p: Density | Distribution, q: Density | Distribution
) -> Tensor | None:
    """What the formula gives in nats; None where torch has none and the pair can be integrated."""
    if not (isinstance(p, Distribution) and isinstance(q, Distribution)):
        return None
    try:
        return formula(p, q)
    except NoClosedFormError:
        if _is_discrete(p) or _is_discrete(q):
            raise
        return None


def _is_discrete(distribution: Distribution) -> bool:
    try:
        support = distribution.support
    except NotImplementedError:
        return False
    return support is not None and support.is_discrete


def _kl_of_tables(p: Tensor, q: Tensor) -> Tensor:  # (..., n), (..., n) -> (...)
    check_probs_pair(p, q)
    if p.numel() <= _BLOCK or p.device.type != "cpu" or p.dtype != q.dtype or _recorded(p, q):
        return _kl(p, q)
    return _kl_in_blocks(p.reshape(-1, p.shape[-1]), q.reshape(-1, q.shape[-1])).reshape(p.shape[:-1])


def _kl(p: Tensor, q: Tensor) -> Tensor:  # (..., n), (..., n) -> (...)
    nothing = p == 0
    q = torch.where(nothing & (q == 0), 1, q)
    return (p * (torch.where(nothing, 1, p).log() - q.log())).sum(dim=-1)


def _kl_in_blocks(p: Tensor, q: Tensor) -> Tensor:  # (k, n), (k, n) -> (k,)
    """The formula with one logarithm, and without a table-sized intermediate: fresh memory costs more
    than logarithms do.
    """
    rows = rows_per_block(p.shape[-1], _BLOCK)
    divergences = p.new_empty(len(p))
    terms, nothings = p.new_empty(rows, p.shape[-1]), p.new_empty(rows, p.shape[-1], dtype=torch.bool)
    for p_i, q_i, sums in zip(p.split(rows), q.split(rows), divergences.split(rows)):
        term, nothing = terms[: len(p_i)], nothings[: len(p_i)]
        torch.div(p_i, q_i, out=term).log_().mul_(p_i)
        term.masked_fill_(torch.eq(p_i, 0, out=nothing), 0)  # there it is NaN, whatever q is
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
        raise UserError(f"expected an order of at least 1, got {order}; below it the triangle inequality fails")
