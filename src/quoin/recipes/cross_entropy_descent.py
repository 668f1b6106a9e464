"""Gradient descent on cross-entropy: free logits reach the population, two parameters leave a KL gap."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quoin import train
from quoin.options import option
from quoin.tasks.options import EpochOptions
from quoin.tasks.target import Target

if TYPE_CHECKING:
    from torch import nn

NOTES = ("M22", "M22c")
KEYWORDS = ("cross-entropy", "softmax", "gradient descent")
SUBJECT = "Optimization"
# In nats. The cross-entropy is convex in the logits with a curvature of at most 1/2, so steps of 2 bring KL below |ℓ*|²
# / 4k after k of them, ℓ* being the logits of Pop: here below 0.02 for any usual seed. Near Pop it is far quicker: of
# 200 seeds none stayed above 0.0002.
TARGET = Target("validation_kl", at_most=1e-3)
MONITOR = None  # convex: the last distribution is the best


@dataclass(frozen=True)
class Options(EpochOptions):
    num_outcomes: int = option(
        20, "outcomes of the population, a random distribution on them", at_least=3, at_most=1000
    )
    logit_std: float = option(1.0, "standard deviation of its logits", at_least=0.0, at_most=50.0)
    epochs: int = option(50, "evaluations of the KL divergence", at_least=1, at_most=10**6)
    steps_per_epoch: int = option(10, "optimizer steps between two evaluations", at_least=1, at_most=10**6)
    lr: float = option(2.0, "learning rate; above 2 convergence is not guaranteed", above=0.0, at_most=1e6)


def model(options: Options, data_info: None) -> "nn.ParameterDict":
    """`logits`, one for each outcome, and `curve`, the two coefficients of quadratic logits over all outcomes; all
    start at zero."""
    import torch
    from torch import nn

    sizes = {"logits": options.num_outcomes, "curve": 2}
    return nn.ParameterDict(
        {name: nn.Parameter(torch.zeros(size, dtype=torch.float64)) for name, size in sizes.items()}
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.cross_entropy_descent import CrossEntropyDescent

    return CrossEntropyDescent(model(options, None), options)
