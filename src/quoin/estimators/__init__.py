"""scikit-learn estimators (`fit`, `predict`, `score`) for models with closed-form or simple iterative fits."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.estimators.gaussian import GaussianDiscriminantAnalysis
    from quoin.estimators.kernel_features import RandomKernelFeatures
    from quoin.estimators.kernel_regression import KernelClassifier, KernelRegressor
    from quoin.estimators.least_squares import LinearRegressor, RidgeRegressor
    from quoin.estimators.margin import LinearSVM, LogisticClassifier
    from quoin.estimators.mixture import GaussianMixtureEM
    from quoin.estimators.polynomial import PolynomialRegressor
    from quoin.estimators.softmax import SoftmaxClassifier

__all__ = [
    "GaussianDiscriminantAnalysis",
    "GaussianMixtureEM",
    "KernelClassifier",
    "KernelRegressor",
    "LinearRegressor",
    "LinearSVM",
    "LogisticClassifier",
    "PolynomialRegressor",
    "RandomKernelFeatures",
    "RidgeRegressor",
    "SoftmaxClassifier",
]

export_lazily(__name__)
