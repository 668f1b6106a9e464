"""Optimization: update rules, gradient descent and its analysis, learning-rate schedules, convergence."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.optim.average import EMAModel, ema_definition
    from quoin.optim.bounds import RateProof, convex_bound, distance_bound, rate_proof, strongly_convex_bound
    from quoin.optim.constants import (
        Constants,
        least_squares_constants,
        logistic_constants,
        observed_constants,
        quadratic_constants,
    )
    from quoin.optim.convexity import (
        Segment,
        SegmentSearch,
        chord_gap,
        convex_combination,
        is_convex,
        is_convex_set,
        jensen_gap,
        jensen_steps,
        sublevel_set,
    )
    from quoin.optim.curvature import HessianTest, hessian_test, second_difference
    from quoin.optim.descend import Objective, Trajectory, argmin, descend
    from quoin.optim.fit import Fit, minimize_lbfgs
    from quoin.optim.hinge import HingeFit, fit_linear_svm
    from quoin.optim.landscapes import cubic, double_well, plateau, ravine, rippled, rosenbrock, saddle, wavy
    from quoin.optim.line import line_search
    from quoin.optim.lion import LionOptimizer
    from quoin.optim.lr_range_test import LRRangeTest, lr_range_test
    from quoin.optim.momentum_phase import (
        BestMomentum,
        best_momentum,
        momentum_convergence_rate,
        momentum_convergence_rate_definition,
    )
    from quoin.optim.newton import DiagonalNewton, Newton
    from quoin.optim.normal import solve_normal_equations
    from quoin.optim.products import gram_matrix
    from quoin.optim.rules import (
        Adadelta,
        AdadeltaState,
        AdaGrad,
        Adam,
        AdamState,
        AdamW,
        EMAMomentum,
        GradientDescent,
        Lion,
        Momentum,
        Nesterov,
        RMSProp,
        UpdateRule,
        bias_corrected,
    )
    from quoin.optim.schedule import Schedule, constant, cosine, one_cycle, step_decay, with_warmup
    from quoin.optim.scores import ScoreLoss, ScoresFit, fit_linear_scores
    from quoin.optim.sgd import sgd_step, sgd_step_definition
    from quoin.optim.stochastic import MinibatchGradient, minibatch_gradient

__all__ = [
    "AdaGrad",
    "Adadelta",
    "AdadeltaState",
    "Adam",
    "AdamState",
    "AdamW",
    "BestMomentum",
    "Constants",
    "DiagonalNewton",
    "EMAModel",
    "EMAMomentum",
    "Fit",
    "GradientDescent",
    "HessianTest",
    "HingeFit",
    "LRRangeTest",
    "Lion",
    "LionOptimizer",
    "MinibatchGradient",
    "Momentum",
    "Nesterov",
    "Newton",
    "Objective",
    "RMSProp",
    "RateProof",
    "Schedule",
    "ScoreLoss",
    "ScoresFit",
    "Segment",
    "SegmentSearch",
    "Trajectory",
    "UpdateRule",
    "argmin",
    "best_momentum",
    "bias_corrected",
    "chord_gap",
    "constant",
    "convex_bound",
    "convex_combination",
    "cosine",
    "cubic",
    "descend",
    "distance_bound",
    "double_well",
    "ema_definition",
    "fit_linear_scores",
    "fit_linear_svm",
    "gram_matrix",
    "hessian_test",
    "is_convex",
    "is_convex_set",
    "jensen_gap",
    "jensen_steps",
    "least_squares_constants",
    "line_search",
    "logistic_constants",
    "lr_range_test",
    "minibatch_gradient",
    "minimize_lbfgs",
    "momentum_convergence_rate",
    "momentum_convergence_rate_definition",
    "observed_constants",
    "one_cycle",
    "plateau",
    "quadratic_constants",
    "rate_proof",
    "ravine",
    "rippled",
    "rosenbrock",
    "saddle",
    "second_difference",
    "sgd_step",
    "sgd_step_definition",
    "solve_normal_equations",
    "step_decay",
    "strongly_convex_bound",
    "sublevel_set",
    "wavy",
    "with_warmup",
]

export_lazily(__name__)
