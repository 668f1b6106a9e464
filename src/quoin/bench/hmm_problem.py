"""The work of the benchmarks `hmm`, `hmm-64` and `hmm-gaussian-64`: one step of Baum-Welch, 20 states, 10,000
observations in a sequence.

Sequences are sampled from one model and learnt from another, as in earnest; every repeat is `NUM_STEPS` steps from the
same tables.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["DIM", "NUM_STEPS", "STATES", "SYMBOLS", "Tables", "figures", "observations", "tables"]

STATES, SYMBOLS, DIM = 20, 10, 2
LENGTH, NUM_STEPS = 10_000, 3


@dataclass(frozen=True)
class Tables:
    """A hidden Markov model, in numbers that both implementations take."""

    start: np.ndarray  # (20,)
    transition: np.ndarray  # (20, 20)
    emission: np.ndarray  # (20, 10)
    means: np.ndarray  # (20, 2)
    covariances: np.ndarray  # (20, 2, 2)


def tables(seed: int) -> Tables:
    random = np.random.default_rng(seed)
    probs = [random.dirichlet(np.ones(size), STATES) for size in (STATES, SYMBOLS)]
    means = 3 * random.standard_normal((STATES, DIM))
    return Tables(random.dirichlet(np.ones(STATES)), probs[0], probs[1], means, np.tile(np.eye(DIM), (STATES, 1, 1)))


def observations(num_sequences: int) -> tuple[np.ndarray, np.ndarray]:
    """Symbols (s, 10000) and numbers (s, 10000, 2) of the model with seed 0."""
    true, random = tables(0), np.random.default_rng(1)
    next_state, emitted = true.transition.cumsum(axis=1), true.emission.cumsum(axis=1)
    states = np.empty((num_sequences, LENGTH), dtype=np.int64)
    states[:, 0] = random.integers(STATES, size=num_sequences)
    for step in range(1, LENGTH):
        states[:, step] = (random.random((num_sequences, 1)) > next_state[states[:, step - 1], :-1]).sum(axis=1)
    symbols = np.concatenate([(random.random((LENGTH, 1)) > emitted[row, :-1]).sum(axis=1)[None] for row in states])
    return symbols, true.means[states] + random.standard_normal((num_sequences, LENGTH, DIM))


def figures(log_prob: float, num_sequences: int) -> dict[str, float]:
    """The figure of quality: ln P(o) for each observation before the last step, the same in both implementations."""
    return {"ln P(o) for each observation": log_prob / (num_sequences * LENGTH)}
