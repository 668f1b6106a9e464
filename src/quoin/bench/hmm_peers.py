"""The benchmarks on hidden Markov models, on hmmlearn with `implementation="scaling"`, its quicker one; it uses one
thread.
"""

import numpy as np
from hmmlearn import hmm  # pyright: ignore[reportMissingImports]

from quoin.bench.hmm_problem import NUM_STEPS, STATES, SYMBOLS, figures, observations, tables
from quoin.bench.worker import Repeats

__all__ = ["gaussian_many", "many", "one"]


def one(repeats: Repeats) -> dict[str, float]:
    return _symbols(repeats, 1)


def many(repeats: Repeats) -> dict[str, float]:
    return _symbols(repeats, 64)


def gaussian_many(repeats: Repeats) -> dict[str, float]:
    """Full covariances and no priors, so that it maximises the likelihood alone, as Quoin does."""
    given = tables(2)
    model = hmm.GaussianHMM(
        STATES,
        "full",
        covars_prior=0,
        covars_weight=0,
        means_weight=0,
        n_iter=NUM_STEPS,
        tol=-np.inf,
        init_params="",
        implementation="scaling",
    )

    def begin() -> None:
        model.means_, model.covars_ = given.means, given.covariances

    return _learn(repeats, model, begin, observations(64)[1])


def _symbols(repeats: Repeats, num_sequences: int) -> dict[str, float]:
    given = tables(2)
    model = hmm.CategoricalHMM(
        STATES, n_features=SYMBOLS, n_iter=NUM_STEPS, tol=-np.inf, init_params="", implementation="scaling"
    )

    def begin() -> None:
        model.emissionprob_ = given.emission

    return _learn(repeats, model, begin, observations(num_sequences)[0][..., None])


def _learn(repeats: Repeats, model, begin, observed: np.ndarray) -> dict[str, float]:
    given, lengths = tables(2), [observed.shape[1]] * len(observed)
    joined = observed.reshape(-1, observed.shape[-1])
    for _ in range(repeats.count):
        model.startprob_, model.transmat_ = given.start, given.transition
        begin()
        model.fit(joined, lengths)
        repeats.end()
    return figures(model.monitor_.history[-1], len(observed))
