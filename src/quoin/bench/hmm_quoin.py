"""The rows on hidden Markov models, on Quoin, in float64 as the peer."""

import torch

from quoin.bench.hmm_problem import STEPS, figures, observations, tables
from quoin.bench.worker import Laps
from quoin.prob import CategoricalEmission, GaussianEmission, HiddenMarkovModel, MarkovChain, baum_welch_step

__all__ = ["gaussian_many", "many", "one"]


def one(laps: Laps) -> dict[str, float]:
    return _symbols(laps, 1)


def many(laps: Laps) -> dict[str, float]:
    return _symbols(laps, 64)


def gaussian_many(laps: Laps) -> dict[str, float]:
    given = tables(2)
    emission = GaussianEmission(torch.from_numpy(given.means), torch.from_numpy(given.covariances))
    return _learn(laps, HiddenMarkovModel(_chain(given), emission), observations(64)[1])


def _symbols(laps: Laps, num_sequences: int) -> dict[str, float]:
    given = tables(2)
    emission = CategoricalEmission(torch.from_numpy(given.emission))
    return _learn(laps, HiddenMarkovModel(_chain(given), emission), observations(num_sequences)[0])


def _chain(given) -> MarkovChain:
    return MarkovChain(torch.from_numpy(given.start), torch.from_numpy(given.transition))


def _learn(laps: Laps, first: HiddenMarkovModel, observed) -> dict[str, float]:
    torch.set_num_threads(laps.threads)
    seen, log_prob = torch.from_numpy(observed), 0.0
    for _ in range(laps.count):
        model = first
        for _ in range(STEPS):
            model, found = baum_welch_step(model, seen)
            log_prob = float(found)
        laps.end()
    return figures(log_prob, len(observed))
