"""What is left of a normal distribution once some of its coordinates are known: the definition with a (pseudo-)inverse,
and by one Cholesky factor.

Z = (X, Y) ~ N(μ, Σ), Y the coordinates at `given`, X the others in their order.   d coordinates, k given ones,
`rest` the d - k others
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.covariance import block, check_covariance, check_indices, check_vectors, entries, slack_of, support
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["ConditionalNormal", "condition_normal", "condition_normal_definition"]


@shown
class ConditionalNormal(NamedTuple):
    """The distribution N(mean, covariance) of X given Y = y; its covariance does not depend on y."""

    mean: Float[Tensor, "*#batch rest"]
    covariance: Float[Tensor, "*#batch rest rest"]


def condition_normal_definition(
    mean: Float[Tensor, "*#batch d"] | ArrayLike,
    covariance: Float[Tensor, "*#batch d d"] | ArrayLike,
    given: Sequence[int],
    y: Float[Tensor, "*#batch k"] | ArrayLike,
) -> ConditionalNormal:
    """μ_X + Σ_XY Σ_YY^-1 (y - μ_Y) and Σ_XX - Σ_XY Σ_YY^-1 Σ_YX, with the pseudo-inverse Σ_YY^+, which for a regular
    Σ_YY is the inverse.

    Where Σ_YY is singular, y must lie on the support of Y, which `condition_normal` checks.

    Args:
        given: Indices of the coordinates that are Y; the others are X.
        y: Their values, in the order of `given`.

    Notes: D5-24.
    """
    mean = float_tensor(mean, "mean", covariance, y)
    covariance = float_tensor(covariance, "covariance", mean, y)
    y = float_tensor(y, "y", mean, covariance)
    given = check_indices(given, mean.shape[-1], "given")
    rest = [index for index in range(mean.shape[-1]) if index not in given]
    inverse = torch.linalg.pinv(block(covariance, given, given), hermitian=True)
    gain = block(covariance, rest, given) @ inverse  # (..., d - k, k)
    shift = gain @ (y - entries(mean, given)).unsqueeze(-1)
    left = block(covariance, rest, rest) - gain @ block(covariance, given, rest)
    return ConditionalNormal(entries(mean, rest) + shift.squeeze(-1), left)


def condition_normal(
    mean: Float[Tensor, "*#batch d"] | ArrayLike,
    covariance: Float[Tensor, "*#batch d d"] | ArrayLike,
    given: Sequence[int],
    y: Float[Tensor, "*#batch k"] | ArrayLike,
) -> ConditionalNormal:
    """`condition_normal_definition` by W = L^-1 Σ_YX with Σ_YY = L L^T: mean μ_X + W^T L^-1 (y - μ_Y), covariance Σ_XX
    - W^T W.

    The leading axes of mean, covariance and y broadcast. A y off the support of Y, and a covariance that is not one,
    raise an error.

    Args:
        given: Indices of the coordinates that are Y; the others are X.
        y: Their values, in the order of `given`.

    >>> covariance, values = torch.tensor([[1.0, 0.8], [0.8, 1.0]]), torch.tensor([[-1.0], [0.0], [1.0]])
    >>> found = condition_normal(torch.zeros(2), covariance, [1], values)
    >>> found.mean.squeeze(-1), found.covariance
    (tensor([-0.8000,  0.0000,  0.8000]), tensor([[0.3600]]))

    Notes: D5-24.
    """
    mean = float_tensor(mean, "mean", covariance, y)
    covariance = float_tensor(covariance, "covariance", mean, y)
    y = float_tensor(y, "y", mean, covariance)
    check_covariance(covariance)
    check_vectors(mean, covariance, covariance.shape[:-2], "mean")
    return conditioned(mean, covariance, given, y)[0]


def conditioned(
    mean: Float[Tensor, "*#batch d"],
    covariance: Float[Tensor, "*#batch d d"],
    given: Sequence[int],
    y: Float[Tensor, "*#batch k"],
) -> tuple[ConditionalNormal, Float[Tensor, "*#batch d-k"]]:
    """`condition_normal` of a mean and a covariance that have been checked, and the variances that are only
    rounding.
    """
    d = mean.shape[-1]
    given = check_indices(given, d, "given")
    rest = [index for index in range(d) if index not in given]
    if not rest:
        raise UserError(f"expected at least one coordinate that is not given, got all {d} of them; leave one out")
    mean_X, mean_Y = entries(mean, rest), entries(mean, given)
    check_vectors(y, mean_Y, torch.broadcast_shapes(mean.shape[:-1], covariance.shape[:-2]), "y")
    held = support(block(covariance, given, given))
    inside = held.holds(y.detach(), mean_Y.detach())
    if inside is not None and not bool(inside.all()):
        index = tuple((~inside).nonzero()[0].tolist())
        where = f"the one at {index} does not" if index else "it does not"
        raise UserError(
            f"expected y on the support of the given coordinates, whose covariance is singular, but {where}; check y"
        )
    whitened = held.whiten_columns(block(covariance, given, rest))  # W (..., k, d - k)
    shift = (whitened.mT @ held.whiten(y - mean_Y).unsqueeze(-1)).squeeze(-1)
    whole = block(covariance, rest, rest)
    left = whole - whitened.mT @ whitened
    floor = slack_of(covariance) * whole.detach().diagonal(dim1=-2, dim2=-1) / held.conditional_fraction.unsqueeze(-1)
    if not torch.compiler.is_compiling():
        _check_left(left.detach().diagonal(dim1=-2, dim2=-1), floor)
    return ConditionalNormal(mean_X + shift, left), floor


def _check_left(variances: Tensor, floor: Tensor) -> None:
    """A covariance leaves no negative variance: what a matrix leaves below rounding shows that it is none."""
    if not bool((variances >= -floor).all()):  # NaN fails too
        raise UserError(
            "expected a positive semi-definite covariance, got one that leaves a variance of "
            f"{float(variances.min()):.3g} to a number "
            "once others are known; estimate it from more data, or cut its negative eigenvalues off"
        )
