"""Mixtures of normal distributions: their density, when they have two peaks, and what EM does to the likelihood."""

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.models import em, em_step, init_mixture
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.prob import (
    ComponentNormals,
    DiagonalNormals,
    FullNormals,
    GaussianMixtureDistribution,
    SphericalNormals,
    TiedNormals,
    line_quadrature,
    mixture_density_definition,
    modes_1d,
)

FAMILIES: tuple[type[ComponentNormals], ...] = (FullNormals, TiedNormals, DiagonalNormals, SphericalNormals)
QUADRATURE = 1e-8  # what 80 nodes a piece leave of a smooth integrand


def random_mixture(generator: torch.Generator, k: int, d: int) -> GaussianMixtureDistribution:
    roots = normal(k, d, d, generator=generator) + 1.5 * torch.eye(d)
    weights = normal(k, generator=generator).softmax(dim=0)
    return GaussianMixtureDistribution(
        weights, FullNormals(2 * normal(k, d, generator=generator), roots @ roots.mT + 0.1 * torch.eye(d).double())
    )


def in_the_simplex(numbers: Float[Tensor, "k"]) -> Float[Tensor, "k"]:
    return numbers.softmax(dim=0)


def any_numbers(numbers: Float[Tensor, "k"]) -> Float[Tensor, "k"]:
    return numbers


@claim(
    ("D6-9", "DE54"),
    "Σφ_i N(μ_i, Σ_i) is a density, of the component sampled first and x second, with φ in the simplex; with any φ "
    "in Rⁿ it is none",
    right=in_the_simplex,
    printed=any_numbers,
)
def mixtures_are_densities(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 10
    for _ in range(cases):
        k = randint(1, 4, generator)
        weights, means = form(normal(k, generator=generator)), 2 * normal(k, 1, generator=generator)
        variances = 0.3 + torch.rand(k, generator=generator, dtype=torch.float64)
        edges = torch.arange(
            float(means.min()) - 10, float(means.max()) + 11, dtype=torch.float64
        )  # 8.7 standard deviations beyond all means
        x, steps = line_quadrature(edges)
        density = mixture_density_definition(x.unsqueeze(-1), weights, means, variances[:, None, None])
        distribution = GaussianMixtureDistribution(weights, SphericalNormals(means, variances))
        worst = max(
            worst,
            gap((density * steps).sum(), torch.ones(())),
            gap(distribution.log_prob(x.unsqueeze(-1)).exp(), density),
        )
        # P[Z = i | x] integrates against p to P[Z = i].
        responsibilities = distribution.responsibilities(x.unsqueeze(-1)) * (density * steps).unsqueeze(-1)
        worst = max(worst, gap(responsibilities.sum(dim=0), weights))
    return Evidence(
        "largest error of an integral to 1 or to its φ_i", worst, QUADRATURE, "80 tanh-sinh nodes a piece", cases
    )


@claim(
    "D6-9",
    "samples, a component first and x given it second, have the mixture's mean and covariance, within and between "
    "components",
)
def samples_have_the_mixtures_moments(generator: torch.Generator) -> Evidence:
    worst, num_samples, cases = 0.0, 20_000, 5
    for _ in range(cases):
        distribution = random_mixture(generator, randint(2, 4, generator), randint(1, 3, generator))
        x = distribution.sample((num_samples,), generator=generator)
        white = torch.linalg.solve_triangular(
            torch.linalg.cholesky(distribution.covariance), (x - distribution.mean).mT, upper=False
        ).mT
        for each in (white, white.square() - 1):
            worst = max(worst, float((each.mean(dim=0).abs() / each.std(dim=0)).max()) * math.sqrt(num_samples))
    # At most 30 averages of 20,000: beyond 6 standard deviations once in 10^7 by the normal tail, with a margin for
    # skewness.
    return Evidence(
        "largest deviation of a moment, in standard errors", worst, 6.5, "normal tail of 30 means, 3e-9", 2 * cases
    )


@claim("D6-9c", "two equal-weight N(μ_i, σ²) on the line have two modes exactly if the means are more than 2σ apart")
def two_peaks_beyond_two_deviations(generator: torch.Generator) -> Evidence:
    wrong, cases = 0, 0
    for _ in range(10):
        middle, deviation = (
            5 * normal(1, generator=generator),
            10 ** (2 * torch.rand(1, generator=generator, dtype=torch.float64) - 1),
        )
        for apart, peaks in ((0.0, 1), (1.0, 1), (1.9, 1), (1.99, 1), (2.01, 2), (2.1, 2), (3.0, 2), (10.0, 2)):
            offsets = torch.tensor([-apart / 2, apart / 2], dtype=torch.float64)
            components = SphericalNormals((middle + deviation * offsets).unsqueeze(-1), deviation.square().repeat(2))
            found = modes_1d(GaussianMixtureDistribution(torch.full((2,), 0.5, dtype=torch.float64), components))
            wrong, cases = wrong + (len(found) != peaks), cases + 1
            # At a mode off the middle, y = (x - middle)/σ solves 2y/a = tanh(a y/2) with a the distance in standard
            # deviations.
            y = (found - middle) / deviation
            wrong += apart > 0 and not bool(((2 * y / apart - torch.tanh(apart * y / 2)).abs() < 1e-5).all())
    return Evidence("mixtures with another number of peaks, or peaks elsewhere", wrong, 0, "exact", cases, "==")


@claim(
    "D6-10",
    "a step of EM never lowers the likelihood, in all four families, also where variances are held above a bound",
    not_shown="that EM ends at the highest likelihood: it need not",
)
def likelihood_never_falls(generator: torch.Generator) -> Evidence:
    worst, cases, risen = 0.0, 0, 0.0
    for family in FAMILIES:
        for min_variance in (1e-9, 0.05):
            k, d = randint(2, 4, generator), randint(1, 4, generator)
            x = random_mixture(generator, k, d).sample((150,), generator=generator)
            distribution = init_mixture(x, k, family, generator=generator, min_variance=min_variance)
            before = float(distribution.log_prob(x).sum())
            for _ in range(15):
                distribution = em_step(distribution, x, min_variance=min_variance).output
                after = float(distribution.log_prob(x).sum())
                worst, risen, cases = max(worst, (before - after) / abs(before)), max(risen, after - before), cases + 1
                before = after
    worst = worst if risen > 0.1 else math.inf  # something must have been learnt
    return Evidence(
        "largest relative fall of the log-likelihood", worst, roundings(512), "512 float64 roundings", cases
    )


@claim(
    "D6-10",
    "the likelihood is unbounded: a component on one data point gains ln 10 for each tenth of its standard "
    "deviation; a bound holds it",
)
def likelihood_is_unbounded(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 10
    for _ in range(cases):
        x = normal(30, 1, generator=generator)
        means = torch.stack([x[0], x.mean(dim=0)])
        narrower = [
            GaussianMixtureDistribution(
                torch.tensor([0.5, 0.5]).double(),
                DiagonalNormals(means, torch.tensor([[10.0 ** (-2 * power)], [1.0]]).double()),
            )
            for power in range(5, 9)
        ]
        found = [float(each.log_prob(x).sum()) for each in narrower]
        gains = [after - before for before, after in pairwise(found)]
        worst = max(worst, *(abs(gain - math.log(10)) for gain in gains))
        held = em(narrower[-1], x, max_iter=20, min_variance=0.01).output
        least = held.components.covariances.min() / x.var(correction=0)
        if float(least) < 0.01 - roundings(16):
            worst = math.inf
        try:  # two components on two points, and no bound: EM collapses at once, which is reported
            em(init_mixture(x[:2], 2, DiagonalNormals, generator=generator), x[:2], min_variance=0.0)
            worst = math.inf
        except UserError:
            pass
    # The other component's weight at the point itself is below 1e-4 of the first's, and falls by ten each time.
    return Evidence(
        "largest error of a gain to ln 10",
        worst,
        1e-3,
        "what the wide component adds at the point: 1e-4 at most",
        3 * cases,
    )
