"""Flow matching on two moons: a velocity field that carries noise along straight lines to points, and knows their density."""

from dataclasses import dataclass

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
    steps: int = option(20, "midpoint steps from noise to data", at_least=1, at_most=10**5)


def model(options: Options, facts):
    """An untrained field, with a scale that is learnt from the data."""
    import torch

    generator = data.keyed_generator("weights", options.seed)
    network = models.TimeMLP(2, hidden=options.hidden, depth=options.depth, time_unit=1 / 1000, generator=generator)
    return generate.FlowSampler(network, (2,), offset=torch.zeros(2), unit=torch.ones(2), steps=options.steps)


def build(options: Options, place: "train.Place"):
    from quoin.tasks.point_generation import FlowMatchingPointsTask, draw_points

    return FlowMatchingPointsTask(model(options, None), draw_points(options), options, place)
