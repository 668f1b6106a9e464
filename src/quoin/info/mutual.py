"""Mutual information of two variables: pointwise, and its mean.

The joint distribution of a pair (X, Y) is a table on the last two axes, X along the rows; see entropy.py.   n outcomes
of X, m of Y
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.info.entropy import conditional_entropy, joint_entropy
from quoin.prob import check_joint_probs
from quoin.prob.units import convert_base
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["mutual_information", "mutual_information_definition", "pmi"]


def pmi(joint: Float[Tensor, "*batch n m"] | ArrayLike, base: float = math.e) -> Float[Tensor, "*batch n m"]:
    """log(p(x, y) / (p(x) p(y))), pointwise mutual information: above 0 where x and y occur together more
    often than if independent, minus infinity where never.

    Of 16 word pairs, "hot tea" was seen 6 times where independence gives 4, and so is 0.585 = log2(6 / 4) bits
    more probable together.

    Args:
        joint: p(x, y), a row for each x and a column for each y.
        base: Of the logarithm: 2 for bits, e for nats.

    >>> pairs = torch.tensor([[6.0, 2.0], [2.0, 6.0]])  # hot, iced; tea, coffee
    >>> pmi(pairs / pairs.sum(), base=2)
    tensor([[ 0.5850, -1.0000],
            [-1.0000,  0.5850]])

    Notes: Z13.20.
    """
    joint = float_tensor(joint, "joint")
    check_joint_probs(joint)
    return convert_base(torch.where(joint == 0, -math.inf, _log_ratio(joint)), base)


def mutual_information_definition(
    joint: Float[Tensor, "*batch n m"] | ArrayLike, base: float = math.e
) -> Float[Tensor, "*batch"]:
    """I(X, Y) = H(X, Y) - H(Y | X) - H(X | Y), what is left of the pair's surprise without what either keeps to itself.

    Its gradient is that of `mutual_information`.

    Args:
        joint: p(x, y), a row for each x and a column for each y.
        base: Of the logarithm: 2 for bits, e for nats.

    Notes: Z13.18.
    """
    joint = float_tensor(joint, "joint")
    return joint_entropy(joint, base) - conditional_entropy(joint, base) - conditional_entropy(joint.mT, base)


def mutual_information(joint: Float[Tensor, "*batch n m"] | ArrayLike, base: float = math.e) -> Float[Tensor, "*batch"]:
    """`mutual_information_definition` as the mean of `pmi` under the joint distribution, where no large terms cancel.

    The gradient in p(x, y) is `pmi` - 1, which tends to minus infinity as p(x, y) falls to 0; there it is given as what
    the others of row x and of column y add, -1 each: -2, or -1 where one of the two is empty.

    Args:
        joint: p(x, y), a row for each x and a column for each y.
        base: Of the logarithm: 2 for bits, e for nats.

    >>> mutual_information(torch.tensor([[0.5, 0.0], [0.0, 0.5]]), base=2)  # Y = X, a fair coin
    tensor(1.)

    Notes: Z13.18.
    """
    joint = float_tensor(joint, "joint")
    check_joint_probs(joint)
    return convert_base((joint * _log_ratio(joint)).sum(dim=(-2, -1)), base)


def _log_ratio(joint: Tensor) -> Tensor:  # (..., n, m) -> (..., n, m)
    """log p(x, y) - log p(x) - log p(y), and 0 at pairs that never happen; not the log of a product, which may be below
    the least float.
    """
    never = joint == 0
    tables = (joint, joint.sum(dim=-1, keepdim=True), joint.sum(dim=-2, keepdim=True))
    p_xy, p_x, p_y = (torch.where(never, 1, table).log() for table in tables)
    return p_xy - p_x - p_y
