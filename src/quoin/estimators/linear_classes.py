"""What linear classifiers share: scores X coef_^T + intercept_ in the terms of scikit-learn, and words of warning."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from quoin.estimators.given import Examples, given_rows

__all__ = ["LinearClasses", "warn_of_no_minimiser", "warn_of_too_few_steps"]


class LinearClasses(ClassifierMixin, BaseEstimator):
    """A classifier with one row of `coef_` for each score."""

    coef_: np.ndarray  # (k, d)
    intercept_: np.ndarray  # (k,)
    classes_: np.ndarray

    def _scores(self, X) -> np.ndarray:  # (n, d) -> (n, k)
        check_is_fitted(self)
        return given_rows(self, X).numpy() @ self.coef_.T + self.intercept_

    def _keep(self, examples: Examples, weight: Tensor, bias: Tensor, steps: int) -> None:  # (d, k), (k,)
        kind = examples.X.numpy().dtype
        self.coef_ = weight.mT.numpy().astype(kind)
        self.intercept_ = examples.bias_for(weight, bias).numpy().astype(kind)
        self.n_iter_ = max(1, steps)


def warn_of_no_minimiser() -> None:
    """Said where the loss falls for ever."""
    warnings.warn(
        "a hyperplane separates the classes, so without l2 there is no minimiser: the loss falls to 0 as the weights grow "
        "without bound, and where they stopped means nothing; give l2 > 0",
        ConvergenceWarning,
        stacklevel=3,
    )


def warn_of_too_few_steps(steps: int, what: str) -> None:
    """Said where the fit ended too soon."""
    message = f"not at the minimum after {steps} steps: {what}; raise max_iter or tol, or scale the data"
    warnings.warn(message, ConvergenceWarning, stacklevel=3)
