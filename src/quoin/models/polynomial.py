"""Polynomial curve fitting: a model that bends, yet is linear in its weights.   m the degree"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.models.closed_form import least_squares
from quoin.tensor import check_shapes

__all__ = ["PolynomialRegression", "fit_polynomial", "polynomial_features"]


def polynomial_features(x: Float[Tensor, "*batch"], degree: int) -> Float[Tensor, "*batch {degree}+1"]:
    """The monomials 1, x, x^2/2!, ..., x^m/m! of each number; the factorials keep high powers from dwarfing low ones.

    >>> polynomial_features(torch.tensor([2.0]), 3)
    tensor([[1.0000, 2.0000, 2.0000, 1.3333]])

    Notes: Z3.27.
    """
    if degree < 0:
        raise UserError(f"expected a degree of at least 0, got {degree}; 0 is a constant, 1 a line")
    if not x.is_floating_point():
        raise UserError(f"expected numbers as floats, got {x.dtype}; convert them, e.g. with .double()")
    powers = torch.ones_like(x)
    found = [powers]
    for power in range(1, degree + 1):
        powers = powers * x / power
        found.append(powers)
    return torch.stack(found, dim=-1)


class PolynomialRegression(nn.Module):
    """sum_i w_i x^i / i! for i from 0 to the degree, of the one feature that each example has; starting from w = 0.

    Notes: Z3.27.
    """

    def __init__(self, degree: int):
        super().__init__()
        if degree < 0:
            raise UserError(f"expected a degree of at least 0, got {degree}; 0 is a constant, 1 a line")
        self.weight = nn.Parameter(torch.zeros(degree + 1))

    @property
    def degree(self) -> int:
        """The highest power that may take part."""
        return len(self.weight) - 1

    def forward(self, x: Float[Tensor, "*batch 1"]) -> Float[Tensor, "*batch"]:
        check_shapes("... 1", x=x)
        return polynomial_features(x.squeeze(-1), self.degree) @ self.weight


def fit_polynomial(
    x: Float[Tensor, "examples"], y: Float[Tensor, "examples"], degree: int
) -> Float[Tensor, "{degree}+1"]:
    """The weights w_0, ..., w_m of least squared error for `PolynomialRegression`; where several do equally well, the
    shortest."""
    check_shapes("n, n", x=x, y=y)
    fit = least_squares(polynomial_features(x, degree)[:, 1:], y)
    return torch.cat([fit.bias.unsqueeze(0), fit.weight])
