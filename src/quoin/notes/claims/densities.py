"""Densities: marginals, independence as a product, a pair without one, and what conditioning is where the density is
zero."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch import distributions as families

from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.probability import uniform
from quoin.notes.claims.rounding import gap
from quoin.prob import (
    Density,
    ProbabilitySpace,
    RandomVariable,
    condition_density,
    covariance,
    independence_gap_of_density,
    joint_table,
    joint_variable,
    normal_density_1d,
    product_density,
    variance,
)

CASES = 3
LINE = (-math.inf, -1.0, 0.0, 1.0, math.inf)
QUADRATURE = 1e-9  # tanh-sinh with 80 nodes a piece: some e^-25 for the smooth densities used here


def correlated(rho: float) -> Density:
    """The standard normal pair of correlation rho."""
    rest = 1 - rho**2
    constant = 2 * math.pi * math.sqrt(rest)
    return Density(lambda x, y: torch.exp(-(x**2 - 2 * rho * x * y + y**2) / (2 * rest)) / constant, LINE, LINE)


def tilted(theta: float) -> Density:
    """1 + theta (1 - 2x)(1 - 2y) on the unit square: uniform marginals, dependent unless theta is zero."""
    return Density(lambda x, y: 1 + theta * (1 - 2 * x) * (1 - 2 * y), (0, 0.5, 1), (0, 0.5, 1))


@claim(
    "D5-6",
    "integrating y out of a joint density leaves X's density: the normal of a normal pair, x + 1/2 of x + y, and "
    "P[X in A]",
)
def marginals_by_integration(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        pair, points = (
            correlated(uniform(-0.8, 0.8, generator)),
            6 * torch.rand(20, generator=generator, dtype=torch.float64) - 3,
        )
        low, high = sorted((uniform(-2, 2, generator), uniform(-2, 2, generator)))
        for axis in (0, 1):
            worst = max(worst, gap(pair.marginal(axis)(points), normal_density_1d(points)))
        strip, alone = pair.probability((low, high), (-math.inf, math.inf)), pair.marginal(0).probability((low, high))
        normal = families.Normal(0.0, 1.0).cdf(torch.tensor([low, high], dtype=torch.float64)).diff()[0]
        worst = max(worst, gap(strip, alone), gap(strip, normal))
        unit = torch.rand(20, generator=generator, dtype=torch.float64)
        worst = max(worst, gap(Density(lambda x, y: x + y, (0, 1), (0, 1)).marginal(1)(unit), unit + 0.5))
    return Evidence("largest |integrated - closed form|", worst, QUADRATURE, "the quadrature's error", CASES)


@claim(
    "D5-7",
    "a pair with a density is independent exactly if it is p_X p_Y, and then boxes multiply; 1 + θ(1-2x)(1-2y) is "
    "|θ|/8 away",
)
def independence_is_a_product_of_densities(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        theta = uniform(0.3, 1, generator) * (1 if uniform(-1, 1, generator) > 0 else -1)
        worst = max(
            worst, gap(independence_gap_of_density(tilted(theta), 0), torch.tensor(abs(theta) / 8, dtype=torch.float64))
        )
        # P[X < 1/2, Y < 1/2] - 1/4 is theta / 16 exactly: dependence seen in a box.
        half = tilted(theta).probability((0, 0.5), (0, 0.5)) - 0.25
        worst = max(worst, gap(half, torch.tensor(theta / 16, dtype=torch.float64)))
        first = Density.from_distribution(families.Gamma(torch.tensor(2.0, dtype=torch.float64), 1.0))
        second = Density(lambda y: normal_density_1d(y), LINE)
        product = product_density(first, second)
        worst = max(worst, float(independence_gap_of_density(product, 0)))
        a, b = (0.5, uniform(1, 3, generator)), (-1.0, uniform(0, 2, generator))
        worst = max(worst, gap(product.probability(a, b), first.probability(a) * second.probability(b)))
    return Evidence("largest distance from what is stated", worst, QUADRATURE, "the quadrature's error", CASES)


@claim(
    "D5-8",
    "X normal and Y = X: both have densities, yet squares along the diagonal, of area 16h, keep all mass as h falls",
)
def a_pair_without_density(generator: torch.Generator) -> Evidence:
    normal, worst = Density(lambda x: normal_density_1d(x), LINE), 0.0
    for steps in (8, 32, 128):  # squares a side
        h = 16 / steps
        sides = [(-8 + h * index, -8 + h * (index + 1)) for index in range(steps)]
        cells = torch.stack([normal.probability(side) for side in sides])
        space = ProbabilitySpace(range(steps), cells / cells.sum())  # which cell X falls into
        x, y = RandomVariable(space, lambda cell: cell), RandomVariable(space, lambda cell: cell)
        joint = joint_table(x, y)
        exact = families.Normal(0.0, 1.0).cdf(torch.linspace(-8, 8, steps + 1, dtype=torch.float64)).diff()
        worst = max(worst, gap(joint.sum(dim=0), exact), gap(joint.sum(dim=1), exact))
        area = steps * h**2  # tends to zero with h, and under a density so would the mass
        on_diagonal, independent = joint.diagonal().sum(), (joint.sum(dim=1) * joint.sum(dim=0)).sum()
        worst = max(
            worst, 1 - float(on_diagonal), float(independent) - area / (2 * math.pi)
        )  # a standard normal pair: density <= 1 / 2pi
        # The covariance matrix of (X, X) has determinant zero.
        moments = variance(x) * variance(y) - covariance(space, x, y) ** 2
        worst = max(worst, gap(moments / variance(x) ** 2, torch.zeros((), dtype=torch.float64)))
    return Evidence(
        "mass off the diagonal, and distance of a marginal from N(0, 1)", worst, QUADRATURE, "the quadrature's error", 3
    )


def fixed_density(joint: Density, y: float, uniform: Density) -> Callable[..., Tensor]:
    return condition_density(joint, {1: y}, fallback=uniform)


def zero_density(joint: Density, y: float, uniform: Density) -> Callable[..., Tensor]:
    at_y = joint.marginal(1)(y)
    return condition_density(joint, {1: y}) if float(at_y) > 0 else lambda x: torch.zeros_like(x)


@claim(
    "DE36",
    "a conditional density integrates to one for every y, also where p_Y(y) = 0",
    right=fixed_density,
    printed=zero_density,
)
def every_slice_is_a_density(
    form: Callable[[Density, float, Density], Callable[..., Tensor]], generator: torch.Generator
) -> Evidence:
    uniform_density = Density(lambda x: torch.ones_like(x), (0, 1))
    # Y in [0, 1] or [2, 3]: between them p_Y is zero.
    joint = Density(lambda x, y: torch.where((y < 1) | (y > 2), (x + 1) / 3, 0), (0, 1), (0, 1, 2, 3))
    x = (torch.arange(1000, dtype=torch.float64) + 0.5) / 1000
    given_y = [uniform(0, 3, generator) for _ in range(6)] + [1.5]
    worst = max(abs(float(form(joint, y, uniform_density)(x).mean()) - 1) for y in given_y)
    found = f"mass {1 - worst:g} at y = 1.5, where p_Y(y) = 0"
    source = "the midpoint rule is exact for lines"
    return Evidence("largest |integral of a slice - 1|", worst, 1e-9, source, len(given_y), counterexample=found)


def added(first: int, second: int) -> int:
    return first + second


def multiplied(first: int, second: int) -> int:
    return first * second


@claim(
    "DE37",
    "a pair of vectors in dimensions d_X and d_Y is a point in dimension d_X + d_Y",
    right=added,
    printed=multiplied,
)
def dimension_of_a_pair(form: Callable[[int, int], int], generator: torch.Generator) -> Evidence:
    space, wrong, example = ProbabilitySpace.uniform(range(5)), 0, ""
    box = {
        1: Density(lambda x: 2 * x, (0, 1), num_nodes=40),
        2: Density(lambda x, y: x + y, (0, 1), (0, 1), num_nodes=40),
    }
    sizes = [(2, 3), (3, 2), (1, 4), (3, 3)]
    for first, second in sizes:
        table = torch.randn(5, first + second, generator=generator).tolist()
        x = RandomVariable(space, lambda w, table=table, first=first: tuple(table[w][:first]))
        y = RandomVariable(space, lambda w, table=table, first=first: tuple(table[w][first:]))
        coordinates = sum(len(part) for part in joint_variable(x, y)(0))
        if coordinates != form(first, second):
            wrong, example = wrong + 1, f"{form(first, second)} against {coordinates} for ({first}, {second})"
    for first, second in ((1, 1), (1, 2), (2, 1)):
        wrong += product_density(box[first], box[second]).dim != form(first, second)
    return Evidence(
        "pairs of another dimension", wrong, 0, "exact: a count", len(sizes) + 3, "==", counterexample=example
    )
