"""Cases for `quoin.estimators`: see tests/dtypes.py. The faces take arrays, of the same dtypes."""

import numpy as np
import torch

from quoin import estimators as q

ROWS = [[0, 100], [120, 7], [3, 90], [110, 20], [9, 60], [100, 3]]
CLASSES, NEW = np.array(["a", "b"] * 3), [[200, 3], [7, 130]]
TARGETS = [200, 3, 100, 7, 90, 1]


def regressed(face):
    def case(x):
        fitted = face.fit(x(ROWS).numpy(), x(TARGETS).numpy())
        return torch.from_numpy(fitted.predict(x(NEW).numpy()))

    return case


def chances(face):
    return lambda x: torch.from_numpy(face.fit(x(ROWS).numpy(), CLASSES).predict_proba(x(NEW).numpy()))


def scores(face):
    return lambda x: torch.from_numpy(face.fit(x(ROWS).numpy(), CLASSES).decision_function(x(NEW).numpy()))


def weighed(x):
    fitted = q.LinearRegressor().fit(
        x(ROWS).numpy(), x(TARGETS).numpy(), sample_weight=x([100, 90, 3, 120, 60, 7]).numpy()
    )
    return torch.from_numpy(fitted.coef_)


def mixture(x):
    fitted = q.GaussianMixtureEM(min_variance=1.0, random_state=0).fit(x(ROWS).numpy())
    return torch.from_numpy(fitted.score_samples(x(ROWS).numpy())), fitted.bic(x(ROWS).numpy())


CASES = {
    "LinearRegressor": regressed(q.LinearRegressor()),
    "LinearRegressor weights": weighed,
    "RidgeRegressor": regressed(q.RidgeRegressor(1.0)),
    "PolynomialRegressor": regressed(q.PolynomialRegressor(2, l2=1.0)),
    "KernelRegressor": regressed(q.KernelRegressor(bandwidth=50.0)),
    "KernelClassifier": chances(q.KernelClassifier(bandwidth=50.0)),
    "GaussianDiscriminantAnalysis": chances(q.GaussianDiscriminantAnalysis(reg_covar=1.0)),
    "LogisticClassifier": chances(q.LogisticClassifier(1.0)),
    "SoftmaxClassifier": chances(q.SoftmaxClassifier(1.0)),
    "LinearSVM": scores(q.LinearSVM(1.0)),
    "GaussianMixtureEM": mixture,
    "RandomKernelFeatures": lambda x: torch.from_numpy(
        q.RandomKernelFeatures(4, gamma=1e-4, random_state=0).fit(x(ROWS).numpy()).transform(x(NEW).numpy())
    ),
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

NO_NUMBERS: dict[str, str] = {}
