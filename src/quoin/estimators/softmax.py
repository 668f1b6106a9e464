"""Softmax regression as a scikit-learn classifier.   n examples"""

from typing import Self

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional

from quoin.estimators.given import check_classification_input
from quoin.estimators.linear_classes import LinearClasses
from quoin.optim import ScoreLoss

__all__ = ["SoftmaxClassifier"]


class SoftmaxClassifier(LinearClasses):
    """argmin sum_i s_i (-ln softmax(x_i coef_^T + intercept_)_{y_i}) + (l2 / 2) |coef_|^2 with weights s_i that sum to
    one.

    scikit-learn's LogisticRegression has C = 1 / (n l2). With l2 = 0 there is no minimiser on data that the scores can
    separate; a ConvergenceWarning is given. Two classes have two scores here too.

    Args:
        class_weight: None, "balanced" or a dict from labels to weights.

    >>> SoftmaxClassifier().fit([[0.0], [1.0], [5.0], [6.0], [9.0]], [0, 0, 1, 1, 2]).predict([[0.5], [5.6], [10.0]])
    array([0, 1, 2])

    Notes: Z4.1, M12.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        examples, labels = check_classification_input(self, X, y, sample_weight, self.class_weight)

        def separate(scores: Tensor) -> bool:
            return _separated(scores, labels, examples.weights > 0)

        return self._minimize(
            examples, softmax_loss_and_gradient(labels), len(self.classes_), curvature=0.5, separate=separate
        )

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """The scores, one a class; for two classes the second less the first, as scikit-learn has it."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> np.ndarray:
        best = self._scores(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        return torch.from_numpy(self._scores(X)).softmax(dim=-1).numpy()

    def predict_log_proba(self, X: ArrayLike) -> np.ndarray:
        return torch.from_numpy(self._scores(X)).log_softmax(dim=-1).numpy()


def softmax_loss_and_gradient(labels: Int[Tensor, "examples"]) -> ScoreLoss:
    """-ln softmax(scores)_y of each example, and its gradient softmax(scores) - onehot(y)."""

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        logs = scores.log_softmax(dim=-1)
        gradients = logs.exp().scatter_add_(1, labels.unsqueeze(-1), scores.new_full((len(labels), 1), -1.0))
        return functional.nll_loss(logs, labels, reduction="none"), gradients

    return loss


def _separated(scores: Tensor, labels: Tensor, counts: Tensor) -> bool:
    own = scores.gather(1, labels.unsqueeze(-1))
    others = scores.scatter(1, labels.unsqueeze(-1), float("-inf")).amax(dim=1, keepdim=True)
    return bool((own > others)[counts].all())
