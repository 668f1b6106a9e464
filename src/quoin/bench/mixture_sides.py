"""The row `gmm-em`: Quoin beside scikit-learn's GaussianMixture."""

import warnings

import numpy as np

from quoin.bench.mixture_problem import COMPONENTS, STEPS, figures, points, start
from quoin.bench.worker import Laps

__all__ = ["quoin", "quoin_float32", "sklearn_mixture"]


def quoin(laps: Laps) -> dict[str, float]:
    return _on_quoin(laps, np.float64)


def quoin_float32(laps: Laps) -> dict[str, float]:
    return _on_quoin(laps, np.float32)


def _on_quoin(laps: Laps, kind: type) -> dict[str, float]:
    import torch

    from quoin.models import em
    from quoin.prob import FullNormals, NormalMixture

    torch.set_num_threads(laps.threads)
    given = points()
    weights, means, covariances = (torch.from_numpy(each.astype(kind)) for each in start(given))
    x, first = torch.from_numpy(given.astype(kind)), NormalMixture(weights, FullNormals(means, covariances))
    for _ in range(laps.count):
        found = em(first, x, num_steps=STEPS, tolerance=0.0, min_variance=0.0)
        laps.end()
    return figures(found.log_likelihoods[-2] / len(x))


def sklearn_mixture(laps: Laps) -> dict[str, float]:
    """Its own steps from the same law, without what it adds to variances, so that both sides maximise the same."""
    from sklearn.mixture import GaussianMixture

    x = points()
    weights, means, covariances = start(x)
    model = GaussianMixture(
        COMPONENTS,
        tol=0.0,
        reg_covar=0.0,
        max_iter=STEPS,
        weights_init=weights,
        means_init=means,
        precisions_init=np.linalg.inv(covariances),
        init_params="random_from_data",  # the cheapest of its starts, which the laws given replace
        random_state=0,
    )
    for _ in range(laps.count):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it tells that so few steps do not converge
            model.fit(x)
        laps.end()
    return figures(model.lower_bounds_[-1])
