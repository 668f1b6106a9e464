"""Move weights, and study the moving: gradient descent and its kin, schedules, convergence."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.optim.average import WeightAverage, moving_average_definition
    from quoin.optim.bounds import RateProof, convex_bound, distance_bound, rate_proof, strongly_convex_bound
    from quoin.optim.constants import Constants, least_squares_constants, logistic_constants, observed_constants, quadratic_constants
    from quoin.optim.convexity import (
        Segment,
        SegmentSearch,
        below_set,
        between,
        chord_gap,
        is_convex,
        is_convex_set,
        jensen_gap,
        jensen_steps,
    )
    from quoin.optim.curvature import HessianTest, hessian_test, second_difference
    from quoin.optim.descend import Objective, Path, argmin, descend
    from quoin.optim.fit import Fit, fit
    from quoin.optim.hinge import HingeFit, fit_hinge
    from quoin.optim.landscapes import cubic, double_well, plateau, ravine, rippled, rosenbrock, saddle, wavy
    from quoin.optim.line import lowest_along
    from quoin.optim.momentum_phase import BestMomentum, best_momentum, momentum_rate, momentum_rate_definition
    from quoin.optim.newton import DiagonalNewton, Newton
    from quoin.optim.normal import solve_normal
    from quoin.optim.products import gram
    from quoin.optim.range_test import RangeTest, range_test
    from quoin.optim.rules import (
        Adam,
        AdamState,
        AdamW,
        AveragedMomentum,
        GradientDescent,
        Momentum,
        Nesterov,
        RMSProp,
        UpdateRule,
        bias_corrected,
    )
    from quoin.optim.schedule import Schedule, constant, cosine, one_cycle, step_decay, with_warm_up
    from quoin.optim.scores import ScoreLoss, ScoresFit, fit_scores
    from quoin.optim.sgd import sgd_step, sgd_step_definition
    from quoin.optim.stochastic import MinibatchSlope, batch_gradient

__all__ = [
    "Adam",
    "AdamState",
    "AdamW",
    "AveragedMomentum",
    "BestMomentum",
    "Constants",
    "DiagonalNewton",
    "Fit",
    "GradientDescent",
    "HessianTest",
    "HingeFit",
    "MinibatchSlope",
    "Momentum",
    "Nesterov",
    "Newton",
    "Objective",
    "Path",
    "RMSProp",
    "RangeTest",
    "RateProof",
    "Schedule",
    "ScoreLoss",
    "ScoresFit",
    "Segment",
    "SegmentSearch",
    "UpdateRule",
    "WeightAverage",
    "argmin",
    "batch_gradient",
    "below_set",
    "best_momentum",
    "between",
    "bias_corrected",
    "chord_gap",
    "constant",
    "convex_bound",
    "cosine",
    "cubic",
    "descend",
    "distance_bound",
    "double_well",
    "fit",
    "fit_hinge",
    "fit_scores",
    "gram",
    "hessian_test",
    "is_convex",
    "is_convex_set",
    "jensen_gap",
    "jensen_steps",
    "least_squares_constants",
    "logistic_constants",
    "lowest_along",
    "momentum_rate",
    "momentum_rate_definition",
    "moving_average_definition",
    "observed_constants",
    "one_cycle",
    "plateau",
    "quadratic_constants",
    "range_test",
    "rate_proof",
    "ravine",
    "rippled",
    "rosenbrock",
    "saddle",
    "second_difference",
    "sgd_step",
    "sgd_step_definition",
    "solve_normal",
    "step_decay",
    "strongly_convex_bound",
    "wavy",
    "with_warm_up",
]

export_lazily(__name__)
