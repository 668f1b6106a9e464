"""Four gradient estimators of the ELBO, and a baseline for the first: their variance and convergence."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quoin import train
from quoin.options import default, option
from quoin.tasks.options import EpochOptions, GradientOptions, OptimizerName
from quoin.tasks.target import Target

if TYPE_CHECKING:
    from torch import nn

NOTES = ("D6-24", "D6-25", "D6-26", "D6-27")
KEYWORDS = ("reinforce", "score function", "reparameterization", "pathwise", "variational inference", "bbvi")
SUBJECT = "Latent-variable models"
# In nats: D(q‖p(z | x)), exactly, for the worst q of the four estimators that converge. The fifth, the score function
# without baseline, does not: its gradient is unbiased too, but its variance is so large that the same steps leave it
# nats away, as `elbo_gap_score` says. Over seeds 100 to 105 the ELBO gap of the four is 0.0075 ± 0.0035, that of the
# fifth 2.2 ± 2.9.
TARGET = Target("validation_elbo_gap", at_most=0.03)
MONITOR = None  # the learning rate falls to zero, so the last q's are the best


@dataclass(frozen=True)
class Options(GradientOptions, EpochOptions):
    num_features: int = option(6, "features of the one example that is observed", at_least=2, at_most=1000)
    latent_dim: int = option(3, "latent coordinates of the linear Gaussian model", at_least=1, at_most=50)
    num_latent_samples: int = option(8, "latent samples per gradient", at_least=2, at_most=10_000)
    num_repeats: int = option(
        1000, "gradients of each estimator over which its variance is measured", at_least=10, at_most=10**6
    )
    epochs: int = option(20, "evaluations of the five ELBO gaps", at_least=1, at_most=10**6)
    steps_per_epoch: int = option(25, "optimizer steps between two evaluations", at_least=1, at_most=10**6)
    optimizer: OptimizerName = default("adam")
    lr: float = option(0.1, "initial learning rate, under a cosine schedule", above=0.0, at_most=100.0)


def model(options: Options, data_info: None) -> "nn.ParameterDict":
    """A mean and the entries of a Cholesky factor for each estimator, all at the standard normal distribution."""
    import math

    import torch
    from torch import nn

    from quoin.tasks.elbo_gradients import ESTIMATORS

    k = options.latent_dim
    rows, columns = torch.tril_indices(k, k)
    one = math.log(math.expm1(1 - 1e-3))  # softplus of it, plus the floor, is 1
    entries = torch.where(rows == columns, one, 0.0).double().repeat(len(ESTIMATORS), 1)
    means = torch.zeros(len(ESTIMATORS), k, dtype=torch.float64)
    return nn.ParameterDict({"mean": nn.Parameter(means), "entries": nn.Parameter(entries)})


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.elbo_gradients import ELBOGradients

    return ELBOGradients(model(options, None), options)
