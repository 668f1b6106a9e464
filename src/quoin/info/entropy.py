"""Surprise and its mean: the entropy of one variable, of a pair, and of one variable once the other is known.

A distribution stands along the last axis. The joint distribution of a pair (X, Y) is a table on the last two: X along
the rows, Y along the columns, so that `joint.mT` swaps them. What comes before are batch axes. Nats, unless a base is
given; 0 log 0 = 0.

The derivative of p log p at p = 0 is minus infinity. The gradients of this package leave that term out there: what
remains is finite, and each docstring says what it is. A softmax multiplies it by p = 0, so in its scores the gradient
is the limit itself, which is 0. n outcomes of X, m of Y
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from quoin.errors import UserError
from quoin.prob import check_joint_probs, check_probs
from quoin.prob.closed_form import closed_form_entropy
from quoin.prob.units import convert_base
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["conditional_entropy", "entropy", "joint_entropy", "self_information"]


def self_information(probability: Float[Tensor, "*batch"] | ArrayLike, base: float = math.e) -> Float[Tensor, "*batch"]:
    """-log P, the surprise at an event of probability P: none at what is certain, infinite at what cannot happen, as is
    its gradient there.

    Args:
        base: Of the logarithm: 2 for bits, e for nats.

    >>> self_information(torch.tensor([1.0, 0.5, 0.125]), base=2)
    tensor([0., 1., 3.])

    Notes: Z13.6.
    """
    probability = float_tensor(probability, "probability")
    if not probability.is_floating_point():
        raise UserError(f"expected probabilities as floats, got {probability.dtype}; divide counts by their sum")
    if not torch.compiler.is_compiling() and not ((probability >= 0) & (probability <= 1)).all():
        low, high = probability.detach().aminmax()
        raise UserError(
            f"expected probabilities from 0 to 1, got {float(low):.3g} to {float(high):.3g}; divide counts by their sum"
        )
    return convert_base(0 - probability.log(), base)  # not -log 1, which floats write as -0


def entropy(p: Float[Tensor, "*batch n"] | ArrayLike | Distribution, base: float = math.e) -> Float[Tensor, "*batch"]:
    """H(P) = E[-log P(X)] = -sum_i p_i log p_i of a table; of a torch distribution its closed form, for a density
    -E log p(X).

    The gradient in p_i is -log p_i - 1, which tends to infinity as p_i falls to 0; at p_i = 0 it is given as 0.

    Args:
        base: Of the logarithm: 2 for bits, e for nats.

    >>> entropy(torch.tensor([0.5, 0.25, 0.25]), base=2)
    tensor(1.5000)
    >>> entropy(torch.distributions.Bernoulli(torch.tensor(0.5)), base=2)
    tensor(1.)

    Notes: Z13.7, M16.
    """
    if isinstance(p, Distribution):
        return convert_base(closed_form_entropy(p), base)
    p = float_tensor(p, "p")
    check_probs(p, "p")
    return convert_base(_mean_surprise(p, p), base)


def joint_entropy(joint: Float[Tensor, "*batch n m"] | ArrayLike, base: float = math.e) -> Float[Tensor, "*batch"]:
    """H(X, Y) = -E log p(X, Y), the entropy of the pair as one variable with nm outcomes; its gradient is
    that of `entropy`.

    Args:
        joint: p(x, y), a row for each x and a column for each y.
        base: Of the logarithm: 2 for bits, e for nats.

    Notes: Z13.14.
    """
    joint = float_tensor(joint, "joint")
    check_joint_probs(joint)
    return convert_base(_mean_surprise(joint, joint).sum(dim=-1), base)


def conditional_entropy(
    joint: Float[Tensor, "*batch n m"] | ArrayLike, base: float = math.e
) -> Float[Tensor, "*batch"]:
    """H(Y | X) = -E log p(Y | X) = -sum_xy p(x, y) log(p(x, y) / p(x)), the surprise left in Y once X is known.

    The gradient in p(x, y) is -log p(y | x), which tends to infinity as p(x, y) falls to 0; there it is given as 1,
    what the rest of row x adds, and as 0 where x never happens.

    Args:
        joint: p(x, y), a row for each x and a column for each y.
        base: Of the logarithm: 2 for bits, e for nats.

    >>> conditional_entropy(torch.tensor([[0.5, 0.0], [0.25, 0.25]]), base=2)  # only the second x leaves a bit open
    tensor(0.5000)

    Notes: Z13.16.
    """
    joint = float_tensor(joint, "joint")
    check_joint_probs(joint)
    rows = joint.sum(dim=-1, keepdim=True).expand_as(joint)
    return convert_base((_mean_surprise(joint, joint) - _mean_surprise(joint, rows)).sum(dim=-1), base)


def _mean_surprise(p: Tensor, seen: Tensor) -> Tensor:  # (..., n), (..., n) -> (...)
    """-sum_i p_i log s_i over what can happen; a one instead of the rest gives 0, and a gradient that is a number."""
    return 0 - (p * torch.where(p == 0, 1, seen).log()).sum(dim=-1)
