"""What linear classifiers share: scores X coef_^T + intercept_ in the terms of scikit-learn, and words of warning."""

import warnings
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from quoin.estimators.given import ClassWeight, Examples, check_predict_input, check_range
from quoin.optim import ScoreLoss, fit_linear_scores

__all__ = ["LinearClasses", "warn_of_too_few_steps"]


class LinearClasses(ClassifierMixin, BaseEstimator):
    """A classifier with one row of `coef_` for each score."""

    coef_: np.ndarray  # (k, d)
    intercept_: np.ndarray  # (k,)
    classes_: np.ndarray

    def __init__(
        self,
        l2: float = 1e-3,
        *,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-10,
        max_iter: int = 1000,
    ) -> None:
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.class_weight: ClassWeight = class_weight
        self.tol = tol
        self.max_iter = max_iter

    def _minimize(
        self,
        examples: Examples,
        loss: ScoreLoss,
        num_scores: int,
        *,
        curvature: float,
        separate: Callable[[Tensor], bool],
    ) -> Self:
        """Fit by a smooth loss of the scores; `separate` of scores (n, k) is whether they classify every example
        right."""
        check_range("l2", self.l2, at_least=0.0)
        check_range("tol", self.tol, above=0.0)
        check_range("max_iter", self.max_iter, at_least=1)
        found = fit_linear_scores(
            examples.X,
            loss,
            num_scores,
            curvature=curvature,
            weights=examples.weights,
            l2=self.l2,
            bias=self.fit_intercept,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        self._keep(examples, found.weight, found.bias, found.num_steps)
        if self.l2 == 0 and separate(examples.X.double() @ found.weight + found.bias):
            _warn_of_no_minimizer()
        elif not found.converged:
            warn_of_too_few_steps(
                found.num_steps, f"the largest gradient is {found.gradient_norm:.1e}, above tol = {self.tol:g}"
            )
        return self

    def _scores(self, X: ArrayLike) -> np.ndarray:  # (n, d) -> (n, k)
        check_is_fitted(self)
        return check_predict_input(self, X).numpy() @ self.coef_.T + self.intercept_

    def _keep(self, examples: Examples, weight: Tensor, bias: Tensor, num_steps: int) -> None:  # (d, k), (k,)
        kind = examples.X.numpy().dtype
        self.coef_ = weight.mT.numpy().astype(kind)
        self.intercept_ = examples.bias_for(weight, bias).numpy().astype(kind)
        self.n_iter_ = max(1, num_steps)


def _warn_of_no_minimizer() -> None:
    """Warn where the loss falls for ever."""
    warnings.warn(
        "a hyperplane separates the classes, so without l2 there is no minimiser: the loss falls to 0 as the "
        "weights grow "
        "without bound, and where they stopped means nothing; give l2 > 0",
        ConvergenceWarning,
        stacklevel=4,
    )


def warn_of_too_few_steps(num_steps: int, what: str) -> None:
    """Warn where the fit ended too soon."""
    message = f"not at the minimum after {num_steps} steps: {what}; raise max_iter or tol, or scale the data"
    warnings.warn(message, ConvergenceWarning, stacklevel=3)
