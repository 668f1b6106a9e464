"""The rows on linear models, on Quoin's estimators; each stops at an objective at least as low as its peers'."""

import torch

from quoin.bench.linear_problem import L2, above_least, log_objective, pictures, squared_objective, svm_objective
from quoin.bench.worker import Laps
from quoin.estimators import LinearRegressor, LinearSVM, LogisticClassifier, SoftmaxClassifier

__all__ = ["logreg", "lstsq", "softmax", "svm"]


def lstsq(laps: Laps) -> dict[str, float]:
    given, model = _start(laps), LinearRegressor(fit_intercept=False)
    for _ in range(laps.count):
        model.fit(given.features, given.numbers)
        laps.end()
    return above_least("lstsq", squared_objective(model.predict(given.features), given.numbers))


def logreg(laps: Laps) -> dict[str, float]:
    given, model = _start(laps), LogisticClassifier(L2, fit_intercept=False, tol=1e-4)
    for _ in range(laps.count):
        model.fit(given.features, given.signs)
        laps.end()
    scores = model.decision_function(given.features)
    return above_least("logreg", log_objective(scores, given.signs, model.coef_))


def svm(laps: Laps) -> dict[str, float]:
    given, model = _start(laps), LinearSVM(L2, fit_intercept=False, tol=1e-4)
    for _ in range(laps.count):
        model.fit(given.features, given.signs)
        laps.end()
    scores = model.decision_function(given.features)
    return above_least("svm", svm_objective(scores, given.signs, model.coef_))


def softmax(laps: Laps) -> dict[str, float]:
    given, model = _start(laps), SoftmaxClassifier(L2, fit_intercept=False, tol=1e-4)
    for _ in range(laps.count):
        model.fit(given.features, given.digits)
        laps.end()
    scores = model.decision_function(given.features)
    return above_least("softmax", log_objective(scores, given.digits, model.coef_))


def _start(laps: Laps):
    torch.set_num_threads(laps.threads)
    return pictures()
