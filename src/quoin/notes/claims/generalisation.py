"""Training and generalisation error: what is unbiased, how their gap depends on model and data, one distribution for
both."""

import math
from collections.abc import Callable
from itertools import pairwise, product

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.losses import squared_loss
from quoin.metrics import (
    Population,
    estimate_risk,
    expected_risk,
    generalization_gap,
    learning_curve,
    population_from_density,
)
from quoin.models import (
    fit_polynomial,
    least_squares,
    linear_regression_definition,
    monomial_features,
    num_monomials,
    num_monomials_up_to,
    polynomial_features,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import max, min, randint, roundings
from quoin.prob import energy_test

NOISE = 0.3
HALF = 3.0  # x is uniform on [-HALF, HALF]
# standard deviations, or estimates of them from hundreds of repeats: passed by chance less than once in ten million
LEVEL = 6.0
LEVEL_SOURCE = "6 standard errors, passed by chance less than once in ten million"


def curve(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    return torch.sin(1.5 * x)


def known_distribution() -> Population:
    """x uniform on an interval and y = curve(x) + N(0, NOISE²), as nodes and weights."""

    def density(x: Tensor, y: Tensor) -> Tensor:
        z = (y - curve(x)) / NOISE
        return torch.exp(-z.square() / 2) / (math.sqrt(2 * math.pi) * NOISE * 2 * HALF)

    return population_from_density(density, (-HALF, HALF), (-1 - 8 * NOISE, 1 + 8 * NOISE), num_nodes=120)


def sample(num_examples: int, generator: torch.Generator) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"]]:
    x = HALF * (2 * torch.rand(num_examples, generator=generator, dtype=torch.float64) - 1)
    return x, curve(x) + NOISE * torch.randn(num_examples, generator=generator, dtype=torch.float64)


def fitted(x: Float[Tensor, "n"], y: Float[Tensor, "n"], degree: int) -> Callable[[Tensor], Tensor]:
    weights = fit_polynomial(x, y, degree)
    return lambda x: polynomial_features(x, degree) @ weights


@claim(
    "Z3.20",
    "a polynomial through all of n noisy points has no training error, and on new data errs by more than the noise",
)
def interpolation_overfits(generator: torch.Generator) -> Evidence:
    distribution, worst, cases = known_distribution(), 0.0, 20
    for _ in range(cases):
        x, y = sample(randint(6, 12, generator), generator)
        model = fitted(x, y, len(x) - 1)
        error = expected_risk(model, squared_loss, distribution)
        if error < NOISE**2 / 2 - roundings(256):
            worst = math.inf  # no function errs by less than the noise, so the integral would be wrong
        worst = max(worst, estimate_risk(model, squared_loss, x, y).output / error)
    source = "the fit is exact but for rounding; the error is at least half the variance of the noise"
    return Evidence("largest training error / generalisation error", worst, 1e-9, source, cases)


@claim(
    "Z3.24",
    "the mean loss of a test set is an unbiased estimate of the generalisation error, its standard deviation falls "
    "like 1/√n",
    not_shown="all models and distributions: the mean over many test sets for one",
)
def test_error_is_unbiased(generator: torch.Generator) -> Evidence:
    distribution, repeats = known_distribution(), 3000

    def model(x: Tensor) -> Tensor:
        return 0.2 + 0.1 * x

    exact = expected_risk(model, squared_loss, distribution)
    deviation = math.sqrt(expected_risk(model, lambda p, y: (squared_loss(p, y) - exact).square(), distribution))
    worst = 0.0
    for n in (4, 16, 64):
        found = [estimate_risk(model, squared_loss, *sample(n, generator)).output for _ in range(repeats)]
        means = torch.tensor(found, dtype=torch.float64)
        worst = max(worst, abs(float(means.mean()) - exact) / (deviation / math.sqrt(n * repeats)))
        # The standard deviation of 3000 means is known to 4%; 35% is beyond chance, and far below the factor 2
        # from one n to the next.
        if abs(float(means.var()) * n / deviation**2 - 1) > 0.35:
            worst = math.inf
    return Evidence(
        "largest |mean - R| in standard errors, if the variances are those of 1/√n",
        worst,
        LEVEL,
        LEVEL_SOURCE,
        3 * repeats,
    )


@claim(
    "D1.3-6",
    "training error underestimates the error: for p weights it is σ²(1 - p/n)/2 on average, on unseen targets σ²(1 "
    "+ p/n)/2",
)
def training_error_is_optimistic(generator: torch.Generator) -> Evidence:
    repeats, n, d = 1000, 20, 4
    p = d + 1  # with the bias
    train, test = [], []
    for _ in range(repeats):
        X = torch.randn(n, d, generator=generator, dtype=torch.float64)
        seen, unseen = X.sum(dim=1) + NOISE * torch.randn(2, n, generator=generator, dtype=torch.float64)
        fit = least_squares(X, seen)
        gap = generalization_gap(
            lambda x, fit=fit: linear_regression_definition(x, *fit), squared_loss, (X, seen), (X, unseen)
        )
        train.append(gap.training_error)
        test.append(gap.test_error)
    # n · error / (σ²/2) is χ² with n - p degrees in training; on unseen targets a sum of n + p terms of variance 2(n +
    # 3p).
    off = abs(sum(train) / repeats * 2 * n / NOISE**2 - (n - p)) / math.sqrt(2 * (n - p) / repeats)
    off = max(off, abs(sum(test) / repeats * 2 * n / NOISE**2 - (n + p)) / math.sqrt(2 * (n + 3 * p) / repeats))
    return Evidence("largest |mean error - its closed form| in standard errors", off, LEVEL, LEVEL_SOURCE, repeats)


@claim(
    "Z3.27",
    "of polynomials for 20 noisy points, degree 1 is too stiff and 18 follows the noise: both err over twice as "
    "much as 5",
)
def middle_degree_is_best(generator: torch.Generator) -> Evidence:
    distribution, degrees, repeats = known_distribution(), (1, 5, 18), 100
    x = torch.linspace(-HALF, HALF, 20, dtype=torch.float64)
    errors = torch.empty(2, repeats, len(degrees), dtype=torch.float64)  # in training, on new data
    for repeat in range(repeats):
        y = curve(x) + NOISE * torch.randn(20, generator=generator, dtype=torch.float64)
        for column, degree in enumerate(degrees):
            model = fitted(x, y, degree)
            errors[0, repeat, column] = estimate_risk(model, squared_loss, x, y).output
            errors[1, repeat, column] = expected_risk(model, squared_loss, distribution)
    stiff, right, wild = errors[1].mean(dim=0).tolist()
    ratio = right / min(stiff, wild) if bool((errors[0].diff(dim=-1) < 0).all()) else math.inf
    source = (
        "no line errs by less than 0.28, and degree 5 by 0.058, of which 0.045 is noise; the mean of 100 is known to 2%"
    )
    return Evidence(
        "mean error of degree 5 / the lesser of the others', training errors falling", ratio, 0.5, source, repeats
    )


@claim(
    "Z3.25",
    "with the degree the training error only falls, and the mean gap to new targets, σ²p/n, grows; it falls with n",
)
def gap_grows_with_complexity(generator: torch.Generator) -> Evidence:
    repeats, degrees, sizes, worst = 250, (1, 3, 6, 9), (16, 64, 256), 0.0
    gaps = torch.empty(len(sizes), len(degrees), repeats, dtype=torch.float64)
    for (row, n), repeat in product(enumerate(sizes), range(repeats)):
        x, y = sample(n, generator)
        new = curve(x) + NOISE * torch.randn(n, generator=generator, dtype=torch.float64)
        found = [generalization_gap(fitted(x, y, degree), squared_loss, (x, y), (x, new)) for degree in degrees]
        if any(higher.training_error > lower.training_error + 1e-9 for lower, higher in pairwise(found)):
            worst = math.inf
        gaps[row, :, repeat] = torch.tensor([each.output for each in found])
    mean, errors = gaps.mean(dim=-1), gaps.std(dim=-1) / math.sqrt(repeats)
    expected = NOISE**2 * torch.tensor([[(degree + 1) / n for degree in degrees] for n in sizes], dtype=torch.float64)
    worst = max(worst, float(((mean - expected) / errors).abs().max()))
    if not mean[0, -1] > 10 * mean[-1, 0]:  # by the formula, 80 times
        worst = math.inf
    return Evidence(
        "largest |mean gap - σ²p/n| in standard errors, training errors falling",
        worst,
        LEVEL,
        LEVEL_SOURCE,
        gaps.numel(),
    )


@claim(
    "Z3.29", "more data narrow the gap: for d Gaussian features its mean is σ²/2 · [(n+1)(n-2)/(n(n-d-2)) - (n-d-1)/n]"
)
def gap_shrinks_with_data(generator: torch.Generator) -> Evidence:
    repeats, d, sizes = 300, 3, (16, 32, 64, 128)

    def fit(X: Tensor, y: Tensor):
        found = least_squares(X, y)
        return lambda X: linear_regression_definition(X, *found)

    gaps = torch.empty(repeats, len(sizes), dtype=torch.float64)
    for repeat in range(repeats):
        X = torch.randn(1024, d, generator=generator, dtype=torch.float64)
        y = X.sum(dim=1) + NOISE * torch.randn(1024, generator=generator, dtype=torch.float64)
        found = learning_curve(fit, squared_loss, (X[:128], y[:128]), (X[128:], y[128:]), sizes)
        gaps[repeat] = found.test_errors - found.training_errors
    n = torch.tensor(sizes, dtype=torch.float64)
    expected = NOISE**2 / 2 * ((n + 1) * (n - 2) / (n * (n - d - 2)) - (n - d - 1) / n)
    mean, errors = gaps.mean(dim=0), gaps.std(dim=0) / math.sqrt(repeats)
    worst = float(((mean - expected) / errors).abs().max())
    if not (mean.diff() < 0).all():
        worst = math.inf
    return Evidence(
        "largest |mean gap - closed form| in standard errors, gaps falling", worst, LEVEL, LEVEL_SOURCE, gaps.numel()
    )


@claim("Z3.30", "k variables have C(k-1+d, k-1) monomials of degree exactly d and C(k+d, k) of degree at most d")
def monomials_are_counted(generator: torch.Generator) -> Evidence:
    wrong, cases = 0, 0
    for k, d in product(range(1, 7), range(6)):
        x = torch.rand(1, k, generator=generator, dtype=torch.float64) + 0.5
        features, doubled = monomial_features(x, d)[0], monomial_features(2 * x, d)[0]
        # Doubling is exact, so that f(2x) = 2^e f(x) tells the degree e; at a random point no two monomials are equal.
        degrees = (doubled / features).log2()
        exact = [int((degrees == e).sum()) for e in range(d + 1)]
        wrong += exact != [num_monomials(k, e) for e in range(d + 1)]
        wrong += len(features.unique()) != num_monomials_up_to(k, d)
        wrong += num_monomials(k, d) != math.comb(k - 1 + d, k - 1) or num_monomials_up_to(k, d) != math.comb(k + d, k)
        cases += 1
    return Evidence("wrong counts", wrong, 0, "exact: a count", cases, "==")


@claim(
    "Z3.21",
    "if all rows are samples from one distribution, a permutation test of level α rejects so with probability at "
    "most α; shifts it sees",
)
def same_distribution_is_not_rejected(generator: torch.Generator) -> Evidence:
    repeats, most, unseen = 400, {0.05: 46, 0.5: 252}, 0  # P(Binomial(400, α) > most) is below 1e-7 for both
    rejected = dict.fromkeys(most, 0)
    for _ in range(repeats):
        first, second = torch.randn(
            2, 20, 3, generator=generator, dtype=torch.float64
        ).exp()  # any distribution will do
        found = energy_test(first, second, num_permutations=199, generator=generator).p_value
        for level in most:
            rejected[level] += not found > level
        moved = first.log() + torch.tensor([3.0, 0.0, 0.0], dtype=torch.float64)
        unseen += not energy_test(moved, second.log(), num_permutations=199, generator=generator).p_value <= 0.05
    worst = max(rejected[level] / most[level] for level in most) if unseen == 0 else math.inf
    quantity = (
        "rejections of equal distributions at levels 5% and 50% over the most that chance allows; no shift of 3σ unseen"
    )
    return Evidence(quantity, worst, 1.0, "binomial: exceeded less than once in a million times", repeats)
