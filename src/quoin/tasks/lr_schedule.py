"""The course of a run's learning rate, by the name that options give it. The shapes are in quoin.optim."""

from quoin.optim import Schedule, constant, cosine, one_cycle, step_decay, with_warm_up
from quoin.tasks.options import OptimizerOptions

__all__ = ["schedule"]


def schedule(options: OptimizerOptions) -> Schedule:
    """The course of the learning rate that `options` name."""
    shapes = {"constant": constant, "cosine": cosine, "one-cycle": one_cycle, "step": step_decay}
    return with_warm_up(shapes[options.schedule], options.warm_up)
