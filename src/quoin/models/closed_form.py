"""Linear models fitted in closed form: least squares three ways, and ridge. Fitting step by step is quoin.train's work.

All take one target per example or k of them, and give gradients in X and y back.   n examples, d features, k targets
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor import as_floating, check_shapes

__all__ = ["LinearFit", "least_squares", "least_squares_by_qr", "normal_equations", "ridge"]


@shown
class LinearFit(NamedTuple):
    """A straight line, plane or hyperplane: what a closed form finds."""

    weight: Float[Tensor, "*targets features"]  # no axis of targets where there is one
    bias: Float[Tensor, "*targets"]

    def predict(self, x: Real[Tensor, "*batch features"]) -> Float[Tensor, "..."]:
        """W x + b for each example: a number, or one for each of the targets on a last axis."""
        check_shapes("... d, d" if self.weight.ndim == 1 else "... d, k d", x=x, weight=self.weight)
        x, weight = as_floating(x, self.weight), as_floating(self.weight, x)
        return x @ weight.mT + self.bias if weight.ndim == 2 else x @ weight + self.bias


def normal_equations(X: Float[Tensor, "examples features"], y: Float[Tensor, "examples *targets"]) -> LinearFit:
    """The definition: ([X, 1]^T [X, 1])^-1 [X, 1]^T y, for columns that do not depend on one another.

    The gradient of the mean squared error is zero there and nowhere else. Products square the condition number; the
    other two forms do without.

    Notes: Z3.7.
    """
    design, targets = _system(X, y)
    gram = design.mT @ design
    factor, failed = torch.linalg.cholesky_ex(gram)
    _need_full_rank(int(failed) == 0, factor.diagonal().square() / gram.diagonal(), design)
    return _fit(torch.cholesky_solve(design.mT @ targets, factor), y)


def least_squares_by_qr(X: Float[Tensor, "examples features"], y: Float[Tensor, "examples *targets"]) -> LinearFit:
    """R^-1 Q^T y for [X, 1] = Q R: the normal equations without the square, for columns that do not depend on one
    another.

    Notes: Z3.7.
    """
    design, targets = _system(X, y)
    if design.shape[0] < design.shape[1]:
        _need_full_rank(False, design, design)
    Q, R = torch.linalg.qr(design)
    _need_full_rank(True, R.diagonal().abs() / design.norm(dim=0), design)
    return _fit(torch.linalg.solve_triangular(R, Q.mT @ targets, upper=True), y)


def least_squares(X: Float[Tensor, "examples features"], y: Float[Tensor, "examples *targets"]) -> LinearFit:
    """The (w, b) of least mean squared error, and among several the shortest: [X, 1]^+ y, by singular values.

    For columns of full rank it is what `normal_equations` gives. Where columns depend on one another the minimisers
    fill an affine space, and the gradient in X holds for changes that keep the rank.

    Notes: Z3.7.
    """
    design, targets = _system(X, y)
    # On a GPU torch has gels alone, which takes full rank for granted; LAPACK's gelsd finds the shortest solution in
    # any case.
    return _fit(torch.linalg.lstsq(design.cpu(), targets.cpu(), driver="gelsd").solution.to(X.device), y)


def ridge(X: Float[Tensor, "examples features"], y: Float[Tensor, "examples *targets"], l2: float) -> LinearFit:
    """The minimiser of (1/n) sum_i (w^T x_i + b - y_i)^2 / 2 + l2 |w|^2 / 2; the bias is not penalised.

    With columns and targets centred, w = (X^T X + n l2 I)^-1 X^T y = X^T (X X^T + n l2 I)^-1 y: the smaller system is
    solved, so many features cost no more than few examples. As l2 falls to 0, w tends to the shortest least-squares
    weights.
    """
    _, targets = _system(X, y)
    if not (l2 > 0 and math.isfinite(l2)):
        raise UserError(f"expected a positive, finite l2, got {l2}; without l2 use least_squares")
    (n, d), center, level = X.shape, X.mean(dim=0), targets.mean(dim=0)
    centered, targets = X - center, targets - level
    wide = d > n
    gram = centered @ centered.mT if wide else centered.mT @ centered
    factor, failed = torch.linalg.cholesky_ex(gram + n * l2 * torch.eye(len(gram), dtype=X.dtype, device=X.device))
    if int(failed):
        raise UserError(
            f"expected an l2 that {X.dtype} can distinguish from 0 beside these features, got {l2}; enlarge it or "
            "use float64"
        )
    solved = torch.cholesky_solve(targets if wide else centered.mT @ targets, factor)
    weight = centered.mT @ solved if wide else solved
    return _fit(torch.cat([weight, level.unsqueeze(0) - center.unsqueeze(0) @ weight]), y)


def _system(X: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """[X, 1] and the targets as columns, both checked."""
    check_shapes("n d, n k" if y.ndim == 2 else "n d, n", X=X, y=y)
    if len(y) == 0:
        raise UserError("expected at least one example to fit, got none; give X and y with rows")
    if not X.is_floating_point() or X.dtype != y.dtype:
        raise UserError(
            f"expected X and y of one float type, got {X.dtype} and {y.dtype}; convert both, e.g. with .double()"
        )
    if not (X.isfinite().all() and y.isfinite().all()):
        raise UserError("expected finite X and y, got NaN or infinity; drop or fill those rows")
    return torch.cat([X, X.new_ones(len(X), 1)], dim=1), y if y.ndim == 2 else y.unsqueeze(-1)


def _need_full_rank(factored: bool, fractions: Tensor, design: Tensor) -> None:
    """Raise an error where the fraction of a column that the columns before it do not explain is no more than
    rounding."""
    rows, columns = design.shape
    if not factored or not (fractions > (rows + columns) * torch.finfo(design.dtype).eps).all():
        raise UserError(
            f"expected columns of [X, 1] that do not depend on one another, got {rows} rows and {columns} columns "
            "that do; "
            "drop columns, add rows, or take the shortest solution with least_squares"
        )


def _fit(found: Tensor, y: Tensor) -> LinearFit:  # (d + 1, k)
    weight, bias = found[:-1].mT, found[-1]
    return LinearFit(weight, bias) if y.ndim == 2 else LinearFit(weight.squeeze(0), bias.squeeze(0))
