"""Polynomial curve fitting: a model that bends, yet is linear in its weights.   m the degree, d features"""

from itertools import combinations_with_replacement

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.models.closed_form import least_squares
from quoin.models.monomials import num_monomials, num_monomials_up_to
from quoin.tensor import check_floating, check_shapes

__all__ = [
    "PolynomialRegression",
    "fit_monomials",
    "fit_polynomial",
    "monomial_degrees",
    "polynomial_features",
    "scaled_monomial_features",
]


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


def monomial_degrees(num_features: int, degree: int) -> list[int]:
    """The degree of each of the C(d + m, m) monomials of `scaled_monomial_features`, ascending.

    >>> monomial_degrees(2, 2)
    [0, 1, 1, 2, 2, 2]
    """
    return [k for k in range(degree + 1) for _ in range(num_monomials(num_features, k))]


def scaled_monomial_features(x: Float[Tensor, "*batch features"], degree: int) -> Float[Tensor, "*batch monomials"]:
    """Π_j x_j^e_j / e_j! for all exponents of sum 0, then 1, up to the degree: of one feature, `polynomial_features`.

    The monomials of `monomial_features`, each over the factorials of its exponents. Those of a lower degree come first,
    so that its weights are a beginning of the weights.

    >>> scaled_monomial_features(torch.tensor([[2.0, 3.0]]), 2)  # 1, x, y, x²/2, xy, y²/2
    tensor([[1.0000, 2.0000, 3.0000, 2.0000, 6.0000, 4.5000]])
    """
    if degree < 0:
        raise UserError(f"expected a degree of at least 0, got {degree}; 0 is a constant, 1 a line")
    check_floating(x, "x")
    columns = x.unbind(dim=-1)
    found: dict[tuple[int, ...], Tensor] = {(): torch.ones_like(x[..., 0])}
    for k in range(1, degree + 1):
        for chosen in combinations_with_replacement(range(len(columns)), k):
            # One factor more than a monomial that is there; it is the chosen.count-th of its kind.
            found[chosen] = found[chosen[:-1]] * columns[chosen[-1]] / chosen.count(chosen[-1])
    return torch.stack(list(found.values()), dim=-1)


class PolynomialRegression(nn.Module):
    """Σ_i w_i times the i-th monomial up to the degree, of the features of each example; starting from w = 0. Of one
    feature that is Σ_i w_i x^i / i!.

    Notes: Z3.27.
    """

    def __init__(self, degree: int, num_features: int = 1):
        super().__init__()
        if degree < 0:
            raise UserError(f"expected a degree of at least 0, got {degree}; 0 is a constant, 1 a line")
        if num_features < 1:
            raise UserError(f"expected at least one feature, got {num_features}; give the number of columns")
        self.degree, self.num_features = degree, num_features  # the highest power that may take part, and of what
        self.weight = nn.Parameter(torch.zeros(num_monomials_up_to(num_features, degree)))

    def forward(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
        if x.ndim == 0 or x.shape[-1] != self.num_features:
            raise UserError(
                f"expected examples of {self.num_features} features on the last axis, got shape {tuple(x.shape)}; "
                "reshape the data or build PolynomialRegression with its number of features"
            )
        return scaled_monomial_features(x, self.degree) @ self.weight


def fit_polynomial(
    x: Float[Tensor, "examples"], y: Float[Tensor, "examples"], degree: int
) -> Float[Tensor, "{degree}+1"]:
    """The weights w_0, ..., w_m of least squared error for `PolynomialRegression` of one feature; where several do
    equally well, the shortest."""
    check_shapes("n, n", x=x, y=y)
    return fit_monomials(x.unsqueeze(-1), y, degree)


def fit_monomials(
    x: Float[Tensor, "examples features"], y: Float[Tensor, "examples"], degree: int
) -> Float[Tensor, "monomials"]:
    """The same for `PolynomialRegression` of several features."""
    check_shapes("n d, n", x=x, y=y)
    fit = least_squares(scaled_monomial_features(x, degree)[:, 1:], y)
    return torch.cat([fit.bias.unsqueeze(0), fit.weight])
