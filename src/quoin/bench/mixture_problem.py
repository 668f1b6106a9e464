"""The work of the benchmark `gmm-em`: EM for 20 normal distributions with full covariances on 200,000 points of 16
coordinates, in float64.

Points are sampled from one mixture and EM starts at another, the same in both implementations; every repeat is
`NUM_STEPS` steps from there.
"""

import numpy as np

__all__ = ["COMPONENTS", "DIM", "NUM_STEPS", "figures", "points", "start"]

COUNT, DIM, COMPONENTS, NUM_STEPS = 200_000, 16, 20, 3


def points() -> np.ndarray:  # (200000, 16)
    random = np.random.default_rng(0)
    means = 2 * random.standard_normal((COMPONENTS, DIM))
    factors = 0.3 * random.standard_normal((COMPONENTS, DIM, DIM)) + np.eye(DIM)
    which = random.integers(COMPONENTS, size=COUNT)
    noise = random.standard_normal((COUNT, DIM))
    return means[which] + np.concatenate([noise[which == i] @ factors[i].T for i in range(COMPONENTS)])[_indices(which)]


def start(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # (20,), (20, 16), (20, 16, 16)
    """Equal weights, 20 of the points as means, and the covariance of all points for each."""
    chosen = np.random.default_rng(1).choice(len(x), COMPONENTS, replace=False)
    return np.full(COMPONENTS, 1 / COMPONENTS), x[chosen], np.tile(np.cov(x.T, bias=True), (COMPONENTS, 1, 1))


def figures(log_likelihood: float) -> dict[str, float]:
    """The figure of quality: the mean of ln p(x) before the last step, the same in both implementations."""
    return {"ln p(x) for each point": log_likelihood}


def _indices(which: np.ndarray) -> np.ndarray:
    """Where each point's noise stands once they are sorted by component."""
    indices = np.empty_like(which)
    indices[np.argsort(which, kind="stable")] = np.arange(len(which))
    return indices
