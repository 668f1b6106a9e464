"""Flow matching on two moons: a velocity field carries noise to data along straight lines, with densities."""

from dataclasses import dataclass

from quoin import data, generate, models, train
from quoin.options import option
from quoin.tasks.generative_options import PointOptions
from quoin.tasks.target import Target

NOTES = ("D0-T",)
KEYWORDS = ("rectified flow", "cnf", "neural ode")
SUBJECT = "Diffusion and flow matching"
# Squared and unbiased, of 4,000 samples beside as many test points. Points of the distribution itself come
# out at 0 ± 0.0002, a normal distribution with their mean and covariance at 0.023.
TARGET = Target("test_mmd", at_most=0.001)
MONITOR = None  # the learning rate falls to zero, so the last average is the best


@dataclass(frozen=True)
class Options(PointOptions):
    num_steps: int = option(20, "sampling steps: midpoint rule from noise to data", at_least=1, at_most=10**5)


def model(options: Options, data_info: "data.PointInfo") -> "generate.FlowSampler":
    """An untrained field, with a scale that is learnt from the data."""
    import torch

    generator, d = data.keyed_generator("weights", options.seed), data_info.num_features
    network = models.TimeMLP(
        d, hidden_dim=options.hidden_dim, num_layers=options.num_layers, time_unit=1 / 1000, generator=generator
    )
    return generate.FlowSampler(network, (d,), loc=torch.zeros(d), scale=torch.ones(d), num_steps=options.num_steps)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.point_generation import FlowMatchingPointTask, point_splits

    points = point_splits(options)
    return FlowMatchingPointTask(model(options, points.info), points, options, device_context)
