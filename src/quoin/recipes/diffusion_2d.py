"""A diffusion model of two moons: noise is walked back to points by a network that was taught to tell it from them."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, generate, models, train
from quoin.options import option
from quoin.tasks.options import PointsOptions
from quoin.tasks.target import Target

NOTES = ("D0-T",)
# Squared and unbiased, of 4,000 samples beside as many test points. Points of the law itself come out at 0 ± 0.0002, a normal law with
# their mean and covariance at 0.023.
TARGET = Target("test_mmd", at_most=0.001)
MONITOR = None  # the rate falls to nothing, so the last average is the best


@dataclass(frozen=True)
class Options(PointsOptions):
    times: int = option(1000, "steps T from data to noise", at_least=2, at_most=10**5)
    noise: Literal["linear", "cosine", "sigmoid"] = option("linear", "how the noise comes in")
    predict: Literal["noise", "clean", "velocity"] = option("noise", "what the network is asked for")
    steps: int = option(50, "steps of the sampler, at most --times", at_least=1, at_most=10**5)


def model(options: Options, facts):
    """An untrained network, with a schedule and a scale that is learnt from the data."""
    import torch

    from quoin.tasks.diffusion_process import chosen_process

    schedule, asked = chosen_process(options)
    generator = data.keyed_generator("weights", options.seed)
    network = models.TimeMLP(2, hidden=options.hidden, depth=options.depth, time_unit=options.times / 1000, generator=generator)
    return generate.DiffusionSampler(network, schedule, asked, (2,), offset=torch.zeros(2), unit=torch.ones(2), steps=options.steps)


def build(options: Options, place: "train.Place"):
    from quoin.tasks.point_generation import DiffusionPointsTask, draw_points

    return DiffusionPointsTask(model(options, None), draw_points(options), options, place)
