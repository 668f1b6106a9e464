"""The benchmark `gmm-em`: Quoin beside scikit-learn's GaussianMixture."""

import warnings

import numpy as np

from quoin.bench.mixture_problem import COMPONENTS, NUM_STEPS, figures, points, start
from quoin.bench.worker import Repeats

__all__ = ["quoin", "quoin_float32", "sklearn_mixture"]


def quoin(repeats: Repeats) -> dict[str, float]:
    return _on_quoin(repeats, np.float64)


def quoin_float32(repeats: Repeats) -> dict[str, float]:
    return _on_quoin(repeats, np.float32)


def _on_quoin(repeats: Repeats, kind: type) -> dict[str, float]:
    import torch

    from quoin.models import em
    from quoin.prob import FullNormals, GaussianMixtureDistribution

    torch.set_num_threads(repeats.threads)
    given = points()
    weights, means, covariances = (torch.from_numpy(each.astype(kind)) for each in start(given))
    x, first = (
        torch.from_numpy(given.astype(kind)),
        GaussianMixtureDistribution(weights, FullNormals(means, covariances)),
    )
    found = repeats.timed(lambda: em(first, x, max_iter=NUM_STEPS, tol=0.0, min_variance=0.0))
    return figures(found.log_likelihoods[-2] / len(x))


def sklearn_mixture(repeats: Repeats) -> dict[str, float]:
    """Its own steps from the same distribution, without what it adds to variances, so that both implementations
    maximise the same.
    """
    from sklearn.mixture import GaussianMixture

    x = points()
    weights, means, covariances = start(x)
    model = GaussianMixture(
        COMPONENTS,
        tol=0.0,
        reg_covar=0.0,
        max_iter=NUM_STEPS,
        weights_init=weights,
        means_init=means,
        precisions_init=np.linalg.inv(covariances),
        init_params="random_from_data",  # the cheapest of its starts, which the distributions given replace
        random_state=0,
    )
    for _ in range(repeats.count):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns that so few steps do not converge
            model.fit(x)
        repeats.end()
    return figures(model.lower_bounds_[-1])
