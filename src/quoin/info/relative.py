"""One law seen from another: relative entropy, cross-entropy, and the density of one with respect to the other.

Laws are tables along the last axis, with batch axes before, or torch distributions with a closed form. p comes first and is the
one that outcomes are drawn from. The formulas for tables stand in quoin.prob.divergence.   n outcomes (of x), m of y
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.distributions import Distribution

from quoin.errors import Mistake
from quoin.info.closed_form import closed_entropy, closed_kl
from quoin.info.units import in_base
from quoin.prob import check_joint, check_law, check_laws, cross_entropy_of, kl
from quoin.tensor import as_floating, check_shapes

__all__ = ["conditional_cross_entropy", "cross_entropy", "density_ratio", "is_abs_continuous", "radon_nikodym", "relative_entropy"]


def relative_entropy(p: Tensor | Distribution, q: Tensor | Distribution, base: float = math.e) -> Tensor:  # -> (...)
    """D(P || Q) = E_P log(p / q), the Kullback-Leibler divergence; infinite unless P << Q.

    The gradient in p_i is log(p_i / q_i) + 1, which tends to minus infinity as p_i falls to 0; there it is given as -log q_i, and as 0
    where q_i = 0 too. In q_i it is -p_i / q_i, and 0 where both are 0.

    >>> relative_entropy(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.25, 0.25, 0.5]), base=2)
    tensor(1.)
    >>> relative_entropy(torch.distributions.Normal(0.0, 1.0), torch.distributions.Normal(1.0, 1.0))
    tensor(0.5000)

    Notes: Z13.21.
    """
    if isinstance(p, Distribution) and isinstance(q, Distribution):
        return in_base(closed_kl(p, q), base)
    return in_base(kl(*_tables(p, q)), base)


def cross_entropy(p: Tensor | Distribution, q: Tensor | Distribution, base: float = math.e) -> Tensor:  # -> (...)
    """H(P, Q) = E_P[-log q] = H(P) + D(P || Q): with base 2 the mean number of bits that draws from P cost in the code ideal for Q.

    The gradients -log q_i in p_i and -p_i / q_i in q_i are exact, at p_i = 0 too; where p_i = q_i = 0 both are given as 0.

    >>> cross_entropy(torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75]), base=2)  # (2 + log2(4 / 3)) / 2
    tensor(1.2075)

    Notes: Z13.26, M17.
    """
    if isinstance(p, Distribution) and isinstance(q, Distribution):
        return in_base(closed_entropy(p) + closed_kl(p, q), base)
    return in_base(cross_entropy_of(*_tables(p, q)), base)


def conditional_cross_entropy(joint: Tensor, q: Tensor, base: float = math.e) -> Tensor:  # (..., n, m), (..., n, m) -> (...)
    """E_x H(P(y | x), Q(y | x)) = -sum_xy P(x, y) log Q(y | x), least where every row of q is the conditional law of `joint`.

    `joint` is the population, a table of pairs; `q` the model, whose row x is a law of y. Gradients are those of `cross_entropy`.

    Notes: M27.
    """
    check_shapes("... n m, ... n m", joint=joint, q=q)
    check_joint(joint)
    check_law(q, "each row of q")
    surprise = torch.where((joint == 0) & (q == 0), 1, q).log()  # as in cross_entropy_of: 0 log 0 = 0, with a gradient
    return in_base(0 - (joint * surprise).sum(dim=(-2, -1)), base)


def is_abs_continuous(p: Tensor, q: Tensor) -> Tensor:  # (..., n), (..., n) -> (...)
    """P << Q: what Q calls impossible is so under P, q_i = 0 implies p_i = 0.

    Notes: D6-4.
    """
    check_laws(p, q)
    return ((q != 0) | (p == 0)).all(dim=-1)


def radon_nikodym(p: Tensor, q: Tensor) -> Tensor:  # (..., n), (..., n) -> (..., n)
    """dP/dQ, the weights that turn Q into P: P[A] = sum_{i in A} (dP/dQ)_i q_i, hence p_i / q_i; where q_i = 0 any would do, we take 0.

    >>> radon_nikodym(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.25, 0.75, 0.0]))
    tensor([2.0000, 0.6667, 0.0000])

    Notes: D6-2.
    """
    check_laws(p, q)
    outside = (q == 0) & (p != 0)
    if not torch.compiler.is_compiling() and outside.any():
        place = tuple(outside.nonzero()[0].tolist())
        came = f"p = {float(p.detach()[place]):.3g} at {place}"
        raise Mistake(f"expected p = 0 wherever q = 0, came {came}; dP/dQ exists only if P << Q, so give q some probability there")
    return p / torch.where(q == 0, 1, q)


def density_ratio(p: Callable[[Tensor], Tensor], q: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:  # -> as p(x)
    """dP/dQ = p(x) / q(x) at points x, for laws that are given by densities; where q(x) = 0 any value would do, we take 0.

    Notes: D6-2.
    """
    x = as_floating(x)
    above, below = p(x), q(x)
    return torch.where(below == 0, 0, above / torch.where(below == 0, 1, below))


def _tables(p: Tensor | Distribution, q: Tensor | Distribution) -> tuple[Tensor, Tensor]:
    if isinstance(p, Distribution) or isinstance(q, Distribution):
        came = f"{type(p).__name__} and {type(q).__name__}"
        raise Mistake(f"expected two tables or two torch distributions, came {came}; turn a Categorical into a table with .probs")
    return p, q
