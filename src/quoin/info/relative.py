"""One distribution seen from another: absolute continuity, Radon-Nikodym density, conditional cross-entropy.

Distributions are tables along the last axis, with batch axes before. p comes first and is the one that outcomes are
sampled from. KL divergence and cross-entropy are in quoin.prob.divergence, and quoin.info re-exports them.   n outcomes
(of x), m of y
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.prob import check_joint_probs, check_probs, check_probs_pair, convert_base
from quoin.tensor import as_floating, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = ["conditional_cross_entropy", "density_ratio", "is_absolutely_continuous", "radon_nikodym"]


def conditional_cross_entropy(
    joint: Float[Tensor, "*batch n m"] | ArrayLike, q: Float[Tensor, "*batch n m"] | ArrayLike, base: float = math.e
) -> Float[Tensor, "*batch"]:
    """E_x H(P(y | x), Q(y | x)) = -sum_xy P(x, y) log Q(y | x), least where every row of q is the conditional
    distribution of `joint`.

    Gradients are those of `distribution_cross_entropy`.

    Args:
        joint: The population, a table of pairs.
        q: The model, whose row x is a distribution of y.
        base: Of the logarithm: 2 for bits, e for nats.

    Notes: M27.
    """
    joint = float_tensor(joint, "joint", q)
    q = float_tensor(q, "q", joint)
    check_shapes("... n m, ... n m", joint=joint, q=q)
    check_joint_probs(joint)
    check_probs(q, "each row of q")
    surprise = torch.where(
        (joint == 0) & (q == 0), 1, q
    ).log()  # as in distribution_cross_entropy: 0 log 0 = 0, with a gradient
    return convert_base(0 - (joint * surprise).sum(dim=(-2, -1)), base)


def is_absolutely_continuous(
    p: Float[Tensor, "*batch n"] | ArrayLike, q: Float[Tensor, "*batch n"] | ArrayLike
) -> Bool[Tensor, "*batch"]:
    """P << Q: what Q calls impossible is so under P, q_i = 0 implies p_i = 0.

    Notes: D6-4.
    """
    p = float_tensor(p, "p", q)
    q = float_tensor(q, "q", p)
    check_probs_pair(p, q)
    return ((q != 0) | (p == 0)).all(dim=-1)


def radon_nikodym(
    p: Float[Tensor, "*batch n"] | ArrayLike, q: Float[Tensor, "*batch n"] | ArrayLike
) -> Float[Tensor, "*batch n"]:
    """dP/dQ, the weights that make Q into P: P[A] = sum_{i in A} (dP/dQ)_i q_i, hence p_i / q_i; where q_i = 0 any
    would do, we take 0.

    >>> radon_nikodym(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.25, 0.75, 0.0]))
    tensor([2.0000, 0.6667, 0.0000])

    Notes: D6-2.
    """
    p = float_tensor(p, "p", q)
    q = float_tensor(q, "q", p)
    check_probs_pair(p, q)
    outside = (q == 0) & (p != 0)
    if not torch.compiler.is_compiling() and outside.any():
        index = tuple(outside.nonzero()[0].tolist())
        got = f"p = {float(p.detach()[index]):.3g} at {index}"
        raise UserError(
            f"expected p = 0 wherever q = 0, got {got}; dP/dQ exists only if P << Q, so give q some probability there"
        )
    return p / torch.where(q == 0, 1, q)


def density_ratio(
    p: Callable[[Tensor], Tensor], q: Callable[[Tensor], Tensor], x: Real[Tensor, "..."] | ArrayLike
) -> Float[Tensor, "..."]:
    """dP/dQ = p(x) / q(x) at points x, of the shape of p(x), for distributions that are given by densities; where q(x)
    = 0 any value would do, we take 0.

    Notes: D6-2.
    """
    x = number_tensor(x, "x")
    x = as_floating(x)
    above, below = p(x), q(x)
    return torch.where(below == 0, 0, above / torch.where(below == 0, 1, below))
