"""Move weights, and study the moving: gradient descent and its kin, schedules, convergence."""

from quoin.optim.schedule import Schedule, constant, cosine, step_decay, with_warm_up

__all__ = ["Schedule", "constant", "cosine", "step_decay", "with_warm_up"]
