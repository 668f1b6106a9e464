"""Polynomial fitting as a scikit-learn regressor."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.validation import check_is_fitted

from quoin.estimators.given import Examples, as_tensor, check_predict_input, check_range, check_regression_input
from quoin.estimators.least_squares import shortest_least_squares

__all__ = ["PolynomialRegressor"]


class PolynomialRegressor(RegressorMixin, BaseEstimator):
    """The polynomial of total degree at most `degree` of least squares, plus l2 times the squared length of its
    coefficients.

    Features are centred and scaled to unit size before powers are taken, so that high degrees stay within what numbers
    can hold; `coef_` and the penalty are about these, in the order of `powers_`.

    >>> PolynomialRegressor(2).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 4.0, 9.0]).predict([[5.0]]).round(6)
    array([25.])

    Notes: Z3.27.
    """

    fit_intercept = True

    def __init__(self, degree: int = 3, *, l2: float = 0.0) -> None:
        self.degree = degree
        self.l2 = l2

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        check_range("degree", self.degree, at_least=0)
        check_range("l2", self.l2, at_least=0.0)
        examples, targets = check_regression_input(self, X, y, sample_weight)
        size = (examples.weights.double() @ examples.X.double().square()).sqrt().numpy()
        self.center_, self.size_ = examples.center.double().numpy(), np.where(size > 0, size, 1.0)
        # The constant is its own column here: the powers' means are not zero, and the bias must not be penalised.
        self._powers = (
            PolynomialFeatures(self.degree, include_bias=False).fit(np.zeros((1, len(size)))) if self.degree else None
        )
        self.powers_ = np.zeros((0, len(size)), int) if self._powers is None else self._powers.powers_
        monomials = self._monomials(examples.X.double().numpy() / self.size_)
        weights = examples.weights.double()
        means, mean = weights.numpy() @ monomials, float(weights @ targets.double())
        if not self.degree:
            self.coef_, self.intercept_ = np.zeros(0), mean
            return self
        centered = Examples(as_tensor(monomials - means), as_tensor(means), weights)
        self.coef_ = shortest_least_squares(centered, targets.double() - mean, self.l2).numpy()
        self.intercept_ = mean - float(means @ self.coef_)
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        check_is_fitted(self)
        rows = check_predict_input(self, X).double().numpy()
        return self._monomials((rows - self.center_) / self.size_) @ self.coef_ + self.intercept_

    def _monomials(self, rows: np.ndarray) -> np.ndarray:  # (n, d) -> (n, monomials)
        return np.zeros((len(rows), 0)) if self._powers is None else np.asarray(self._powers.transform(rows))
