"""The normal equations of least squares, (X^T S X + l2 I) w = X^T S y, for many examples.

n examples, d features, S the diagonal of the examples' weights, which sum to one. Centre X and y first where there is a
bias.
"""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from quoin.errors import UserError
from quoin.optim.products import gram_matrix, matmul, transposed_matmul
from quoin.tensor import check_shapes
from quoin.tensor.single_thread import single_thread

__all__ = ["solve_normal_equations"]

ROUNDINGS = 64  # of the data's type, for each column: what is left of a column that the others explain


@single_thread()  # numpy has the others: products.py
def solve_normal_equations(
    X: Float[Tensor, "n d"], y: Float[Tensor, "n"], *, l2: float = 0.0, weights: Float[Tensor, "n"] | None = None
) -> Float64[Tensor, "d"]:
    """argmin_w sum_i s_i (x_i w - y_i)^2 + l2 |w|^2, from (X^T S X + l2 I) w = X^T S y in float64; s_i = 1/n if none
    are given.

    A Cholesky factor of the matrix gives w; solving once more, for what the equations still lack, undoes most of its
    rounding. If columns depend on one another to rounding it raises a UserError: the matrix squares their condition
    number, where `quoin.models.least_squares` does not.

    >>> x, y = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([2.0, 4.0, 6.0])
    >>> solve_normal_equations(x, y).round(decimals=6)
    tensor([2.], dtype=torch.float64)

    Notes: Z3.7.
    """
    check_shapes("n d, n", X=X, y=y)
    if len(y) == 0 or X.shape[1] == 0:
        raise UserError(
            f"expected at least one example and one feature, got shape {tuple(X.shape)}; give X and y with rows"
        )
    if not X.is_floating_point() or X.dtype != y.dtype:
        raise UserError(
            f"expected X and y of one float type, got {X.dtype} and {y.dtype}; convert both, e.g. with .double()"
        )
    if not l2 >= 0:
        raise UserError(f"expected an l2 penalty of at least 0, got {l2}; a negative one has no minimum")
    sample_weight = X.new_full((len(y),), 1 / len(y)) if weights is None else weights

    def back(values: Tensor) -> Tensor:  # X^T S values
        return transposed_matmul(X, sample_weight * values).double()

    right = back(y)
    if not right.isfinite().all():
        raise UserError(
            "expected finite X and y, got NaN or infinity, or numbers whose squares overflow; drop, fill or scale them"
        )
    matrix = gram_matrix(X, sample_weight)
    matrix.diagonal().add_(l2)
    factor = _factor(matrix)

    def solved(values: Tensor) -> Tensor:
        return torch.cholesky_solve(values.to(X.dtype).unsqueeze(-1), factor).squeeze(-1).double()

    w = solved(right)
    # What is lacking is computed from the data, not from the rounded matrix.
    return w + solved(back(y - matmul(X, w.to(X.dtype))) - l2 * w)


def _factor(matrix: Tensor) -> Tensor:
    """The Cholesky factor; a UserError where a column is, to the rounding of the data's type, a sum of those before
    it."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    # A pivot over its diagonal entry is the fraction of a column that the columns before it do not explain.
    unexplained = factor.diagonal().square() / matrix.diagonal()
    if int(failed) or not (unexplained > len(matrix) * ROUNDINGS * torch.finfo(matrix.dtype).eps).all():
        raise UserError(
            "expected columns that do not depend on one another, got dependent ones (to rounding); "
            "drop them, give l2 > 0, or take quoin.models.least_squares"
        )
    return factor
