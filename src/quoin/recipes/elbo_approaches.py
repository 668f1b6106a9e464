"""Four ways to differentiate the evidence lower bound, and a baseline for the first: how their gradients scatter, and where they lead."""

from dataclasses import dataclass

from quoin import train
from quoin.options import option
from quoin.tasks.options import RunOptions
from quoin.tasks.target import Target

NOTES = ("D6-24", "D6-25", "D6-26", "D6-27")
# In nats: D(q‖p(z | x)), exactly, for the worst q of the four approaches that have arrived. The fifth, the plain score function, has
# not: its gradient is unbiased too, but scatters so much that the same updates leave it nats away, and `gap_score` says how far.
# Over seeds 100 to 105 the four end 0.0075 ± 0.0035 away, the fifth 2.2 ± 2.9.
TARGET = Target("validation_gap", at_most=0.03)
MONITOR = None  # the rate falls to nothing, so the last q's are the best


@dataclass(frozen=True)
class Options(RunOptions):
    features: int = option(6, "numbers of the one example that is observed", at_least=2, at_most=1000)
    latent: int = option(3, "latent coordinates of the linear Gaussian model", at_least=1, at_most=50)
    draws: int = option(8, "draws of z for each gradient", at_least=2, at_most=10_000)
    repeats: int = option(1000, "gradients of each approach over which the scatter is measured", at_least=10, at_most=10**6)
    epochs: int = option(20, "looks at the five gaps", at_least=1, at_most=10**6)
    steps: int = option(25, "updates between two looks", at_least=1, at_most=10**6)
    lr: float = option(0.1, "the rate of Adam's first step; it falls along a cosine", above=0.0, at_most=100.0)


def model(options: Options, facts):
    """A mean and the entries of a Cholesky factor for each estimator, all at the standard normal law."""
    import math

    import torch
    from torch import nn

    from quoin.tasks.elbo_gradients import ESTIMATORS

    k = options.latent
    rows, columns = torch.tril_indices(k, k)
    one = math.log(math.expm1(1 - 1e-3))  # softplus of it, plus the floor, is 1
    entries = torch.where(rows == columns, one, 0.0).double().repeat(len(ESTIMATORS), 1)
    means = torch.zeros(len(ESTIMATORS), k, dtype=torch.float64)
    return nn.ParameterDict({"mean": nn.Parameter(means), "entries": nn.Parameter(entries)})


def build(options: Options, place: "train.Place"):
    from quoin.tasks.elbo_gradients import ELBOGradients

    return ELBOGradients(model(options, None), options)
