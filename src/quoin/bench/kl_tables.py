"""The benchmark `kl-tables`: the Kullback-Leibler divergence of 100,000 pairs of distributions on 100 outcomes each, in
float64.

Quoin and scipy.stats.entropy check their input, Quoin to raise an error on what is no distribution, SciPy to divide by
its sum; the others do not.
"""

import numpy as np

from quoin.bench.worker import Repeats

__all__ = ["quoin", "scipy_entropy", "scipy_rel_entr", "torch_kl_div"]

TABLES, OUTCOMES = 100_000, 100


def tables() -> tuple[np.ndarray, np.ndarray]:
    """The same distributions in every process, a tenth of their outcomes impossible under p."""
    random = np.random.default_rng(0)
    p, q = random.exponential(size=(2, TABLES, OUTCOMES))
    p *= random.random(p.shape) < 0.9
    return p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)


def quoin(repeats: Repeats) -> dict[str, float]:
    import torch

    from quoin.prob import kl_divergence

    torch.set_num_threads(repeats.threads)
    p, q = map(torch.from_numpy, tables())
    divergences = repeats.timed(lambda: kl_divergence(p, q))
    return {"mean": float(divergences.mean())}


def scipy_entropy(repeats: Repeats) -> dict[str, float]:
    from scipy.stats import entropy

    p, q = tables()
    divergences = repeats.timed(lambda: entropy(p, q, axis=1))
    return {"mean": float(divergences.mean())}


def scipy_rel_entr(repeats: Repeats) -> dict[str, float]:
    from scipy.special import rel_entr

    p, q = tables()
    divergences = repeats.timed(lambda: rel_entr(p, q).sum(axis=1))
    return {"mean": float(divergences.mean())}


def torch_kl_div(repeats: Repeats) -> dict[str, float]:
    import torch
    from torch.nn.functional import kl_div

    torch.set_num_threads(repeats.threads)
    p, q = map(torch.from_numpy, tables())
    divergences = repeats.timed(lambda: kl_div(q.log(), p, reduction="none").sum(dim=1))
    return {"mean": float(divergences.mean())}
