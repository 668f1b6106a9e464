"""Move weights, and study the moving: gradient descent and its kin, schedules, convergence."""

from quoin.optim.fit import Fit, fit
from quoin.optim.schedule import Schedule, constant, cosine, step_decay, with_warm_up
from quoin.optim.sgd import sgd_step, sgd_step_definition

__all__ = ["Fit", "Schedule", "constant", "cosine", "fit", "sgd_step", "sgd_step_definition", "step_decay", "with_warm_up"]
