"""Nadaraya-Watson as scikit-learn estimators: one formula for regression and classification, and nothing to train but
the bandwidth.

n examples, d features
"""

from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from quoin.errors import UserError, did_you_mean, format_value
from quoin.estimators.given import check_classification_input, check_predict_input, check_range, check_regression_input
from quoin.estimators.kernel_bandwidth import leave_one_out_bandwidth
from quoin.layers import FallbackRule, every_key, nadaraya_watson, nearest_key, no_key, undefined
from quoin.tensor import BoxcarKernel, EpanechnikovKernel, GaussianKernel, SmoothingKernel, TriangularKernel, one_hot

__all__ = ["KernelClassifier", "KernelRegressor"]

KERNELS = {
    "gaussian": GaussianKernel(),
    "boxcar": BoxcarKernel(),
    "triangular": TriangularKernel(),
    "epanechnikov": EpanechnikovKernel(),
}
RULES = {"nearest": nearest_key, "mean": every_key, "zero": no_key, "nan": undefined}
CLASS_RULES = {"nearest": nearest_key, "mean": every_key}  # zeros and NaN are no probabilities


class KernelEstimatorBase(BaseEstimator):
    """What both estimators share: keys, values, a kernel and its bandwidth."""

    fit_intercept = False  # rows as given
    _rules = RULES

    def __init__(
        self,
        kernel: Literal["gaussian", "boxcar", "triangular", "epanechnikov"] = "gaussian",
        *,
        bandwidth: ArrayLike | Literal["leave-one-out"] = "leave-one-out",
        fallback: Literal["nearest", "mean", "zero", "nan"] = "nearest",
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.fallback = fallback

    def _store(self, X: Tensor, value: Tensor) -> None:
        kernel, rule = self._chosen()
        self._keys, self._values = X, value
        self.bandwidth_ = self._bandwidth(X, value, kernel, rule).numpy()

    def _chosen(self) -> tuple[SmoothingKernel, FallbackRule]:
        for name, given, known in (("kernel", self.kernel, KERNELS), ("fallback", self.fallback, self._rules)):
            if not isinstance(given, str) or given not in known:
                raise UserError(
                    f"expected {name} among {', '.join(known)}, got {format_value(given)}; "
                    f"{did_you_mean(str(given), known)}"
                )
        return KERNELS[self.kernel], self._rules[self.fallback]

    def _bandwidth(self, X: Tensor, value: Tensor, kernel: SmoothingKernel, rule: FallbackRule) -> Tensor:
        if isinstance(self.bandwidth, str):
            if self.bandwidth != "leave-one-out":
                raise UserError(
                    "expected bandwidth as a number, an array or 'leave-one-out', got "
                    f"{format_value(self.bandwidth)}; give one of them"
                )
            return leave_one_out_bandwidth(X, value, kernel, rule)
        bandwidths = np.asarray(self.bandwidth)
        if bandwidths.ndim > 1 or (bandwidths.ndim == 1 and len(bandwidths) != X.shape[1]):
            raise UserError(
                f"expected one bandwidth, or one for each of {X.shape[1]} features, got shape {bandwidths.shape}; "
                "give as many"
            )
        for each in bandwidths.reshape(-1).tolist():
            check_range("bandwidth", each, above=0.0)
        return torch.as_tensor(bandwidths, dtype=X.dtype).expand(X.shape[1]).clone()

    def _pooled(self, X: ArrayLike) -> Tensor:
        check_is_fitted(self)
        kernel, rule = self._chosen()
        rows = check_predict_input(self, X).to(self._keys.dtype)
        return nadaraya_watson(rows, self._keys, self._values, kernel, torch.from_numpy(self.bandwidth_), fallback=rule)


class KernelRegressor(RegressorMixin, KernelEstimatorBase):
    """f(x) = sum_i y_i K((x - x_i)/h) / sum_j K((x - x_j)/h): the mean of what was seen near x.

    Args:
        kernel: "gaussian", "boxcar", "triangular" or "epanechnikov".
        bandwidth: h, a number or one for each feature, or "leave-one-out": a multiple of the features' standard
            deviations, by which each example is best predicted from all others.
        fallback: What is predicted where no example lies within h of x: the value of the "nearest", the "mean" of all,
            "zero" or "nan".

    >>> KernelRegressor("boxcar", bandwidth=1.0).fit([[0.0], [1.0], [4.0]], [10.0, 20.0, 50.0]).predict([[0.5], [9.0]])
    array([15., 50.])

    Notes: Z11.7, Z11.10.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        examples, targets = check_regression_input(self, X, y, None)
        self._store(examples.X, targets.unsqueeze(-1))
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        return self._pooled(X).squeeze(-1).numpy()


class KernelClassifier(ClassifierMixin, KernelEstimatorBase):
    """P(c | x) = sum over i of class c of K((x - x_i)/h) / sum_j K((x - x_j)/h): the same mean, of one-hot labels.

    Parameters are those of `KernelRegressor`; `fallback` is "nearest" or "mean", and leave-one-out compares squared
    errors of one-hot labels.

    >>> estimator = KernelClassifier("triangular", bandwidth=2.0).fit([[0.0], [1.0], [2.0]], ["low", "low", "high"])
    >>> # 3/4 against 3/4 + 1/4, by how near they lie
    >>> estimator.predict([[0.5]]), estimator.predict_proba([[1.5]]).round(3)
    (array(['low'], dtype='<U4'), array([[0.429, 0.571]]))

    Notes: Z11.10.
    """

    classes_: np.ndarray
    _rules = CLASS_RULES

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        examples, labels = check_classification_input(self, X, y, None)
        self._store(examples.X, one_hot(labels, len(self.classes_), dtype=examples.X.dtype))
        return self

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        return self._pooled(X).numpy()

    def predict(self, X: ArrayLike) -> np.ndarray:
        best = self._pooled(X).argmax(dim=-1).numpy()
        return self.classes_[best]
