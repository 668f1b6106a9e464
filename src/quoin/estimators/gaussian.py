"""Class-conditional Gaussians as a scikit-learn classifier."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from quoin.errors import Mistake
from quoin.estimators.given import given_classes, given_rows, hold
from quoin.models import GenerativeClassifier

__all__ = ["GaussianClassifier"]


class GaussianClassifier(ClassifierMixin, BaseEstimator):
    """Bayes' rule with P(c) the share of class c and x | c normal: predicts argmax_c p(x | c) P(c).

    With `shared_covariance` the classes have one covariance and meet in planes; else each has its own and they meet in quadrics.
    `ridge`, a share of the mean variance, is added to every variance, so that a class of few examples has a density too.

    >>> GaussianClassifier().fit([[0.0], [1.0], [8.0], [9.0]], ["low", "low", "high", "high"]).predict([[2.0]])
    array(['low'], dtype='<U4')

    Notes: D5.2-2.
    """

    classes_: np.ndarray
    fit_intercept = False  # rows as they came: the means are part of the law

    def __init__(self, *, shared_covariance=False, ridge=1e-6):
        self.shared_covariance = shared_covariance
        self.ridge = ridge

    def fit(self, X, y):
        hold("ridge", self.ridge, at_least=0.0)
        examples, labels = given_classes(self, X, y, None)
        rows = examples.X.double()
        if not rows.var(dim=0, correction=0).any():
            raise Mistake("expected features that vary, came the same row in every example; give examples that differ")
        self.law_ = GenerativeClassifier.fit(rows, labels, len(self.classes_), shared=self.shared_covariance, ridge=self.ridge)
        return self

    def _log_joint(self, X) -> Tensor:
        check_is_fitted(self)
        return self.law_.log_joint(given_rows(self, X).double())

    def predict(self, X) -> np.ndarray:
        likeliest = self._log_joint(X).argmax(dim=-1).numpy()
        return self.classes_[likeliest]

    def predict_proba(self, X) -> np.ndarray:
        return self._log_joint(X).softmax(dim=-1).numpy()

    def predict_log_proba(self, X) -> np.ndarray:
        return self._log_joint(X).log_softmax(dim=-1).numpy()
