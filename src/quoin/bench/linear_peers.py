"""The benchmarks on linear models, on scikit-learn: each estimator with the solver and the data type that were quickest
for it here.
"""

import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from quoin.bench.linear_problem import (
    L2,
    ROWS,
    above_least,
    digit_images,
    log_objective,
    squared_objective,
    svm_objective,
)
from quoin.bench.worker import Repeats

__all__ = [
    "linear_regression",
    "linear_svc",
    "logistic_lbfgs",
    "logistic_newton_cg",
    "ridge_cholesky",
    "softmax_lbfgs",
    "softmax_newton_cg",
]

C = 1 / (ROWS * L2)


def ridge_cholesky(repeats: Repeats) -> dict[str, float]:
    return _least_squares(repeats, Ridge(alpha=0.0, solver="cholesky", fit_intercept=False))


def linear_regression(repeats: Repeats) -> dict[str, float]:
    return _least_squares(repeats, LinearRegression(fit_intercept=False))


def logistic_lbfgs(repeats: Repeats) -> dict[str, float]:
    return _logistic(repeats, LogisticRegression(C=C, solver="lbfgs", fit_intercept=False, max_iter=1000))


def logistic_newton_cg(repeats: Repeats) -> dict[str, float]:
    return _logistic(repeats, LogisticRegression(C=C, solver="newton-cg", fit_intercept=False, max_iter=1000))


def linear_svc(repeats: Repeats) -> dict[str, float]:
    """With the hinge itself, not its square, which is another problem; liblinear then has its dual solver only, on one
    thread.

    Left to its own tolerance it goes on for thousands of passes; after these 300 its objective is still above Quoin's.
    """
    given = digit_images()
    model = LinearSVC(C=C, loss="hinge", fit_intercept=False, max_iter=300)
    warnings.simplefilter("ignore", ConvergenceWarning)
    repeats.timed(lambda: model.fit(given.features, given.signs))
    return above_least("svm", svm_objective(given.features @ model.coef_[0], given.signs, model.coef_))


def softmax_lbfgs(repeats: Repeats) -> dict[str, float]:
    return _softmax(repeats, LogisticRegression(C=C, solver="lbfgs", fit_intercept=False, max_iter=1000))


def softmax_newton_cg(repeats: Repeats) -> dict[str, float]:
    return _softmax(repeats, LogisticRegression(C=C, solver="newton-cg", fit_intercept=False, max_iter=1000))


def _least_squares(repeats: Repeats, model) -> dict[str, float]:
    given = digit_images()
    repeats.timed(lambda: model.fit(given.features, given.numbers))
    return above_least("lstsq", squared_objective(model.predict(given.features), given.numbers))


def _logistic(repeats: Repeats, model) -> dict[str, float]:
    given = digit_images()
    repeats.timed(lambda: model.fit(given.features, given.signs))
    return above_least("logreg", log_objective(given.features @ model.coef_[0], given.signs, model.coef_))


def _softmax(repeats: Repeats, model) -> dict[str, float]:
    given = digit_images()
    repeats.timed(lambda: model.fit(given.features, given.digits))
    return above_least("softmax", log_objective(given.features @ model.coef_.T, given.digits, model.coef_))
