"""The rows on linear models, on scikit-learn: each estimator with the solver and the data type that were quickest for it here."""

import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from quoin.bench.linear_problem import L2, ROWS, above_least, log_objective, pictures, squared_objective, svm_objective
from quoin.bench.worker import Laps

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


def ridge_cholesky(laps: Laps) -> dict[str, float]:
    return _least_squares(laps, Ridge(alpha=0.0, solver="cholesky", fit_intercept=False))


def linear_regression(laps: Laps) -> dict[str, float]:
    return _least_squares(laps, LinearRegression(fit_intercept=False))


def logistic_lbfgs(laps: Laps) -> dict[str, float]:
    return _logistic(laps, LogisticRegression(C=C, solver="lbfgs", fit_intercept=False, max_iter=1000))


def logistic_newton_cg(laps: Laps) -> dict[str, float]:
    return _logistic(laps, LogisticRegression(C=C, solver="newton-cg", fit_intercept=False, max_iter=1000))


def linear_svc(laps: Laps) -> dict[str, float]:
    """With the hinge itself, not its square, which is another problem; liblinear then has its dual solver only, on one thread.

    Left to its own tolerance it goes on for thousands of passes; after these 300 its objective is still above Quoin's.
    """
    given = pictures()
    model = LinearSVC(C=C, loss="hinge", fit_intercept=False, max_iter=300)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for _ in range(laps.count):
        model.fit(given.features, given.signs)
        laps.end()
    return above_least("svm", svm_objective(given.features @ model.coef_[0], given.signs, model.coef_))


def softmax_lbfgs(laps: Laps) -> dict[str, float]:
    return _softmax(laps, LogisticRegression(C=C, solver="lbfgs", fit_intercept=False, max_iter=1000))


def softmax_newton_cg(laps: Laps) -> dict[str, float]:
    return _softmax(laps, LogisticRegression(C=C, solver="newton-cg", fit_intercept=False, max_iter=1000))


def _least_squares(laps: Laps, model) -> dict[str, float]:
    given = pictures()
    for _ in range(laps.count):
        model.fit(given.features, given.numbers)
        laps.end()
    return above_least("lstsq", squared_objective(model.predict(given.features), given.numbers))


def _logistic(laps: Laps, model) -> dict[str, float]:
    given = pictures()
    for _ in range(laps.count):
        model.fit(given.features, given.signs)
        laps.end()
    return above_least("logreg", log_objective(given.features @ model.coef_[0], given.signs, model.coef_))


def _softmax(laps: Laps, model) -> dict[str, float]:
    given = pictures()
    for _ in range(laps.count):
        model.fit(given.features, given.digits)
        laps.end()
    return above_least("softmax", log_objective(given.features @ model.coef_.T, given.digits, model.coef_))
