"""A run's learning-rate schedule, by the name that options give it. The shapes are in quoin.optim."""

from quoin.optim import Schedule, constant, cosine, one_cycle, step_decay, with_warmup
from quoin.own_code import is_code_reference
from quoin.tasks.options import OptimizerOptions
from quoin.tasks.own_training import own_schedule

__all__ = ["make_lr_schedule"]


def make_lr_schedule(options: OptimizerOptions) -> Schedule:
    """The learning-rate schedule that `options` name, with its warmup."""
    if is_code_reference(options.schedule):
        return with_warmup(own_schedule(options.schedule), options.warmup_ratio)
    shapes = {"constant": constant, "cosine": cosine, "one-cycle": one_cycle, "step": step_decay}
    return with_warmup(shapes[options.schedule], options.warmup_ratio)
