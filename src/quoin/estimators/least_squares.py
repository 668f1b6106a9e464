"""Least squares and ridge regression as scikit-learn regressors.

n examples, d features
"""

from typing import Literal, Self

import numpy as np
import torch
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, check_random_state
from torch import Tensor

from quoin.errors import UserError, did_you_mean, format_value
from quoin.estimators.given import Examples, RandomState, check_predict_input, check_range, check_regression_input
from quoin.optim import cosine, solve_normal_equations

__all__ = ["LinearRegressor", "LinearRegressorBase", "RidgeRegressor", "shortest_least_squares"]

BATCH = 32


class LinearRegressorBase(RegressorMixin, BaseEstimator):
    """What linear regressors share: y = X coef_ + intercept_."""

    coef_: np.ndarray
    intercept_: float

    def predict(self, X: ArrayLike) -> np.ndarray:
        check_is_fitted(self)
        return check_predict_input(self, X).numpy() @ self.coef_ + self.intercept_

    def _keep(self, examples: Examples, weight: Tensor, mean: Tensor) -> None:
        self.coef_ = weight.numpy().astype(examples.X.numpy().dtype)
        self.intercept_ = float(examples.bias_for(weight, mean))


class LinearRegressor(LinearRegressorBase):
    """argmin_{w, b} sum_i s_i (x_i w + b - y_i)^2, and among several the shortest w.

    Args:
        solver: "normal" (the normal equations; where columns depend on one another, as "qr"), "qr" (a QR factorisation,
            or singular values where columns depend on one another: neither squares the condition number) or "sgd"
            (minibatch descent, which ends near the same point).
        max_iter: Passes of "sgd" over the data.
        random_state: Of the minibatches of "sgd"; the other solvers have none.

    >>> LinearRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(6)
    array([7.])

    Notes: Z3.7, D1.3-12.
    """

    def __init__(
        self,
        solver: Literal["normal", "qr", "sgd"] = "normal",
        *,
        fit_intercept: bool = True,
        max_iter: int = 100,
        random_state: RandomState = None,
    ) -> None:
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        check_range("max_iter", self.max_iter, at_least=1)
        solvers = {"normal": self._normal, "qr": self._qr, "sgd": self._sgd}
        if self.solver not in solvers:
            raise UserError(
                f"expected a solver, got {format_value(self.solver)}: {did_you_mean(str(self.solver), solvers)}"
            )
        examples, targets = check_regression_input(self, X, y, sample_weight)
        mean = examples.weights @ targets if self.fit_intercept else targets.new_zeros(())
        self.n_iter_ = 1
        self._keep(examples, solvers[self.solver](examples, targets - mean), mean.double())
        return self

    def _normal(self, examples: Examples, targets: Tensor) -> Tensor:
        try:
            return solve_normal_equations(examples.X, targets, weights=examples.weights)
        except UserError:  # dependent columns
            return self._qr(examples, targets)

    def _qr(self, examples: Examples, targets: Tensor) -> Tensor:
        return shortest_least_squares(examples, targets)

    def _sgd(self, examples: Examples, targets: Tensor) -> Tensor:
        """Steps on columns of unit size at the learning rate 1 / mean |x|^2, which no batch can overshoot by much,
        falling to zero.
        """
        seed = check_random_state(self.random_state).randint(2**31)
        generator = torch.Generator().manual_seed(int(seed))
        size = (examples.weights @ examples.X.square()).sqrt()
        X = examples.X / torch.where(size > 0, size, 1)
        sample_weight = examples.weights * len(X)  # one on average
        w, total, lr = X.new_zeros(X.shape[1]), self.max_iter * -(-len(X) // BATCH), 1 / max(1, int((size > 0).sum()))
        step = 0
        for _ in range(self.max_iter):
            for rows in torch.randperm(len(X), generator=generator).split(BATCH):
                residual = sample_weight[rows] * (X[rows] @ w - targets[rows])
                w -= lr * cosine(step / total) / len(rows) * (X[rows].mT @ residual)
                step += 1
        self.n_iter_ = self.max_iter
        return torch.where(size > 0, w / torch.where(size > 0, size, 1), 0).double()


class RidgeRegressor(LinearRegressorBase):
    """argmin_{w, b} sum_i s_i (x_i w + b - y_i)^2 + l2 |w|^2 with weights s_i that sum to one; the bias is not
    penalised.

    scikit-learn's Ridge sums the squares where this takes their mean: its alpha is n · l2.
    """

    def __init__(self, l2: float = 1e-3, *, fit_intercept: bool = True) -> None:
        self.l2 = l2
        self.fit_intercept = fit_intercept

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        check_range("l2", self.l2, at_least=0.0)
        examples, targets = check_regression_input(self, X, y, sample_weight)
        mean = examples.weights @ targets if self.fit_intercept else targets.new_zeros(())
        try:
            weight = solve_normal_equations(examples.X, targets - mean, l2=self.l2, weights=examples.weights)
        except UserError:  # so small an l2 that the columns still depend on one another
            weight = shortest_least_squares(examples, targets - mean, self.l2)
        self._keep(examples, weight, mean.double())
        return self


def shortest_least_squares(
    examples: Examples, targets: Float[Tensor, "examples"], l2: float = 0.0
) -> Float64[Tensor, "features"]:
    """The shortest w of least weighted squares, R^-1 Q^T y, or by singular values where columns depend on one another.

    l2 |w|^2 enters as d further rows, sqrt(l2) w = 0. Nothing here squares the condition number.
    """
    root = examples.weights.sqrt().double()
    rows, right = examples.X.double() * root.unsqueeze(-1), targets.double() * root
    if l2:
        rows = torch.cat([rows, l2**0.5 * torch.eye(rows.shape[1], dtype=torch.float64)])
        right = torch.cat([right, right.new_zeros(rows.shape[1])])
    if len(rows) >= rows.shape[1]:
        Q, R = torch.linalg.qr(rows)
        unexplained = R.diagonal().abs() / rows.norm(dim=0)  # the fraction of each column that those before it leave
        if (unexplained > len(rows) * torch.finfo(torch.float64).eps).all():
            return torch.linalg.solve_triangular(R, (Q.mT @ right).unsqueeze(-1), upper=True).squeeze(-1)
    return torch.linalg.lstsq(rows, right.unsqueeze(-1), driver="gelsd").solution.squeeze(-1)
