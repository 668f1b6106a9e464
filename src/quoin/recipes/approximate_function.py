"""One function, two ways to a ReLU network: built from a promise with a certified error, and trained with as many units."""

import math
from dataclasses import dataclass
from typing import Literal

from quoin import data, expressivity, layers, train
from quoin.options import option
from quoin.tasks.options import RunOptions
from quoin.tasks.target import Target

NOTES = ("D1.1-3", "D1.1-6", "D1.1-8", "D1.1-9")
# The largest error of the trained network as a share of what the certificate of the built one, of as many units, allows. The built one
# keeps its certificate whatever the function is; a trained one has none, and is asked to do as well on this function.
TARGET = Target("validation_share_of_certificate", at_most=1.0)
MONITOR = None  # the rate falls to nothing, so the last network is the best


@dataclass(frozen=True)
class Options(RunOptions):
    function: Literal["bell", "wave", "root"] = option("bell", "1/(1 + 25x²), sin(2πx) or √|x|, each on [-1, 1]")
    eps: float = option(0.1, "the error that is certified", at_least=0.001, at_most=1.0)
    epochs: int = option(20, "looks at the largest error", at_least=1, at_most=10**6)
    steps: int = option(100, "updates between two looks", at_least=1, at_most=10**6)
    batch_size: int = option(256, "points for each update, drawn anew", at_least=1, at_most=10**6)
    lr: float = option(0.01, "the rate of Adam's first step; it falls along a cosine", above=0.0, at_most=100.0)


def model(options: Options, facts):
    """As many units as the built network has, each with its kink at a random place of the interval and looking either way."""
    import torch

    from quoin.tasks.function_approximation import construct

    generator, units = data.keyed_generator("weights", options.seed), construct(options.function, options.eps).num_units
    direction = torch.where(torch.rand(units, generator=generator) < 0.5, -1.0, 1.0)
    hidden = layers.Affine(direction[:, None], -direction * (2 * torch.rand(units, generator=generator) - 1))
    return expressivity.relu_chain([hidden, layers.Affine(torch.randn(1, units, generator=generator) / math.sqrt(units), torch.zeros(1))])


def build(options: Options, place: "train.Place"):
    from quoin.tasks.function_approximation import FunctionApproximation

    return FunctionApproximation(model(options, None), options)
