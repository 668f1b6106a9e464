"""Monomials in several variables: how many there are of each degree, and their values as features of a linear model.

One variable is polynomial.py's; with more, a step of the degree adds so many weights that it is a blunt control of a
model's size.   k variables
"""

import math
from itertools import combinations_with_replacement

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor import check_floating, check_shapes

__all__ = ["monomial_features", "num_monomials", "num_monomials_up_to"]

MOST_FEATURES = 1_000_000


def num_monomials(num_variables: int, degree: int) -> int:
    """C(k - 1 + d, k - 1): the monomials of degree exactly d in k variables.

    >>> num_monomials(2, 3)  # x³, x² y, x y², y³
    4

    Notes: Z3.30.
    """
    _check(num_variables, degree)
    return math.comb(num_variables - 1 + degree, num_variables - 1)


def num_monomials_up_to(num_variables: int, degree: int) -> int:
    """C(k + d, k): the monomials of degree at most d in k variables, the constant among them.

    Notes: Z3.30.
    """
    _check(num_variables, degree)
    return math.comb(num_variables + degree, num_variables)


def monomial_features(x: Float[Tensor, "examples variables"], degree: int) -> Float[Tensor, "examples monomials"]:
    """Every monomial of degree at most d of every row, C(k + d, k) of them, the constant 1 first, then by rising
    degree: 1, x, y, x², x y, y², ...

    >>> monomial_features(torch.tensor([[2.0, 3.0]]), 2)
    tensor([[1., 2., 3., 4., 6., 9.]])

    Notes: Z3.30.
    """
    check_shapes("n k", x=x)
    check_floating(x)
    num_variables = x.shape[1]
    count = num_monomials_up_to(num_variables, degree)
    if count > MOST_FEATURES:
        raise UserError(
            f"expected at most {MOST_FEATURES} monomials, got {count} of degree {degree} in {num_variables} "
            "variables; lower it"
        )
    factors = [
        chosen for each in range(degree + 1) for chosen in combinations_with_replacement(range(num_variables), each)
    ]
    return torch.stack([x[:, list(chosen)].prod(dim=1) for chosen in factors], dim=1)


def _check(num_variables: int, degree: int) -> None:
    if num_variables < 1 or degree < 0:
        raise UserError(
            f"expected at least one variable and a degree of at least 0, got {num_variables} and {degree}; raise "
            "the lesser"
        )
