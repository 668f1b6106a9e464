"""How fast gradient descent is on convex costs: the notes' convergence rate, its proof, what breaks it, and linear
rates."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.losses import l2_penalty, logistic_loss
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.convexity import MORE, quadratic, with_eigenvalues
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import excess, gap, max, roundings
from quoin.optim import (
    Constants,
    GradientDescent,
    Newton,
    Trajectory,
    convex_bound,
    descend,
    distance_bound,
    least_squares_constants,
    logistic_constants,
    observed_constants,
    quadratic_constants,
    rate_proof,
    strongly_convex_bound,
)

RATIO = "the theorem, and 4096 float64 roundings"


class Problem(NamedTuple):
    """A convex cost with one of its minimisers and its constants."""

    cost: Callable[[Tensor], Tensor]
    minimizer: Float[Tensor, "d"]
    constants: Constants


def bowl(generator: torch.Generator) -> Problem:
    """A random quadratic."""
    return quadratic_around(
        with_eigenvalues(torch.rand(4, generator=generator, dtype=torch.float64) + 0.05, generator), generator
    )


def trough(generator: torch.Generator) -> tuple[Problem, Float[Tensor, "d"]]:
    """A quadratic that is flat in one direction, which is given too: a line of minimisers."""
    Q = with_eigenvalues(torch.tensor([0.0, 0.3, 0.6, 1.0], dtype=torch.float64), generator)
    return quadratic_around(Q, generator), torch.linalg.eigh(Q).eigenvectors[:, 0]


def quadratic_around(Q: Float[Tensor, "d d"], generator: torch.Generator) -> Problem:
    center = normal(len(Q), generator=generator)
    return Problem(quadratic(Q, center), center, quadratic_constants(Q))


def line_through(generator: torch.Generator) -> Problem:
    """Least squares, with its minimiser by QR."""
    X, y = normal(12, 3, generator=generator), normal(12, generator=generator)
    w = torch.linalg.lstsq(X, y).solution
    return Problem(lambda w: (X @ w - y).square().mean() / 2, w, least_squares_constants(X))


def two_classes(generator: torch.Generator) -> Problem:
    """Logistic regression with l2, whose minimiser descent finds nearly and Newton's method to rounding."""
    X, y = normal(12, 3, generator=generator), normal(12, generator=generator).sign()
    cost = lambda w: logistic_loss(y * (X @ w)).mean() + l2_penalty(w, 0.1)  # noqa: E731
    constants = logistic_constants(X, l2=0.1)
    near = descend(cost, torch.zeros(3, dtype=torch.float64), GradientDescent(1 / constants.smoothness), 50).points[-1]
    return Problem(cost, descend(cost, near, Newton(cost), 4).points[-1], constants)


def problems(generator: torch.Generator) -> list[Problem]:
    return [bowl(generator), trough(generator)[0], line_through(generator), two_classes(generator)]


def run(problem: Problem, lr: float, steps: int, generator: torch.Generator) -> Trajectory:
    start = problem.minimizer + 2 * normal(*problem.minimizer.shape, generator=generator)
    return descend(problem.cost, start, GradientDescent(lr), steps)


def slowest(steps: int) -> Problem:
    """|x| with its breakpoint rounded just so wide, τ = 1/(2T+1), that T steps from 1 with η = L = 1 never reach the
    round part."""
    width = 1 / (2 * steps + 1)
    return Problem(
        lambda x: torch.where(x.abs() > width, width * x.abs() - width**2 / 2, x**2 / 2).sum(),
        torch.zeros(1, dtype=torch.float64),
        Constants(1.0, 0.0),
    )


@claim(
    "D1.5-5",
    "C(θ_t) - min C ≤ |θ₀ - θ*|²/(2ηt) for η ≤ 1/L along every run; on a rounded |x| it comes to t/(2t+1) of the bound",
    not_shown="all convex functions and all times: runs on those tried; the steps of the proof are the next claim",
)
def rate_along_runs(generator: torch.Generator) -> Evidence:
    worst, steps, cases = 0.0, 40, 0
    for problem in [each for _ in range(2) for each in problems(generator)]:
        step_size = float(torch.rand((), generator=generator) * 0.9 + 0.1) / problem.constants.smoothness
        for lr in (step_size, 1 / problem.constants.smoothness):
            path = run(problem, lr, steps, generator)
            above = path.values - problem.cost(problem.minimizer)
            guaranteed = convex_bound(
                path.points[0], problem.minimizer, steps, lr=lr, smoothness=problem.constants.smoothness
            )
            worst = max(worst, excess(above[1:] / guaranteed[1:], torch.zeros(())))
            cases += steps
    for steps in (1, 2, 10, 50):
        problem, start = slowest(steps), torch.ones(1, dtype=torch.float64)
        above = descend(problem.cost, start, GradientDescent(1.0), steps).values[-1]
        guaranteed = convex_bound(start, problem.minimizer, steps, lr=1.0, smoothness=1.0)[-1]
        by_hand = torch.tensor(steps / (2 * steps + 1), dtype=torch.float64)
        worst = max(worst, float(by_hand)) if gap(above / guaranteed, by_hand) <= roundings(64) else math.inf
        cases += 1
    return Evidence("largest fraction of the bound", worst, 1 + roundings(4096), RATIO, cases)


@claim(
    ("D1.5-5", "X6"),
    "each step of the proof holds: descent lemma, decrease by η|∇C|²/2, tangents below, one step, the sum, the "
    "last value being the least",
    not_shown="that the steps hold for every function: along runs on those tried",
)
def proof_step_by_step(generator: torch.Generator) -> Evidence:
    worst, steps, cases = 0.0, 20, 0
    for problem in [each for _ in range(2) for each in problems(generator)]:
        smoothness = problem.constants.smoothness
        for lr in (0.3 / smoothness, 1 / smoothness):
            path = run(problem, lr, steps, generator)
            proof = rate_proof(problem.cost, path.points, problem.minimizer, lr=lr, smoothness=smoothness)
            size = float((path.points[0] - problem.minimizer).square().sum()) / lr + steps  # of what is subtracted
            worst = max(worst, *(excess(-each / size, torch.zeros(())) for each in proof))
            cases += steps * len(proof)
    return Evidence(
        "most by which a left side exceeds its right, per size", worst, roundings(256), "256 float64 roundings", cases
    )


@claim(
    "D1.5-5",
    "η ≤ 1/L is needed: on ½Lx² with η = 1.9/L, which still converges, the first step lands at .81 of C(θ₀), the "
    "bound at .53",
)
def too_long_a_step(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 5
    for _ in range(cases):
        smoothness, start = float(torch.rand((), generator=generator)) + 0.1, normal(1, generator=generator)
        step_size = 1.9 / smoothness
        cost = lambda x, smoothness=smoothness: smoothness / 2 * x.square().sum()  # noqa: E731
        path = descend(cost, start, GradientDescent(step_size), 150)
        proof = rate_proof(cost, path.points, torch.zeros(1, dtype=torch.float64), lr=step_size, smoothness=smoothness)
        broken = float(proof.bound[0]) < 0 and float(proof.decrease[0]) < 0 and float(proof.tangent.min()) >= 0
        worst = worst if broken and float(path.values[-1]) < 1e-12 else math.inf
        worst = max(worst, gap(path.values[1] / path.values[0], torch.tensor(0.81, dtype=torch.float64)))
        worst = max(
            worst, gap((proof.bound[0] + path.values[1]) / path.values[0], torch.tensor(1 / 1.9, dtype=torch.float64))
        )
    return Evidence("largest distance from the ratios by hand", worst, roundings(64), "64 float64 roundings", cases)


@claim(
    "D1.5-5",
    "without a minimiser there is no such bound: ln(1+e^{-x}) has L = ¼ and tends to 0, but x_t = ln(ηt) + o(1) "
    "runs away",
)
def no_minimiser(generator: torch.Generator) -> Evidence:
    """With e^x = u a step is d ln u = η/(1+u) dt, so that u + ln u grows like ηt, and C = ln(1 + 1/u) like 1/(ηt).

    Had x* = 1 been a minimiser of value 0, C(x_t) would be at most 1/(2ηt). Against its own value C(z), every point z
    bounds it.
    """
    smoothness = logistic_constants(torch.ones(1, 1, dtype=torch.float64)).smoothness
    step_size, steps, start = 1 / smoothness, 1000, torch.zeros(1, dtype=torch.float64)
    path = descend(lambda x: logistic_loss(x).sum(), start, GradientDescent(step_size), steps)
    checks = [
        smoothness == 0.25,
        bool((path.points.diff(dim=0) > 0).all()),
        abs(float(path.points[-1]) - math.log(step_size * steps)) < 0.01,
        abs(step_size * steps * float(path.values[-1]) - 1) < 0.01,
    ]
    for z in (1.0, 3.0, 9.0):
        guaranteed = convex_bound(start, torch.full_like(start, z), steps, lr=step_size, smoothness=smoothness)
        checks.append(
            excess(path.values[1:] - logistic_loss(torch.tensor(z, dtype=torch.float64)), guaranteed[1:]) <= 0
        )
        if z == 1:
            checks.append(bool((path.values[10:] > guaranteed[10:]).all()))
    return Evidence("statements that fail", checks.count(False), 0, "exact: a count", len(checks), "==")


def a_minimizer(
    problem: Problem, flat: Float[Tensor, "d"], start: Float[Tensor, "d"], generator: torch.Generator
) -> Float[Tensor, "d"]:
    return problem.minimizer + 3 * normal(1, generator=generator) * flat


def any_point(
    problem: Problem, flat: Float[Tensor, "d"], start: Float[Tensor, "d"], generator: torch.Generator
) -> Float[Tensor, "d"]:
    return start + 0.3 * normal(len(flat), generator=generator)


@claim(
    "DE21",
    "θ* in the convergence rate is any minimiser, near or far, on a line of them; it may not be any point",
    right=a_minimizer,
    printed=any_point,
)
def which_minimiser(
    form: Callable[[Problem, Tensor, Tensor, torch.Generator], Tensor], generator: torch.Generator
) -> Evidence:
    worst, steps, cases = 0.0, 20, 20
    for _ in range(cases):
        problem, flat = trough(generator)
        smoothness = problem.constants.smoothness
        start = problem.minimizer + 2 * normal(4, generator=generator)
        path = descend(problem.cost, start, GradientDescent(1 / smoothness), steps)
        guaranteed = convex_bound(
            start, form(problem, flat, start, generator), steps, lr=1 / smoothness, smoothness=smoothness
        )
        worst = max(worst, excess(path.values[1:] / guaranteed[1:], torch.zeros(())))
    return Evidence("largest fraction of the bound", worst, 1 + roundings(4096), RATIO, cases * steps)


@claim(
    "D1.5-5c",
    "no step leads away from any minimiser, and θ_t tends to one: of a trough, to the one nearest to θ₀",
    not_shown="the limit itself: finitely many steps",
)
def never_away_from_a_minimiser(generator: torch.Generator) -> Evidence:
    """Along the flat direction no gradient moves θ, across it the distance falls by 1 - 0.3 or more a step."""
    worst, steps, cases = 0.0, 120, 0
    for problem in problems(generator):
        path = run(problem, 1 / problem.constants.smoothness, 30, generator)
        worst = max(worst, excess((path.points - problem.minimizer).norm(dim=1).diff(), torch.zeros(())))
        cases += 30
    for _ in range(6):
        problem, flat = trough(generator)
        smoothness = problem.constants.smoothness
        path = run(problem, 1 / smoothness, steps, generator)
        for star in problem.minimizer + 3 * normal(4, 1, generator=generator) * flat:
            away = (path.points - star).norm(dim=1)
            guaranteed = distance_bound(path.points[0], star, steps, lr=1 / smoothness, constants=problem.constants)
            worst = max(worst, excess(away.diff(), torch.zeros(())), excess(away, guaranteed))
            cases += steps
        nearest = problem.minimizer + flat * (flat @ (path.points[0] - problem.minimizer))
        worst = max(worst, gap(path.points[-1], nearest))
    return Evidence("largest step away, distance from the nearest at the end", worst, roundings(4096), MORE, cases)


@claim(
    ("D1.5-5", "D1.5-5c"),
    "with μ > 0 it is faster: |θ_t - θ*| ≤ (1-ημ)^t |θ₀ - θ*| and C(θ_t) - min C ≤ (L/2)(1-ημ)^{2t} |θ₀ - θ*|²; "
    "½μx² attains the first",
    not_shown="all strongly convex functions: those tried",
)
def linear_rates(generator: torch.Generator) -> Evidence:
    worst, steps, cases = 0.0, 30, 0
    for problem in [make(generator) for _ in range(4) for make in (bowl, line_through, two_classes)]:
        smoothness, strong = problem.constants
        for step_size in (0.5 / smoothness, 1 / smoothness, 2 / (smoothness + strong)):
            path = run(problem, step_size, steps, generator)
            start, star = path.points[0], problem.minimizer
            within = distance_bound(start, star, steps, lr=step_size, constants=problem.constants)
            above = strongly_convex_bound(start, star, steps, lr=step_size, constants=problem.constants)
            worst = max(
                worst, excess((path.points - star).norm(dim=1), within), excess(path.values - problem.cost(star), above)
            )
            cases += 2 * steps
    strong, start = 0.2, torch.full((1,), 3.0, dtype=torch.float64)
    path = descend(lambda x: strong / 2 * x.square().sum(), start, GradientDescent(0.5), steps)
    within = distance_bound(start, 0 * start, steps, lr=0.5, constants=Constants(1.0, strong))
    worst = max(worst, gap(path.points[:, 0], within))
    return Evidence(
        "largest excess over a bound, |distance - bound| for ½μx²", worst, roundings(4096), MORE, cases + steps
    )


@claim(
    "D1.5-5",
    "L and μ are computed: no pair of points shows more curvature than L or less than μ, and some pair shows just L",
)
def constants_are_the_extremes(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for _ in range(3):
        X = normal(12, 3, generator=generator)
        top = torch.linalg.svd(X).Vh[0]  # the direction that X stretches most
        y = normal(12, generator=generator)
        for cost, constants in (
            (lambda w, X=X, y=y: (X @ w - y).square().mean() / 2, least_squares_constants(X)),
            (
                lambda w, X=X, y=y: logistic_loss(y.sign() * (X @ w)).mean() + l2_penalty(w, 0.1),
                logistic_constants(X, l2=0.1),
            ),
        ):
            a, b = normal(2, 20, 3, generator=generator)
            seen = observed_constants(cost, a, b)
            reached = observed_constants(cost, 1e-4 * top.unsqueeze(0), -1e-4 * top.unsqueeze(0)).smoothness
            worst = max(
                worst,
                seen.smoothness / constants.smoothness - 1,
                1 - seen.strong_convexity / constants.strong_convexity,
            )
            worst = max(worst, abs(reached / constants.smoothness - 1))
            cases += len(a) + 1
    # The second derivative of ln(1 + e^-m) is ¼ at 0 and falls by m²/4 of that beside it: by about 1e-8 at the margins
    # here.
    return Evidence(
        "largest ratio beyond L or μ, distance of the highest from L",
        worst,
        1e-6,
        "that fall, and the rounding of differences over 1e-4",
        cases,
    )
