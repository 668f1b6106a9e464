"""scikit-learn faces (`fit`, `predict`, `score`) of models that are fitted in closed form or by a few lines."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.estimators.gaussian import GaussianClassifier
    from quoin.estimators.kernel_features import KernelFeatures
    from quoin.estimators.kernel_regression import KernelClassifier, KernelRegressor
    from quoin.estimators.least_squares import LinearRegressor, RidgeRegressor
    from quoin.estimators.margin import LinearSVM, LogisticClassifier
    from quoin.estimators.mixture import MixtureDensity
    from quoin.estimators.polynomial import PolynomialRegressor
    from quoin.estimators.softmax import SoftmaxClassifier

__all__ = [
    "GaussianClassifier",
    "KernelClassifier",
    "KernelFeatures",
    "KernelRegressor",
    "LinearRegressor",
    "LinearSVM",
    "LogisticClassifier",
    "MixtureDensity",
    "PolynomialRegressor",
    "RidgeRegressor",
    "SoftmaxClassifier",
]

export_lazily(__name__)
