"""Two classes separated by one linear score: logistic regression and the support vector machine, both losses of the
margin.

The labels in order stand for y = -1 and y = 1. `decision_function` is 2 s(x), so that the margin is y times it.
"""

from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from quoin.estimators.given import ClassWeight, check_classification_input, check_range
from quoin.estimators.linear_classes import LinearClasses, warn_of_too_few_steps
from quoin.losses import logistic_loss
from quoin.optim import ScoreLoss, fit_linear_svm

__all__ = ["LinearSVM", "LogisticClassifier"]


class BinaryClassifierBase(LinearClasses):
    """A score whose sign decides."""

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """2 s(x): the margin that each row would have if its class were the second."""
        return self._scores(X)[:, 0]

    def predict(self, X: ArrayLike) -> np.ndarray:
        second = self.decision_function(X) >= 0
        return self.classes_[second.astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        assert tags.classifier_tags is not None
        tags.classifier_tags.multi_class = False
        return tags


class LogisticClassifier(BinaryClassifierBase):
    """argmin sum_i s_i ln(1 + e^{-m_i}) + (l2 / 2) |coef_|^2 with m = y (x coef_ + intercept_) and weights s_i that sum
    to one.

    scikit-learn's LogisticRegression has C = 1 / (n l2). With l2 = 0 there is no minimiser on data that a hyperplane
    separates; a ConvergenceWarning is given.

    Args:
        class_weight: None, "balanced" or a dict from labels to weights.

    >>> LogisticClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]).predict([[0.2], [2.5]])
    array(['no', 'yes'], dtype='<U3')

    Notes: M7, M9.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        examples, labels = check_classification_input(self, X, y, sample_weight, self.class_weight, binary=True)
        signs = (2 * labels - 1).to(examples.X.dtype)

        def separate(scores: Tensor) -> bool:
            return bool(((signs * scores[:, 0])[examples.weights > 0] > 0).all())

        return self._minimize(examples, _logistic_loss_and_gradient(signs), 1, curvature=0.25, separate=separate)

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """P(y | x) = 1 / (1 + e^{-m}) of the first and of the second class."""
        scores = torch.from_numpy(self.decision_function(X))
        return torch.stack([torch.sigmoid(-scores), torch.sigmoid(scores)], dim=-1).numpy()

    def predict_log_proba(self, X: ArrayLike) -> np.ndarray:
        scores = torch.from_numpy(self.decision_function(X))
        return -logistic_loss(torch.stack([-scores, scores], dim=-1)).numpy()


class LinearSVM(BinaryClassifierBase):
    """argmin sum_i s_i max(0, 1 - m_i) + (l2 / 2) |coef_|^2 with m = y (x coef_ + intercept_) and weights s_i that sum
    to one.

    scikit-learn's LinearSVC(loss="hinge") has C = 1 / (n l2), and penalises its bias too, which this does not; its
    default loss is the square of the hinge, another problem.

    Args:
        class_weight: None, "balanced" or a dict from labels to weights.
        tol: It stops when the loss is within this fraction of itself of a proven lower bound.

    Notes: M7, M11, D5.2-4.
    """

    def __init__(
        self,
        l2: float = 1e-3,
        *,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-5,
        max_iter: int = 1000,
    ) -> None:
        super().__init__(l2, fit_intercept=fit_intercept, class_weight=class_weight, tol=tol, max_iter=max_iter)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        check_range("l2", self.l2, above=0.0)
        check_range("tol", self.tol, above=0.0)
        check_range("max_iter", self.max_iter, at_least=1)
        examples, labels = check_classification_input(self, X, y, sample_weight, self.class_weight, binary=True)
        found = fit_linear_svm(
            examples.X,
            (2 * labels - 1).to(examples.X.dtype),
            weights=examples.weights,
            l2=self.l2,
            bias=self.fit_intercept,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        self._keep(examples, found.weight.unsqueeze(-1), found.bias.unsqueeze(-1), found.num_steps)
        if not found.converged:
            warn_of_too_few_steps(
                found.num_steps,
                f"the loss may be {found.suboptimality_bound / found.loss:.1e} of itself too high, "
                f"above tol = {self.tol:g}",
            )
        return self


def _logistic_loss_and_gradient(signs: Tensor) -> ScoreLoss:
    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        margins = signs * scores[:, 0]
        return logistic_loss(margins), (-signs * torch.sigmoid(-margins)).unsqueeze(-1)

    return loss
