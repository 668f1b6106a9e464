"""Cases for `quoin.optim`: see tests/dtypes.py."""

import torch
from torch import nn

from quoin.optim import (
    Adadelta,
    AdaGrad,
    Adam,
    AdamW,
    Constants,
    DiagonalNewton,
    EMAModel,
    EMAMomentum,
    GradientDescent,
    Lion,
    LionOptimizer,
    MinibatchGradient,
    Momentum,
    Nesterov,
    Newton,
    RMSProp,
    argmin,
    bias_corrected,
    chord_gap,
    convex_bound,
    convex_combination,
    cubic,
    descend,
    distance_bound,
    double_well,
    ema_definition,
    fit_linear_scores,
    fit_linear_svm,
    gram_matrix,
    hessian_test,
    is_convex,
    is_convex_set,
    jensen_gap,
    jensen_steps,
    least_squares_constants,
    logistic_constants,
    minibatch_gradient,
    minimize_lbfgs,
    momentum_convergence_rate,
    momentum_convergence_rate_definition,
    observed_constants,
    plateau,
    quadratic_constants,
    rate_proof,
    ravine,
    rippled,
    rosenbrock,
    saddle,
    second_difference,
    sgd_step,
    sgd_step_definition,
    solve_normal_equations,
    strongly_convex_bound,
    sublevel_set,
    wavy,
)

ROWS, TARGETS = [[1, 100], [90, 2], [3, 3], [20, 0]], [3, 100, 200, 1]
SIGNS = [1, -1, 1, -1]
PLANE = [[3, 2], [0, 100], [90, 1]]
START, LOWEST = [3, 100], [5, 90]


def f64(numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def _squares(x):
    return x.square().sum()


def _of_rule(rule):
    """Two steps with the memory of the first, in one dtype and with a gradient of another."""
    name = type(rule).__name__

    def two(x, gradient):
        first, memory = rule.step(x, gradient, rule.init(x))
        return rule.step(first, gradient, memory)[0]

    return {
        f"{name}.step": lambda x: two(x([3, 100]), x([200, 100])),
        f"{name}.step gradient": lambda x: two(f64([3, 100]), x([200, 100])),
    }


def _averaged(x):
    module = nn.Linear(2, 1, bias=False)
    module.weight = nn.Parameter(x([[3, 100]]), requires_grad=False)
    average = EMAModel(module, decay=0.5)
    average.update(module)
    module.weight = nn.Parameter(x([[200, 1]]), requires_grad=False)
    average.update(module)
    return average.module.weight


def _stepped(step, x):
    weight = x([3, 100]).requires_grad_()
    return step([weight], (weight - f64([[1, 2], [5, 90]]).to(weight.dtype)).sum(dim=-1), 0.5)


def _moved_by_lion(x):
    weight = nn.Parameter(x([3, 100]))
    weight.grad = x([200, 100])
    LionOptimizer([weight], 0.25, weight_decay=0.5).step()
    return weight.detach()


def _fitted(x):
    weight = x([3, 2]).requires_grad_()
    minimize_lbfgs([weight], lambda: (weight - 1).square().sum())
    return weight


def _all_slope(x):
    """The slope of a batch of everything, so that the order drawn does not matter."""
    data = x([1, 100, 6])
    return MinibatchGradient(lambda w, i: (w - data[i]) ** 2, 3, batch_size=3, generator=torch.Generator())


def _proof(points, lowest):
    """All that is left over in one tensor: each is a difference of costs, known to the rounding of these."""
    return torch.cat(list(rate_proof(_squares, points, lowest, lr=0.25, smoothness=2.0)))


def _slopes(loss):
    """The losses and slopes of scores, for half of their square."""
    return (loss - 1).square().sum(dim=1) / 2, loss - 1


CASES = {
    "cubic": lambda x: cubic(x([3, 20, 7])),
    "plateau": lambda x: plateau(x([0, 1, 200])),
    "wavy": lambda x: wavy(x([0, 1, 2])),
    "rippled": lambda x: rippled(x([0, 1, 2])),
    "rosenbrock": lambda x: rosenbrock(x([[3, 2], [1, 7], [4, 0]])),
    "saddle": lambda x: saddle(x(PLANE)),
    "ravine": lambda x: ravine(x(PLANE), condition_number=2.0),
    "double_well": lambda x: double_well(x([[3, 2], [0, 100], [9, 1]])),
    **_of_rule(GradientDescent(0.25)),
    **_of_rule(Momentum(0.25, 0.5)),
    **_of_rule(Nesterov(0.25, 0.5)),
    **_of_rule(EMAMomentum(0.25, 0.5)),
    **_of_rule(AdaGrad(0.25)),
    **_of_rule(Adadelta(0.25)),
    **_of_rule(RMSProp(0.25)),
    **_of_rule(Adam(0.25)),
    **_of_rule(AdamW(0.25)),
    **_of_rule(Lion(0.25, weight_decay=0.5)),
    "LionOptimizer.step": lambda x: _moved_by_lion(x),
    "Newton.step": lambda x: Newton(_squares).step(x([3, 100]), x([6, 100]), None)[0],
    "DiagonalNewton.step": lambda x: DiagonalNewton(_squares).step(x([3, 100]), x([6, 100]), None)[0],
    "bias_corrected": lambda x: bias_corrected(x([3, 200]), 0.5, 2),
    "ema_definition": lambda x: ema_definition(x([3, 100, 200]), 0.5),
    "EMAModel.update": lambda x: _averaged(x),
    "sgd_step": lambda x: _stepped(sgd_step, x),
    "sgd_step_definition": lambda x: _stepped(sgd_step_definition, x),
    "minibatch_gradient": lambda x: minibatch_gradient(
        lambda w, i: (w - f64([1, 100, 6])[i]) ** 2, x(3), torch.tensor([0, 1])
    ),
    "MinibatchGradient": lambda x: _all_slope(x)(x(3)),
    "argmin": lambda x: argmin(_squares, x([[3, 20], [7, 1], [5, 100]])),
    "descend": lambda x: descend(_squares, x([3, 100]), GradientDescent(0.25), 3),
    "minimize_lbfgs": lambda x: _fitted(x),
    "gram_matrix": lambda x: gram_matrix(x(ROWS)),
    "gram_matrix weights": lambda x: gram_matrix(x(ROWS), x([1, 2, 100, 3])),
    "gram_matrix one weight": lambda x: gram_matrix(x(ROWS), x([2, 2, 2, 2])),
    "gram_matrix weights alone": lambda x: gram_matrix(f64(ROWS), x([1, 2, 100, 3])),
    "solve_normal_equations": lambda x: solve_normal_equations(x(ROWS), x(TARGETS)),
    "solve_normal_equations weights": lambda x: solve_normal_equations(
        f64(ROWS), f64(TARGETS), weights=x([1, 2, 100, 3])
    ),
    "fit_linear_svm": lambda x: fit_linear_svm(x(ROWS), x(SIGNS), weights=x([1, 1, 1, 1]), l2=1.0, max_iter=20).loss,
    "fit_linear_svm labels": lambda x: (
        fit_linear_svm(f64(ROWS), x(SIGNS), weights=f64([1, 1, 1, 1]), l2=1.0, max_iter=20).loss
    ),
    "fit_linear_svm weights": lambda x: (
        fit_linear_svm(f64(ROWS), f64(SIGNS), weights=x([1, 2, 100, 1]), l2=1.0, max_iter=20).loss
    ),
    "fit_linear_scores": lambda x: (
        fit_linear_scores(x(ROWS), _slopes, 1, curvature=1.0, weights=x([1, 1, 1, 1]), l2=1.0, max_iter=20).loss
    ),
    "fit_linear_scores weights": lambda x: (
        fit_linear_scores(f64(ROWS), _slopes, 1, curvature=1.0, weights=x([1, 2, 100, 1]), l2=1.0, max_iter=20).loss
    ),
    "convex_combination": lambda x: convex_combination(x([3, 100]), x([200, 1]), 0.25),
    "convex_combination weight": lambda x: convex_combination(x([3, 100]), x([200, 1]), x(2)),
    "chord_gap": lambda x: chord_gap(_squares, x([3, 100]), x([20, 1]), 0.25),
    "chord_gap weight": lambda x: chord_gap(_squares, x([3, 100]), x([20, 1]), x(1)),
    "jensen_gap": lambda x: jensen_gap(_squares, x([[3, 100], [20, 1]])),
    "jensen_gap weights": lambda x: jensen_gap(_squares, f64([[3, 100], [20, 1]]), x([1, 0])),
    "jensen_steps": lambda x: jensen_steps(_squares, x([[3, 100], [20, 1]])),
    "jensen_steps weights": lambda x: jensen_steps(_squares, f64([[3, 100], [20, 1]]), x([1, 0])),
    "sublevel_set": lambda x: [sublevel_set(_squares, 20.0)(x([3, 2])), sublevel_set(_squares, 20.0)(x([100, 100]))],
    "is_convex": lambda x: bool(
        is_convex(_squares, x(PLANE), generator=torch.Generator().manual_seed(0), num_cases=20)
    ),
    "is_convex_set": lambda x: bool(
        is_convex_set(lambda z: bool(z.sum() > 1), x(PLANE), generator=torch.Generator(), num_cases=20)
    ),
    "hessian_test": lambda x: bool(hessian_test(saddle, x(PLANE))),
    "second_difference": lambda x: second_difference(_squares, x([17, 0]), x([10, 20]), 1.0),
    "least_squares_constants": lambda x: least_squares_constants(x(ROWS)),
    "logistic_constants": lambda x: logistic_constants(x(ROWS), radius=0.01),
    "quadratic_constants": lambda x: quadratic_constants(x([[100, 3], [3, 90]])),
    "observed_constants": lambda x: observed_constants(_squares, x([[3, 100], [20, 1]]), x([[5, 90], [2, 2]])),
    "convex_bound": lambda x: convex_bound(x(START), x(LOWEST), 3, lr=0.25, smoothness=1.0),
    "convex_bound lowest": lambda x: convex_bound(f64(START), x(LOWEST), 3, lr=0.25, smoothness=1.0),
    "distance_bound": lambda x: distance_bound(x(START), x(LOWEST), 3, lr=0.25, constants=Constants(1.0, 0.5)),
    "strongly_convex_bound": lambda x: strongly_convex_bound(
        x(START), x(LOWEST), 3, lr=0.25, constants=Constants(1.0, 0.5)
    ),
    "rate_proof": lambda x: _proof(x([[3, 20], [2, 10]]), x([0, 0])),
    "rate_proof lowest": lambda x: _proof(f64([[3, 20], [2, 10]]), x([0, 1])),
    "momentum_convergence_rate": lambda x: momentum_convergence_rate(x([2, 3]), x([1, 0]), x([100, 1])),
    "momentum_convergence_rate_definition": lambda x: momentum_convergence_rate_definition(
        x([2, 3]), x([1, 0]), x([100, 1])
    ),
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

RESULT = "holds the answer of a function that has a case"
PLAIN = "takes plain Python numbers"

# Public names that take no numbers in tensors, each with its reason.
NO_NUMBERS: dict[str, str] = {
    "AdadeltaState": RESULT,
    "AdamState": RESULT,
    "BestMomentum": RESULT,
    "Constants": RESULT,
    "Fit": RESULT,
    "HessianTest": RESULT,
    "HingeFit": RESULT,
    "Trajectory": RESULT,
    "LRRangeTest": RESULT,
    "RateProof": RESULT,
    "ScoresFit": RESULT,
    "Segment": RESULT,
    "SegmentSearch": RESULT,
    "UpdateRule": "abstract: each rule has its cases",
    "best_momentum": PLAIN,
    "constant": PLAIN,
    "cosine": PLAIN,
    "line_search": PLAIN,
    "one_cycle": PLAIN,
    "lr_range_test": PLAIN,
    "step_decay": PLAIN,
    "with_warmup": PLAIN,
}
