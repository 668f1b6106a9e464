"""A reader's own text as a chain of its letters, and a reader's own series with hidden states."""

import functools
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.errors import UserError
from quoin.prob import GaussianEmission, HiddenMarkovModel, MarkovChain, baum_welch, stationary_distribution

__all__ = ["HiddenStates", "hidden_states", "letter_chain", "two_state_model"]

MOST_LETTERS = 8


def two_state_model(stay: float) -> HiddenMarkovModel[GaussianEmission]:
    """Two hidden states that are kept with probability `stay` and speak as N(-1, 1) and N(1, 1)."""
    transition = torch.tensor([[stay, 1 - stay], [1 - stay, stay]], dtype=torch.float64)
    means = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    emission = GaussianEmission(means, torch.ones(2, 1, 1, dtype=torch.float64))
    return HiddenMarkovModel(MarkovChain(torch.full((2,), 0.5, dtype=torch.float64), transition), emission)


def letter_chain(text: str) -> tuple[list[str], MarkovChain]:
    """The chain of the most frequent letters (the others are left out), from its stationary distribution. The text is
    read as a ring, so that every letter has one after it."""
    letters = [letter for letter in text.lower() if letter.isalpha()]
    names = sorted(letter for letter, _ in Counter(letters).most_common(MOST_LETTERS))
    kept = [names.index(letter) for letter in letters if letter in names]
    if len(names) < 2:
        raise UserError(f"expected a text with at least two letters, got {len(names)}; type a longer one")
    counts = torch.zeros(len(names), len(names), dtype=torch.float64)
    for before, after in pairwise([*kept, kept[0]]):
        counts[before, after] += 1
    transition = counts / counts.sum(dim=1, keepdim=True)
    return names, MarkovChain(stationary_distribution(transition), transition)


class HiddenStates(NamedTuple):
    """A fitted model's most probable states, the states' means, and ln P before each step and after the last."""

    path: Int[Tensor, "n"]
    means: Float[Tensor, "k"]
    log_probs: list[float]


@functools.lru_cache(maxsize=8)
def hidden_states(series: tuple[float, ...], k: int) -> HiddenStates:
    """k hidden states behind a series, by at most 30 steps of Baum and Welch from means at its quantiles."""
    values = torch.tensor(series, dtype=torch.float64)
    scale, middle = values.std(), values.mean()
    rows = ((values - middle) / scale).unsqueeze(-1)
    means = torch.quantile(rows[:, 0], (torch.arange(k, dtype=torch.float64) + 0.5) / k).unsqueeze(-1)
    sticky = torch.full((k, k), 0.1 / (k - 1), dtype=torch.float64)
    chain = MarkovChain(torch.full((k,), 1 / k, dtype=torch.float64), sticky.fill_diagonal_(0.9))
    model = HiddenMarkovModel(chain, GaussianEmission(means, torch.full((k, 1, 1), 0.5, dtype=torch.float64)))
    fitted = baum_welch(model, rows, max_iter=30, tol=1e-5)
    shift = len(series) * float(scale.log())  # a density of the values, not of the rescaled ones
    log_probs = [each - shift for each in fitted.log_probs]
    return HiddenStates(
        fitted.output.viterbi(rows).output, fitted.output.emission.means[:, 0] * scale + middle, log_probs
    )
