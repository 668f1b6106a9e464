"""A diffusion model (DDPM) of two moons: an MLP denoises random points step by step."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, generate, models, train
from quoin.options import default, option
from quoin.tasks.generative_options import PointOptions
from quoin.tasks.target import Target

NOTES = ("D0-T",)
KEYWORDS = ("ddpm", "ddim", "dpm-solver", "score matching")
SUBJECT = "Diffusion and flow matching"
# Squared and unbiased, of 4,000 samples beside as many test points. Points of the distribution itself come
# out at 0 ± 0.0002, a normal distribution with their mean and covariance at 0.023.
TARGET = Target("test_mmd", at_most=0.001)
MONITOR = None  # the learning rate falls to zero, so the last average is the best


@dataclass(frozen=True)
class Options(PointOptions):
    num_timesteps: int = option(1000, "timesteps T of the forward process", at_least=2, at_most=10**5)
    beta_schedule: Literal["linear", "cosine", "sigmoid"] = option("linear", "noise schedule")
    prediction_type: Literal["epsilon", "sample", "v_prediction"] = option("epsilon", "what the network predicts")
    epochs: int = default(400, "passes over the points")
    num_steps: int = option(100, "sampling steps (DDIM), at most --num-timesteps", at_least=1, at_most=10**5)


def model(options: Options, data_info: "data.PointInfo") -> "generate.DiffusionSampler":
    """An untrained network, with a noise schedule, and a scale and bounds that are fitted to the data."""
    import torch

    from quoin.tasks.diffusion_process import make_noise_process, sampling_steps

    schedule, asked = make_noise_process(options)
    generator, d = data.keyed_generator("weights", options.seed), data_info.num_features
    network = models.TimeMLP(
        d,
        hidden_dim=options.hidden_dim,
        num_layers=options.num_layers,
        time_unit=options.num_timesteps / 1000,
        generator=generator,
    )
    return generate.DiffusionSampler(
        network,
        schedule,
        asked,
        (d,),
        loc=torch.zeros(d),
        scale=torch.ones(d),
        bounds=(-1.0, 1.0),
        num_steps=sampling_steps(options),
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.point_generation import DiffusionPointTask, point_splits

    points = point_splits(options)
    return DiffusionPointTask(model(options, points.info), points, options, device_context)
