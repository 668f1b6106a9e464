"""The row `kl-tables`: the Kullback-Leibler divergence of 100,000 pairs of laws on 100 outcomes each, in float64.

Quoin and scipy.stats.entropy look at their input, Quoin to refuse what is no law, SciPy to divide by its sum; the others do not.
"""

import numpy as np

from quoin.bench.worker import Laps

__all__ = ["quoin", "scipy_entropy", "scipy_rel_entr", "torch_kl_div"]

TABLES, OUTCOMES = 100_000, 100


def tables() -> tuple[np.ndarray, np.ndarray]:
    """The same laws in every process, a tenth of their outcomes impossible under p."""
    random = np.random.default_rng(0)
    p, q = random.exponential(size=(2, TABLES, OUTCOMES))
    p *= random.random(p.shape) < 0.9
    return p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)


def quoin(laps: Laps) -> dict[str, float]:
    import torch

    from quoin.prob import kl

    torch.set_num_threads(laps.threads)
    p, q = map(torch.from_numpy, tables())
    for _ in range(laps.count):
        divergences = kl(p, q)
        laps.end()
    return {"mean": float(divergences.mean())}


def scipy_entropy(laps: Laps) -> dict[str, float]:
    from scipy.stats import entropy

    p, q = tables()
    for _ in range(laps.count):
        divergences = entropy(p, q, axis=1)
        laps.end()
    return {"mean": float(divergences.mean())}


def scipy_rel_entr(laps: Laps) -> dict[str, float]:
    from scipy.special import rel_entr

    p, q = tables()
    for _ in range(laps.count):
        divergences = rel_entr(p, q).sum(axis=1)
        laps.end()
    return {"mean": float(divergences.mean())}


def torch_kl_div(laps: Laps) -> dict[str, float]:
    import torch
    from torch.nn.functional import kl_div

    torch.set_num_threads(laps.threads)
    p, q = map(torch.from_numpy, tables())
    for _ in range(laps.count):
        divergences = kl_div(q.log(), p, reduction="none").sum(dim=1)
        laps.end()
    return {"mean": float(divergences.mean())}
