"""The forward process that a diffusion recipe's options name: its noise schedule, and what the network predicts."""

from collections.abc import Callable
from typing import Any

from quoin.prob import (
    EpsilonPrediction,
    NoiseSchedule,
    PredictionType,
    SamplePrediction,
    VPrediction,
    cosine_beta_schedule,
    linear_beta_schedule,
    sigmoid_beta_schedule,
)

__all__ = ["make_noise_process", "sampling_steps"]

SCHEDULES: dict[str, Callable[[int], NoiseSchedule]] = {
    "linear": linear_beta_schedule,
    "cosine": cosine_beta_schedule,
    "sigmoid": sigmoid_beta_schedule,
}
PREDICTION_TYPES: dict[str, Callable[[], PredictionType]] = {
    "epsilon": EpsilonPrediction,
    "sample": SamplePrediction,
    "v_prediction": VPrediction,
}


def make_noise_process(options: Any) -> tuple[NoiseSchedule, PredictionType]:
    """The schedule of --beta-schedule with --num-timesteps steps, and the parametrisation of --prediction-type."""
    return SCHEDULES[options.beta_schedule](options.num_timesteps), PREDICTION_TYPES[options.prediction_type]()


def sampling_steps(options: Any) -> int:
    """The steps that were asked for; where none were, the usual number or, of fewer timesteps, all."""
    usual = type(options).num_steps
    return min(usual, options.num_timesteps) if options.num_steps == usual else options.num_steps
