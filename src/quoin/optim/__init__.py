"""Move weights, and study the moving: gradient descent and its kin, schedules, convergence."""

from quoin.optim.fit import Fit, fit
from quoin.optim.hinge import HingeFit, fit_hinge
from quoin.optim.line import lowest_along
from quoin.optim.normal import solve_normal
from quoin.optim.products import gram
from quoin.optim.schedule import Schedule, constant, cosine, step_decay, with_warm_up
from quoin.optim.scores import ScoreLoss, ScoresFit, fit_scores
from quoin.optim.sgd import sgd_step, sgd_step_definition

__all__ = [
    "Fit",
    "HingeFit",
    "Schedule",
    "ScoreLoss",
    "ScoresFit",
    "constant",
    "cosine",
    "fit",
    "fit_hinge",
    "fit_scores",
    "gram",
    "lowest_along",
    "sgd_step",
    "sgd_step_definition",
    "solve_normal",
    "step_decay",
    "with_warm_up",
]
