"""Softmax regression as a scikit-learn classifier.   n examples, k classes"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from quoin.estimators.given import given_classes, hold
from quoin.estimators.linear_classes import LinearClasses, warn_of_no_minimiser, warn_of_too_few_steps
from quoin.optim import ScoreLoss, fit_scores

__all__ = ["SoftmaxClassifier"]


class SoftmaxClassifier(LinearClasses):
    """argmin sum_i s_i (-ln softmax(x_i coef_^T + intercept_)_{y_i}) + (l2 / 2) |coef_|^2 with weights s_i that sum to one.

    scikit-learn's LogisticRegression has C = 1 / (n l2). With l2 = 0 there is no minimiser on data that the scores can separate; a
    ConvergenceWarning says so. Two classes have two scores here too. `class_weight` is None, "balanced" or a dict.

    >>> SoftmaxClassifier().fit([[0.0], [1.0], [5.0], [6.0], [9.0]], [0, 0, 1, 1, 2]).predict([[0.5], [5.6], [10.0]])
    array([0, 1, 2])

    Notes: Z4.1, M12.
    """

    def __init__(self, l2=1e-3, *, fit_intercept=True, class_weight=None, tol=1e-10, max_iter=1000):
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X, y, sample_weight=None):
        hold("l2", self.l2, at_least=0.0)
        hold("tol", self.tol, above=0.0)
        hold("max_iter", self.max_iter, at_least=1)
        examples, labels = given_classes(self, X, y, sample_weight, self.class_weight)
        found = fit_scores(
            examples.X,
            cross_entropy_of(labels),
            len(self.classes_),
            curvature=0.5,
            weights=examples.weights,
            l2=self.l2,
            bias=self.fit_intercept,
            tolerance=self.tol,
            max_steps=self.max_iter,
        )
        self._keep(examples, found.weight, found.bias, found.steps)
        if self.l2 == 0 and _separated(examples.X.double() @ found.weight + found.bias, labels, examples.weights > 0):
            warn_of_no_minimiser()
        elif not found.converged:
            warn_of_too_few_steps(found.steps, f"the largest slope is {found.slope:.1e}, above tol = {self.tol:g}")
        return self

    def decision_function(self, X) -> np.ndarray:
        """The scores, one a class; for two classes the second less the first, as scikit-learn has it."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X) -> np.ndarray:
        likeliest = self._scores(X).argmax(axis=1)
        return self.classes_[likeliest]

    def predict_proba(self, X) -> np.ndarray:
        return torch.from_numpy(self._scores(X)).softmax(dim=-1).numpy()

    def predict_log_proba(self, X) -> np.ndarray:
        return torch.from_numpy(self._scores(X)).log_softmax(dim=-1).numpy()


def cross_entropy_of(labels: Tensor) -> ScoreLoss:
    """-ln softmax(scores)_y of each example, and its slope softmax(scores) - onehot(y)."""

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        logs = scores.log_softmax(dim=-1)
        slopes = logs.exp().scatter_add_(1, labels.unsqueeze(-1), scores.new_full((len(labels), 1), -1.0))
        return functional.nll_loss(logs, labels, reduction="none"), slopes

    return loss


def _separated(scores: Tensor, labels: Tensor, counts: Tensor) -> bool:
    own = scores.gather(1, labels.unsqueeze(-1))
    others = scores.scatter(1, labels.unsqueeze(-1), float("-inf")).amax(dim=1, keepdim=True)
    return bool((own > others)[counts].all())
