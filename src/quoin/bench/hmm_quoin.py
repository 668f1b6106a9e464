"""The benchmarks on hidden Markov models, on Quoin, in float64 as the peer."""

import torch

from quoin.bench.hmm_problem import NUM_STEPS, figures, observations, tables
from quoin.bench.worker import Repeats
from quoin.prob import CategoricalEmission, GaussianEmission, HiddenMarkovModel, MarkovChain, baum_welch_step

__all__ = ["gaussian_many", "many", "one"]


def one(repeats: Repeats) -> dict[str, float]:
    return _symbols(repeats, 1)


def many(repeats: Repeats) -> dict[str, float]:
    return _symbols(repeats, 64)


def gaussian_many(repeats: Repeats) -> dict[str, float]:
    given = tables(2)
    emission = GaussianEmission(torch.from_numpy(given.means), torch.from_numpy(given.covariances))
    return _learn(repeats, HiddenMarkovModel(_chain(given), emission), observations(64)[1])


def _symbols(repeats: Repeats, num_sequences: int) -> dict[str, float]:
    given = tables(2)
    emission = CategoricalEmission(torch.from_numpy(given.emission))
    return _learn(repeats, HiddenMarkovModel(_chain(given), emission), observations(num_sequences)[0])


def _chain(given) -> MarkovChain:
    return MarkovChain(torch.from_numpy(given.start), torch.from_numpy(given.transition))


def _learn(repeats: Repeats, first: HiddenMarkovModel, observed) -> dict[str, float]:
    torch.set_num_threads(repeats.threads)
    seen = torch.from_numpy(observed)

    def steps() -> float:
        model, log_prob = first, 0.0
        for _ in range(NUM_STEPS):
            model, found = baum_welch_step(model, seen)
            log_prob = float(found)
        return log_prob

    return figures(repeats.timed(steps), len(observed))
