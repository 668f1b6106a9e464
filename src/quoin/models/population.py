"""Least squares where the distribution of (X, Y) is known: the best function of all, and the best affine one.

With data in place of the distribution, the second becomes `least_squares`.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.models.closed_form import LinearFit
from quoin.prob import check_probs
from quoin.tensor import check_shapes

__all__ = ["best_affine_predictor", "conditional_expectation"]


def conditional_expectation(joint: Float[Tensor, "x y"], values: Float[Tensor, "y"]) -> Float[Tensor, "x"]:
    """E[Y | X = x] = sum_y y P(x, y) / sum_y P(x, y) for each value x, from the table of P(x, y).

    Of all functions of X it has the least mean squared error.

    >>> conditional_expectation(torch.tensor([[0.2, 0.2], [0.0, 0.6]]), torch.tensor([0.0, 1.0]))
    tensor([0.5000, 1.0000])

    Notes: Z3.16.
    """
    check_shapes("a c, c", joint=joint, values=values)
    check_probs(joint.reshape(-1), "the joint distribution")
    mass = joint.sum(dim=1)
    if not (mass > 0).all():
        row = int((mass == 0).nonzero()[0])
        raise UserError(f"expected every value of X to be possible, got probability 0 in row {row}; leave that row out")
    return joint @ values / mass


def best_affine_predictor(
    mean_x: Float[Tensor, "features"],
    mean_y: Float[Tensor, ""],
    covariance_x: Float[Tensor, "features features"],
    covariance_xy: Float[Tensor, "features"],
) -> LinearFit:
    """The (w, b) of least E(Y - w^T X - b)^2: w = Cov(X)^-1 Cov(X, Y) and b = E Y - w^T E X.

    It is E[Y | X] where that is affine, and else the affine function nearest to it in mean square. Where Cov(X) is
    singular, some features are affine in others; of all w that do equally well, the shortest is given.

    >>> first, one, zero = torch.tensor([0.0]), torch.tensor(1.0), torch.tensor([0.0])
    >>> best_affine_predictor(first, one, torch.tensor([[1.0]]), zero)  # Y = X^2 for a standard normal X
    LinearFit(weight=tensor([0.]), bias=tensor(1.))

    Notes: Z3.19.
    """
    check_shapes("d, (), d d, d", mean_x=mean_x, mean_y=mean_y, covariance_x=covariance_x, covariance_xy=covariance_xy)
    if not covariance_x.is_floating_point() or not all(
        each.isfinite().all() for each in (mean_x, mean_y, covariance_x, covariance_xy)
    ):
        raise UserError(
            f"expected finite moments as floats, got {covariance_x.dtype} or NaN; convert them, e.g. with .double()"
        )
    slack = len(mean_x) * torch.finfo(covariance_x.dtype).eps ** 0.5  # moments are often estimates: half of the digits
    size = float(covariance_x.detach().abs().max())
    eigenvalues = torch.linalg.eigvalsh(covariance_x.detach())
    if (
        float((covariance_x - covariance_x.mT).detach().abs().max()) > slack * size
        or float(eigenvalues.min()) < -slack * size
    ):
        raise UserError(
            "expected a covariance of X that is symmetric with no negative eigenvalue, got another matrix; check "
            "its entries"
        )
    weight = torch.linalg.pinv(covariance_x, hermitian=True) @ covariance_xy
    left = (covariance_x @ weight - covariance_xy).detach().abs().max()
    if float(left) > slack * max(size, float(covariance_xy.detach().abs().max())):
        raise UserError(
            "expected Cov(X, Y) in the range of Cov(X), as every distribution has it, got one outside; check both "
            "matrices"
        )
    return LinearFit(weight, mean_y - weight @ mean_x)
