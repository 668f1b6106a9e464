"""The rows on hidden Markov models, on hmmlearn with `implementation="scaling"`, its quicker one; it uses one thread."""

import numpy as np
from hmmlearn import hmm  # pyright: ignore[reportMissingImports]

from quoin.bench.hmm_problem import STATES, STEPS, SYMBOLS, figures, observations, tables
from quoin.bench.worker import Laps

__all__ = ["gaussian_many", "many", "one"]


def one(laps: Laps) -> dict[str, float]:
    return _symbols(laps, 1)


def many(laps: Laps) -> dict[str, float]:
    return _symbols(laps, 64)


def gaussian_many(laps: Laps) -> dict[str, float]:
    """Full covariances and no priors, so that it maximises the likelihood alone, as Quoin does."""
    given = tables(2)
    model = hmm.GaussianHMM(
        STATES,
        "full",
        covars_prior=0,
        covars_weight=0,
        means_weight=0,
        n_iter=STEPS,
        tol=-np.inf,
        init_params="",
        implementation="scaling",
    )

    def begin() -> None:
        model.means_, model.covars_ = given.means, given.covariances

    return _learn(laps, model, begin, observations(64)[1])


def _symbols(laps: Laps, num_sequences: int) -> dict[str, float]:
    given = tables(2)
    model = hmm.CategoricalHMM(STATES, n_features=SYMBOLS, n_iter=STEPS, tol=-np.inf, init_params="", implementation="scaling")

    def begin() -> None:
        model.emissionprob_ = given.emission

    return _learn(laps, model, begin, observations(num_sequences)[0][..., None])


def _learn(laps: Laps, model, begin, observed: np.ndarray) -> dict[str, float]:
    given, lengths = tables(2), [observed.shape[1]] * len(observed)
    joined = observed.reshape(-1, observed.shape[-1])
    for _ in range(laps.count):
        model.startprob_, model.transmat_ = given.start, given.transition
        begin()
        model.fit(joined, lengths)
        laps.end()
    return figures(model.monitor_.history[-1], len(observed))
