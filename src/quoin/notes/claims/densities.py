"""Densities: marginals, independence as a product, a pair without one, and what conditioning is where the density is
zero."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch import distributions as families

from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import uniform
from quoin.notes.claims.rounding import distance, gap, max
from quoin.prob import (
    Density,
    MultivariateNormal,
    ProbabilitySpace,
    RandomVariable,
    condition_density,
    independence_gap_of_density,
    joint_table,
    joint_variable,
    normal_density_1d,
    product_density,
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
    not_shown="all densities: normal pairs and a polynomial",
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


def rippled(theta: float, a: int, b: int, edges: tuple[float, ...]) -> Density:
    """1 + theta cos(2πax) cos(2πby) on the unit square, with uniform marginals."""

    def density(x: Tensor, y: Tensor) -> Tensor:
        return 1 + theta * torch.cos(2 * math.pi * a * x) * torch.cos(2 * math.pi * b * y)

    return Density(density, edges, edges)


@claim(
    "D5-7",
    "a pair with a density is independent exactly if it is p_X p_Y, and then boxes multiply; 1 + θ(1-2x)(1-2y) is "
    "|θ|/8 away, 1 + θ cos 2πax cos 2πby 2|θ|/π², wherever the nodes lie",
    not_shown="all densities: three families that depend and one product",
)
def independence_is_a_product_of_densities(generator: torch.Generator) -> Evidence:
    exact, off_breakpoints = 0.0, 0.0
    for _ in range(2):
        theta = uniform(0.3, 1, generator) * (1 if uniform(-1, 1, generator) > 0 else -1)
        exact = max(
            exact, gap(independence_gap_of_density(tilted(theta), 0), torch.tensor(abs(theta) / 8, dtype=torch.float64))
        )
        # P[X < 1/2, Y < 1/2] - 1/4 is theta / 16 exactly: dependence seen in a box.
        half = tilted(theta).probability((0, 0.5), (0, 0.5)) - 0.25
        exact = max(exact, gap(half, torch.tensor(theta / 16, dtype=torch.float64)))
        first = Density.from_distribution(families.Gamma(torch.tensor(2.0, dtype=torch.float64), 1.0))
        second = Density(lambda y: normal_density_1d(y), LINE)
        product = product_density(first, second)
        exact = max(exact, float(independence_gap_of_density(product, 0)))
        a, b = (0.5, uniform(1, 3, generator)), (-1.0, uniform(0, 2, generator))
        exact = max(exact, gap(product.probability(a, b), first.probability(a) * second.probability(b)))
    # |p - p_X p_Y| has kinks where the cosines vanish, and no edge of the quadrature is there. In boxes that halve the
    # square no dependence is seen: it takes the density.
    theta = uniform(0.3, 1, generator)
    waves = rippled(theta, 1, 1, (0, uniform(0.3, 0.45, generator), 1))
    found = independence_gap_of_density(waves, 0)
    off_breakpoints = max(off_breakpoints, abs(float(found) - 2 * theta / math.pi**2))
    exact = max(exact, abs(float(waves.probability((0, 0.5), (0, 0.5))) - 0.25))
    rho = uniform(0.3, 0.7, generator)
    line = torch.linspace(-9, 9, 1201, dtype=torch.float64)
    cells = correlated(rho)(line[:, None], line) - normal_density_1d(line)[:, None] * normal_density_1d(line)
    summed = cells.abs().sum() * (line[1] - line[0]) ** 2 / 2
    off_breakpoints = max(off_breakpoints, gap(independence_gap_of_density(correlated(rho), 0), summed))
    worst = max(exact / QUADRATURE, off_breakpoints / 1e-4)
    source = "the quadrature's error: 1e-9, and 1e-4 where kinks lie between nodes"
    return Evidence("largest distance from what is stated / its bound", worst, 1.0, source, 4)


def on_the_diagonal(y_of_u: Callable[[Tensor], Tensor], steps: int) -> tuple[float, float]:
    """For X = Φ⁻¹(u) and Y = y(u) in cells of side 16 / steps: the mass of the cells on the diagonal, and the largest
    distance of Y's cell probabilities from those of N(0, 1)."""
    edges = torch.linspace(-8, 8, steps + 1, dtype=torch.float64)
    u = (torch.arange(40_000, dtype=torch.float64) + 0.5) / 40_000
    cells = [torch.bucketize(value, edges[1:-1]) for value in (torch.special.ndtri(u), y_of_u(u))]
    space = ProbabilitySpace.uniform(range(len(u)))
    x, y = (RandomVariable(space, each.tolist().__getitem__) for each in cells)
    joint, stated = joint_table(x, y), families.Normal(0.0, 1.0).cdf(edges).diff()
    same = torch.tensor([[i == j for j in y.values] for i in x.values])
    of_y = torch.zeros(steps, dtype=torch.float64).index_add(0, torch.tensor(y.values), joint.sum(dim=0))
    return float(joint[same].sum()), float((of_y - stated).abs().max())


@claim(
    "D5-8",
    "X normal and Y = X: both have densities, yet cells along the diagonal, of area 16h, keep all mass as h falls; for "
    "Y = -X and for Y independent of X they lose it",
    not_shown="h → 0, where the diagonal itself has area 0: cells of side 2 down to 1/8",
)
def a_pair_without_density(generator: torch.Generator) -> Evidence:
    shuffled = torch.randperm(40_000, generator=generator)
    worst = 0.0
    for steps in (8, 32, 128):
        h = 16 / steps
        copy, copy_error = on_the_diagonal(lambda u: -torch.special.ndtri(1 - u), steps)  # Y = X, by another formula
        turned, turned_error = on_the_diagonal(lambda u: -torch.special.ndtri(u), steps)
        apart, apart_error = on_the_diagonal(lambda u: torch.special.ndtri(u[shuffled]), steps)
        # Rounding of X = Y at a cell's border aside, all mass stays; Y = -X meets the diagonal at 0 alone; a density
        # ≤ 1 / 2π leaves area / 2π, and 40,000 independent pairs come within 0.03 of it but once in 10^30 (Hoeffding).
        worst = max(worst, (1 - copy) / 1e-3, turned - 0.8 * h, (apart - 16 * h / (2 * math.pi)) / 0.03)
        worst = max(worst, *(error / 1e-4 for error in (copy_error, turned_error, apart_error)))
    one = torch.ones(2, 2, dtype=torch.float64)
    pair = MultivariateNormal(torch.zeros(2, dtype=torch.float64), one)  # (X, X): singular, with normal marginals
    x = torch.randn(200, generator=generator, dtype=torch.float64)
    worst = max(worst, gap(pair.marginal([1]).log_prob(x[:, None]).exp(), normal_density_1d(x)) / 1e-12)
    off = pair.log_prob(torch.stack([x, x + 0.01], dim=1))  # no density off the diagonal, where almost all of R² is
    worst = max(worst, 0.0 if bool((off == -math.inf).all()) else math.inf)
    return Evidence(
        "largest of what is lost or left / its bound, and of marginals from N(0, 1)", worst, 1.0, "as stated", 10
    )


@claim(
    "D5-10",
    "for densities too: ∫_B P[X in A | Y = y] p_Y(y) dy = P[X in A, Y in B]; changed for one y it gives the same, for "
    "an interval of y not; all equal P_X iff X, Y are independent",
    not_shown="existence on spaces without densities or tables; almost sure uniqueness beyond intervals",
)
def conditional_densities(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 2
    nodes, weights = (torch.from_numpy(each) for each in np.polynomial.legendre.leggauss(8))
    for _ in range(cases):
        theta = uniform(0.3, 1, generator)
        joint = tilted(theta)
        low, high = sorted((uniform(0, 0.4, generator), uniform(0.6, 1, generator)))
        end = uniform(0.2, 0.8, generator)

        def mixed(kernel: Callable[[float], float], joint=joint, low=low, high=high) -> float:
            y = (low + high) / 2 + (high - low) / 2 * nodes
            values = torch.tensor([kernel(each) for each in y.tolist()], dtype=torch.float64)
            return float((values * joint.marginal(1)(y)) @ weights) * (high - low) / 2

        def kernel(y: float, joint=joint, end=end) -> float:
            return float(condition_density(joint, {1: y}).probability((0, end)))

        together = float(joint.probability((0, end), (low, high)))
        worst = max(worst, abs(mixed(kernel) - together))
        worst = max(worst, abs(mixed(lambda y, k=kernel: 0.5 if y == 0.5 else k(y)) - together))  # one y: nothing
        changed = mixed(lambda y, k=kernel, end=end: end)  # P_X for every y: another joint distribution
        slope = theta * end * (1 - end) * ((high - low) - (high**2 - low**2))
        worst = max(worst, abs(together - changed - slope), 0.0 if abs(slope) > 1e-3 else math.inf)
        for y in (uniform(0, 0.4, generator), uniform(0.6, 1, generator)):
            # E|P_X - P_{X|Y=y}| / 2 over y is the independence gap; for one y it is |θ| |1 - 2y| / 4.
            points = (torch.arange(2000, dtype=torch.float64) + 0.5) / 2000
            away = (condition_density(joint, {1: y})(points) - joint.marginal(0)(points)).abs().mean() / 2
            worst = max(worst, abs(float(away) - theta * abs(1 - 2 * y) / 4))
            free = product_density(joint.marginal(0), Density(lambda y: 2 * y, (0, 1)))
            worst = max(worst, gap(condition_density(free, {1: y})(points), joint.marginal(0)(points)))
    return Evidence("largest distance from what is stated", worst, 1e-7, "quadrature of polynomials", 8 * cases)


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
    "a pair of vectors in dimensions d_X and d_Y has dimension d_X + d_Y: 2^(d_X + d_Y) values of bits, densities "
    "that scale as s^-(d_X + d_Y)",
    right=added,
    printed=multiplied,
)
def dimension_of_a_pair(form: Callable[[int, int], int], generator: torch.Generator) -> Evidence:
    worst, example, sizes = 0.0, "", [(2, 3), (3, 2), (1, 4), (3, 3)]
    for first, second in sizes:
        stated = form(first, second)
        bits = list(itertools.product((0, 1), repeat=first + second))
        space = ProbabilitySpace.uniform(bits)  # X and Y: independent bits
        pair = joint_variable(
            RandomVariable(space, lambda w, first=first: w[:first]),
            RandomVariable(space, lambda w, first=first: w[first:]),
        )
        counted = math.log2(len(pair.values))
        normals = [
            MultivariateNormal(torch.zeros(size, dtype=torch.float64), torch.eye(size, dtype=torch.float64))
            for size in (first, second)
        ]
        z, scale = torch.randn(first + second, generator=generator, dtype=torch.float64), uniform(2, 4, generator)
        both = normals[0].join_independent(normals[1])
        wide = both.affine(scale * torch.eye(first + second, dtype=torch.float64))
        scaled = float(both.log_prob(z) - wide.log_prob(scale * z)) / math.log(scale)  # -d for s^-d
        # p(x | y) p(y) is a density on the same space as p(x, y): its exponent is d_X + d_Y again.
        given = wide.condition(range(first, first + second), scale * z[first:]).log_prob(scale * z[:first])
        split = float(
            both.log_prob(z) - given - wide.marginal(range(first, first + second)).log_prob(scale * z[first:])
        )
        for found in (counted, scaled, split / math.log(scale)):
            if distance(found, stated) > worst:
                worst, example = distance(found, stated), f"{stated} against {found:.3g} for ({first}, {second})"
    r, side = uniform(0.1, 0.5, generator), (0, 1)
    box = {1: Density(lambda x: 1 + 0 * x, side), 2: Density(lambda x, y: 1 + 0 * x * y, side, side, num_nodes=20)}
    for first, second in ((1, 1), (1, 2)):  # P of a cube of side r is r^d
        cube = product_density(box[first], box[second]).probability(*[(0, r)] * (first + second))
        worst = max(worst, abs(float(cube.log()) / math.log(r) - form(first, second)))
    return Evidence(
        "largest |dimension measured - stated|",
        worst,
        1e-5,
        "quadrature with 20 nodes",
        3 * len(sizes) + 2,
        counterexample=example,
    )
