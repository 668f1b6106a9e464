"""Universal approximation: a ReLU network constructed with a certified error bound, compared with a trained one."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from quoin import data, expressivity, layers, train
from quoin.options import default, option
from quoin.tasks.options import EpochOptions, GradientOptions, OptimizerName
from quoin.tasks.target import Target

if TYPE_CHECKING:
    from torch import nn

NOTES = ("D1.1-3", "D1.1-6", "D1.1-8", "D1.1-9")
KEYWORDS = ("universal approximation", "relu", "expressivity")
SUBJECT = "Expressivity"
# The sup error of the trained network as a fraction of the certified error bound of the constructed one, which has as
# many units. The bound holds whatever the function is; the trained network has none, and is asked to do as well on this
# function.
TARGET = Target("validation_error_bound_ratio", at_most=1.0)
MONITOR = None  # the learning rate falls to zero, so the last network is the best


@dataclass(frozen=True)
class Options(GradientOptions, EpochOptions):
    function: Literal["bell", "wave", "root"] = option("bell", "1/(1 + 25x²), sin(2πx) or √|x|, each on [-1, 1]")
    eps: float = option(0.1, "certified sup error", at_least=0.001, at_most=1.0)
    epochs: int = option(20, "evaluations of the sup error", at_least=1, at_most=10**6)
    steps_per_epoch: int = option(100, "optimizer steps between two evaluations", at_least=1, at_most=10**6)
    batch_size: int = option(256, "points per optimizer step, sampled anew", at_least=1, at_most=10**6)
    optimizer: OptimizerName = default("adam")
    lr: float = option(0.01, "initial learning rate, under a cosine schedule", above=0.0, at_most=100.0)


def model(options: Options, data_info: None) -> "nn.Sequential":
    """As many units as the constructed network has, each with a random breakpoint in the interval and a random sign."""
    import torch

    from quoin.tasks.function_approximation import construct

    generator, units = data.keyed_generator("weights", options.seed), construct(options.function, options.eps).num_units
    direction = torch.where(torch.rand(units, generator=generator) < 0.5, -1.0, 1.0)
    hidden = layers.Affine(direction[:, None], -direction * (2 * torch.rand(units, generator=generator) - 1))
    return expressivity.relu_network(
        [hidden, layers.Affine(torch.randn(1, units, generator=generator) / math.sqrt(units), torch.zeros(1))]
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.function_approximation import FunctionApproximation

    return FunctionApproximation(model(options, None), options)
