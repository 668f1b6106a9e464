"""Jensen's inequality: its gap, its proof by induction, hidden variables; and the convexity of x log x. Sets are in
convexity.py."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Normal

from quoin.autodiff import hessian_definition
from quoin.info import kl_divergence
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.convexity import COUNT, MORE, ZERO, convex_functions
from quoin.notes.claims.distances import random_distributions
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import excess, gap, max, randint, roundings
from quoin.optim import hessian_test, is_convex, is_convex_set, jensen_gap, jensen_steps, sublevel_set


def weighted_points(generator: torch.Generator) -> tuple[Float[Tensor, "n"], Float[Tensor, "n dim"]]:
    weights = random_distributions(1, generator)[0]
    return weights, normal(len(weights), randint(1, 4, generator), generator=generator)


@claim(
    "Z12.6",
    "Σ α_i f(x_i) ≥ f(Σ α_i x_i) and E f(X) ≥ f(E X) for convex f; for f = x² the difference is the variance",
    not_shown="all convex functions: those tried, on finite distributions",
)
def jensen(generator: torch.Generator) -> Evidence:
    worst, rounds = -math.inf, 40
    for _ in range(rounds):
        weights, points = weighted_points(generator)
        for f in convex_functions(points.shape[1], generator):
            worst = max(worst, excess(-jensen_gap(f, points, weights), ZERO), excess(-jensen_gap(f, points), ZERO))
        worst = max(worst, gap(jensen_gap(torch.square, points[:, 0]), points[:, 0].var(correction=0)))
    return Evidence("largest f(E X) - E f(X), |gap - variance|", worst, roundings(4096), MORE, 11 * rounds)


def renormalized(p: Float[Tensor, "n"]) -> Float[Tensor, ""]:
    return 1 - p[-1]


def one_early(p: Float[Tensor, "n"]) -> Float[Tensor, ""]:
    return 1 - p[-2]


@claim(
    ("DE17", "D1.4-10"),
    "the induction step of Jensen: φ(Σ p_i x_i) ≤ cφ(m) + pφ(x) ≤ cΣ(p_i/c)φ(x_i) + pφ(x) = Σ p_i φ(x_i) with p = "
    "p_{n+1}, c = 1-p_{n+1}",
    right=renormalized,
    printed=one_early,
)
def induction_step(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    given = torch.tensor([0.5, 0.1, 0.4], dtype=torch.float64), normal(3, 2, generator=generator)
    cases = [weighted_points(generator) for _ in range(40)]
    worst = -math.inf
    for weights, points in [given, *cases]:
        last = weights[-1]
        if float(last) == 1:
            continue  # nothing to show
        earlier = weights[:-1] / (1 - last)
        for f in convex_functions(points.shape[1], generator):
            at_mean, at_last, before = f(weights @ points), f(points[-1]), f(earlier @ points[:-1])
            mean_before = jensen_gap(f, points[:-1], earlier) + before  # Σ (p_i / c) φ(x_i)
            second, third = form(weights) * before + last * at_last, form(weights) * mean_before + last * at_last
            worst = max(
                worst,
                excess(at_mean, second),
                excess(second, third),
                gap(third, jensen_gap(f, points, weights) + at_mean),
            )
    return Evidence("largest violation of a step", worst, roundings(4096), MORE, 5 * (1 + len(cases)))


@claim(
    "D1.4-10",
    "φ(Σ p_i x_i) ≤ Σ p_i φ(x_i) by induction: its gap is a sum of n-1 chord gaps, none negative, weights renormalized",
)
def gap_is_a_sum_of_chord_gaps(generator: torch.Generator) -> Evidence:
    worst, rounds = -math.inf, 40
    for _ in range(rounds):
        weights, points = weighted_points(generator)
        for f in convex_functions(points.shape[1], generator):
            steps = jensen_steps(f, points, weights)
            worst = max(worst, gap(steps.sum(), jensen_gap(f, points, weights)), excess(-steps, ZERO))
    return Evidence("largest |Σ steps - gap|, -step", worst, roundings(4096), MORE, 5 * rounds)


@claim(
    "Z12.7",
    "E_Y[-log P(x|Y)] ≥ -log P(x) for hidden Y; the difference is D(P(Y) ‖ P(Y|x)), here Y the cluster of a "
    "Gaussian mixture",
)
def hidden_variable(generator: torch.Generator) -> Evidence:
    worst, rounds = -math.inf, 200
    for _ in range(rounds):
        prior = random_distributions(1, generator, positive=True)[0]
        clusters = Normal(
            2 * normal(len(prior), generator=generator), normal(len(prior), generator=generator).sigmoid() + 0.5
        )
        x = 2 * normal(1, generator=generator)
        likelihood = clusters.log_prob(x).exp()  # P(x|y) for each y
        found = jensen_gap(lambda p: -p.log(), likelihood, prior)
        posterior = prior * likelihood / (prior @ likelihood)
        worst = max(worst, excess(-found, ZERO), gap(found, kl_divergence(prior, posterior)))
    return Evidence("largest |gap - D(P(Y)‖P(Y|x))|, -gap", worst, roundings(4096), MORE, rounds)


# ---- x log x ----------------------------------------------------------------------------------------------------


def reciprocal(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    return 1 / x


def reciprocal_and_one(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    return 1 / x + 1


@claim(("DE16", "D1.4-9"), "(x log x)'' = 1/x: at x = .7, 1.42857", right=reciprocal, printed=reciprocal_and_one)
def second_derivative_of_x_log_x(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    points = torch.cat([torch.tensor([0.7], dtype=torch.float64), (2 * normal(30, generator=generator)).exp()])
    for x in points:
        worst = max(worst, float((x * hessian_definition(lambda x: x * x.log(), x) - x * form(x)).abs()))
    return Evidence("largest x |φ''(x) - form(x)|", worst, roundings(8), "8 float64 roundings", len(points))


@claim(
    "D1.4-9",
    "x log x is convex on (0, ∞): its second derivative is positive, its chords lie above, and its below sets are "
    "intervals",
)
def x_log_x_is_convex(generator: torch.Generator) -> Evidence:
    points = (2 * normal(40, generator=generator)).exp()
    found = hessian_test(lambda x: x * x.log(), points)
    wrong = int((~(found.least > 0)).sum()) + (
        not is_convex(lambda x: x * x.log(), points, generator=generator, num_cases=1000)
    )
    wrong += not is_convex_set(sublevel_set(lambda x: x * x.log(), -0.2), points, generator=generator)
    return Evidence("signs of the contrary", wrong, 0, COUNT, len(points) + 2, "==")
