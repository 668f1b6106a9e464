"""Class-conditional Gaussians as a scikit-learn classifier."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from quoin.errors import UserError
from quoin.estimators.given import check_classification_input, check_predict_input, check_range
from quoin.models import GaussianDiscriminant

__all__ = ["GaussianDiscriminantAnalysis"]


class GaussianDiscriminantAnalysis(ClassifierMixin, BaseEstimator):
    """Bayes' rule with P(c) the fraction of class c and x | c normal: predicts argmax_c p(x | c) P(c).

    Args:
        shared_covariance: One covariance for all classes, which then meet in planes; else each has its own and they
            meet in quadrics.
        reg_covar: Added to every variance, as a fraction of the mean variance, so that a class of few examples has a
            density too.

    >>> X, y = [[0.0], [1.0], [8.0], [9.0]], ["low", "low", "high", "high"]
    >>> GaussianDiscriminantAnalysis().fit(X, y).predict([[2.0]])
    array(['low'], dtype='<U4')

    Notes: D5.2-2.
    """

    classes_: np.ndarray
    fit_intercept = False  # rows as given: the means are part of the distribution

    def __init__(self, *, shared_covariance: bool = False, reg_covar: float = 1e-6) -> None:
        self.shared_covariance = shared_covariance
        self.reg_covar = reg_covar

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        check_range("reg_covar", self.reg_covar, at_least=0.0)
        examples, labels = check_classification_input(self, X, y, None)
        rows = examples.X.double()
        if not rows.var(dim=0, correction=0).any():
            raise UserError("expected features that vary, got the same row in every example; give examples that differ")
        self.model_ = GaussianDiscriminant.fit(
            rows, labels, len(self.classes_), shared_covariance=self.shared_covariance, reg_covar=self.reg_covar
        )
        return self

    def _log_joint(self, X: ArrayLike) -> Tensor:
        check_is_fitted(self)
        return self.model_.log_joint(check_predict_input(self, X).double())

    def predict(self, X: ArrayLike) -> np.ndarray:
        best = self._log_joint(X).argmax(dim=-1).numpy()
        return self.classes_[best]

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        return self._log_joint(X).softmax(dim=-1).numpy()

    def predict_log_proba(self, X: ArrayLike) -> np.ndarray:
        return self._log_joint(X).log_softmax(dim=-1).numpy()
