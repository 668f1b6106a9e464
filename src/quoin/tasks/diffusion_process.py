"""The process that a diffusion recipe's options name: how noise comes in, and what the network is asked for."""

from collections.abc import Callable
from typing import Any

from quoin.prob import (
    NoiseSchedule,
    Parametrisation,
    PredictClean,
    PredictNoise,
    PredictVelocity,
    cosine_schedule,
    linear_schedule,
    sigmoid_schedule,
)

__all__ = ["chosen_process"]

SCHEDULES: dict[str, Callable[[int], NoiseSchedule]] = {"linear": linear_schedule, "cosine": cosine_schedule, "sigmoid": sigmoid_schedule}
QUESTIONS: dict[str, Callable[[], Parametrisation]] = {"noise": PredictNoise, "clean": PredictClean, "velocity": PredictVelocity}


def chosen_process(options: Any) -> tuple[NoiseSchedule, Parametrisation]:
    """The schedule of --noise with --times steps, and the parametrisation of --predict."""
    return SCHEDULES[options.noise](options.times), QUESTIONS[options.predict]()
