"""The benchmarks on linear models, on Quoin's estimators; each stops at an objective at least as low as its peers'."""

import torch

from quoin.bench.linear_problem import L2, above_least, digit_images, log_objective, squared_objective, svm_objective
from quoin.bench.worker import Repeats
from quoin.estimators import LinearRegressor, LinearSVM, LogisticClassifier, SoftmaxClassifier

__all__ = ["logreg", "lstsq", "softmax", "svm"]


def lstsq(repeats: Repeats) -> dict[str, float]:
    given, model = _start(repeats), LinearRegressor(fit_intercept=False)
    repeats.timed(lambda: model.fit(given.features, given.numbers))
    return above_least("lstsq", squared_objective(model.predict(given.features), given.numbers))


def logreg(repeats: Repeats) -> dict[str, float]:
    given, model = _start(repeats), LogisticClassifier(L2, fit_intercept=False, tol=1e-4)
    repeats.timed(lambda: model.fit(given.features, given.signs))
    scores = model.decision_function(given.features)
    return above_least("logreg", log_objective(scores, given.signs, model.coef_))


def svm(repeats: Repeats) -> dict[str, float]:
    given, model = _start(repeats), LinearSVM(L2, fit_intercept=False, tol=1e-4)
    repeats.timed(lambda: model.fit(given.features, given.signs))
    scores = model.decision_function(given.features)
    return above_least("svm", svm_objective(scores, given.signs, model.coef_))


def softmax(repeats: Repeats) -> dict[str, float]:
    given, model = _start(repeats), SoftmaxClassifier(L2, fit_intercept=False, tol=1e-4)
    repeats.timed(lambda: model.fit(given.features, given.digits))
    scores = model.decision_function(given.features)
    return above_least("softmax", log_objective(scores, given.digits, model.coef_))


def _start(repeats: Repeats):
    torch.set_num_threads(repeats.threads)
    return digit_images()
