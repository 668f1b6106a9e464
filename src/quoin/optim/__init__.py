"""Move weights, and study the moving: gradient descent and its kin, schedules, convergence."""

from quoin.optim.fit import Fit, fit
from quoin.optim.schedule import Schedule, constant, cosine, step_decay, with_warm_up

__all__ = ["Fit", "Schedule", "constant", "cosine", "fit", "step_decay", "with_warm_up"]
