"""Universal approximation by construction: interpolation with a modulus of continuity, exponentials of linear forms,
many outputs. Which spans are dense is in dense_spans.py."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quoin.expressivity import (
    Lipschitz,
    approximate_1d,
    approximate_nd,
    exponential_sum_definition,
    interpolant,
    modulus_of_continuity,
    shallow_definition,
    stack_networks,
)
from quoin.layers import Affine, relu
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.piecewise import normal
from quoin.notes.claims.rounding import gap, max, min, roundings

UNIT = torch.linspace(0, 1, 4001, dtype=torch.float64)


def random_waves(generator: torch.Generator) -> tuple[Callable[[Tensor], Tensor], float]:
    """A sum of five sines on [0, 1] and a Lipschitz constant of it, sum |a_i| w_i."""
    heights, frequencies, phases = normal((5,), generator), 12 * normal((5,), generator).abs(), normal((5,), generator)
    return lambda x: (frequencies * x[:, None] + phases).sin() @ heights, float(heights.abs() @ frequencies)


# ---- one variable -----------------------------------------------------------------------------------------------


@claim(
    "D1.1-8",
    "interpolated at l/N, g is missed by at most what it can change over 1/N (not twice that)",
    not_shown="all continuous g: random sums of five sines, on a grid of 4001 points",
)
def interpolation_within_the_modulus(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for _ in range(20):
        g, constant = random_waves(generator)
        for pieces in (1, 3, 10, 40):
            knots = torch.linspace(0, 1, pieces + 1, dtype=torch.float64)
            missed = float((g(UNIT) - interpolant(knots, g(knots))(UNIT)).abs().max())
            # Where N divides 4000, the grid holds every pair that the proof compares: a knot and a point next to it.
            omega = (
                float(modulus_of_continuity(g, (0.0, 1.0), [1 / pieces], num_points=4001))
                if 4000 % pieces == 0
                else constant / pieces
            )
            worst, cases = max(worst, missed / omega), cases + 1
    return Evidence("largest |g - L| / omega(1/N)", worst, 1 + roundings(64), "exact, and 64 roundings", cases)


@claim(
    "D1.1-8",
    "the network built for eps has a certified error bound: nowhere farther than eps from g, under any of three "
    "regularity assumptions",
    not_shown="all continuous g: random waves and √x, measured at 3000 random points",
)
def certificates_hold(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    x = torch.rand(3000, generator=generator, dtype=torch.float64)
    for _ in range(6):
        g, constant = random_waves(generator)
        for eps in (0.5, 0.1):
            for built in (
                approximate_1d(g, eps, (0.0, 1.0), lipschitz=constant),
                approximate_1d(g, eps, (0.0, 1.0), modulus=lambda distance, k=constant: k * distance),
            ):
                missed = float((built.network(x[:, None]).detach()[:, 0] - g(x)).abs().max())
                worst, cases = (
                    max(worst, missed / built.error, built.error / eps if built.certified else math.inf),
                    cases + 1,
                )
    root = approximate_1d(torch.sqrt, 0.05, (0.0, 1.0), modulus=math.sqrt)
    worst = max(worst, float((root.network(x[:, None]).detach()[:, 0] - x.sqrt()).abs().max()) / root.error)
    return Evidence("largest error / certificate, certificate / eps", worst, 1.0, "exact: the certificate", cases + 1)


@claim(
    "D1.1-8",
    "for Lipschitz g the bound K h / 2 cannot be improved: the zigzag of slope K with its tips between the points "
    "meets it",
)
def lipschitz_bound_is_sharp(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for pieces in (1, 2, 5, 16):
        constant, width = float(normal((), generator).abs()) + 0.1, 1 / pieces
        knots = torch.linspace(0, 1, pieces + 1, dtype=torch.float64)

        def zigzag(x: Tensor, constant: float = constant, width: float = width) -> Tensor:
            return constant * (width / 2 - (x.remainder(width) - width / 2).abs())

        middles = knots[:-1] + width / 2
        missed = float((zigzag(middles) - interpolant(knots, zigzag(knots))(middles)).abs().max())
        worst = max(worst, abs(missed / Lipschitz(constant).error(width) - 1))
    return Evidence("largest | |g - L| / bound - 1 |", worst, roundings(256), "256 float64 roundings", 4)


def to_the_right(x: Float[Tensor, "n"], left: Float[Tensor, "n"], right: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    return (x - right).abs()


def to_the_left(x: Float[Tensor, "n"], left: Float[Tensor, "n"], right: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    return (x - left).abs()


@claim(
    "DE6",
    "the third term |L(t_l) - L(x)| is the slope times |x - t_l|, not |x - t_{l-1}|",
    right=to_the_right,
    printed=to_the_left,
)
def third_term(form: Callable[[Tensor, Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for pieces in (1, 4, 10, 25):
        g, _ = random_waves(generator)
        knots = torch.linspace(0, 1, pieces + 1, dtype=torch.float64)
        L, piece = interpolant(knots, g(knots)), (UNIT * pieces).floor().clamp(max=pieces - 1).long()
        left, right = knots[piece], knots[piece + 1]
        slope = (g(right) - g(left)).abs() * pieces
        worst = max(worst, gap(slope * form(UNIT, left, right), (L(right) - L(UNIT)).abs()))
    return Evidence(
        "largest |slope · distance - |L(t_l) - L(x)||", worst, roundings(1024), "1024 float64 roundings", 4 * len(UNIT)
    )


def at_most(total: Float[Tensor, "n"], missed: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    return (missed - total).clamp(min=0)


def equal(total: Float[Tensor, "n"], missed: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    return (missed - total).abs()


@claim(
    "DE6",
    "three terms bound |g - L| from above, and equal it where no two have opposite signs",
    right=at_most,
    printed=equal,
)
def three_terms(form: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for pieces in (1, 4, 10, 25):
        g, _ = random_waves(generator)
        knots = torch.linspace(0, 1, pieces + 1, dtype=torch.float64)
        L, end = interpolant(knots, g(knots)), knots[(UNIT * pieces).floor().clamp(max=pieces - 1).long() + 1]
        terms = torch.stack([g(UNIT) - g(end), g(end) - L(end), L(end) - L(UNIT)])
        total, missed = terms.abs().sum(dim=0), (g(UNIT) - L(UNIT)).abs()
        worst = max(worst, float(form(total, missed).max()))
        tight = (terms >= 0).all(dim=0) | (terms <= 0).all(dim=0)  # nothing cancels: no smaller bound would do
        worst = max(worst, gap(total[tight], missed[tight]))
    return Evidence("largest violation", worst, roundings(1024), "1024 float64 roundings", 4 * len(UNIT))


@claim(
    "D1.1-9",
    "a continuous function on a closed interval is uniformly continuous, √x with omega = √delta; sin(1/x) on (0, "
    "1] is not",
    not_shown="the theorem of Heine for every continuous function: one that has a modulus and one that has none",
)
def uniform_continuity(generator: torch.Generator) -> Evidence:
    distances = [4.0**-power for power in range(1, 6)]
    found = modulus_of_continuity(torch.sqrt, (0.0, 1.0), distances)
    worst = gap(found, torch.tensor(distances, dtype=torch.float64).sqrt())
    # Between 1/(k + 1/2)π and its neighbour sin(1/x) goes from -1 to 1, and they come as near as one likes.
    for power in (2, 3, 4):
        start, ends = 10.0**-power, [1 / ((round(10**power / math.pi) + half) * math.pi) for half in (-0.5, 0.5)]
        swing = modulus_of_continuity(
            lambda x: (1 / x).sin(), (0.5 * start, 2 * start), [ends[0] - ends[1]], num_points=2**16 + 1
        )
        worst = max(worst, 0.0 if float(swing) > 1.99 and ends[0] - ends[1] < 4 * start**2 else math.inf)
    return Evidence(
        "largest |omega(delta) - √delta|; sin(1/x) swings by 2", worst, roundings(8), "8 float64 roundings", 8
    )


# ---- which activations ------------------------------------------------------------------------------------------


@claim(
    "D1.1-7",
    "with sigma a polynomial of degree N every shallow network is one of degree <= N: differences of order N + 1 "
    "vanish",
    not_shown="more than one variable, and degrees above 5",
)
def polynomial_activation_gives_polynomials(generator: torch.Generator) -> Evidence:
    worst, least = 0.0, math.inf
    x = torch.arange(-4, 5, dtype=torch.float64)[:, None]
    for degree in range(1, 6):
        powers = normal((degree + 1,), generator)
        hidden = Affine(normal((20, 1), generator), normal((20,), generator))
        last = Affine(normal((1, 20), generator), normal((1,), generator))

        def sigma(z: Tensor, powers: Tensor = powers) -> Tensor:
            return (z[..., None] ** torch.arange(len(powers))) @ powers

        values = shallow_definition(x, hidden, last, sigma)[:, 0]
        size = float(values.abs().max()) * 2 ** (degree + 1)  # the sum of the binomial coefficients
        worst = max(worst, float(values.diff(n=degree + 1).abs().max()) / size)
        least = min(least, float(shallow_definition(x, hidden, last, relu)[:, 0].diff(n=degree + 1).abs().max()))
    # z = 4a + b reaches 20 or so, and 20 terms z^5 that are up to 1e3 times their sum.
    source = "rounding of 20 cancelling terms"
    return Evidence("largest difference of order N + 1", worst if least > 1e-3 else math.inf, 1e-11, source, 5)


# ---- many variables ---------------------------------------------------------------------------------------------


@claim(
    "D1.1-10",
    "in two variables: exponentials within eps, their ReLU networks within eps more, so the network is within 2 "
    "eps of g",
    not_shown="that every continuous g in d variables is reached: three smooth functions of two, at eps = 0.15",
)
def exponentials_of_linear_forms(generator: torch.Generator) -> Evidence:
    worst, eps = 0.0, 0.15
    for _ in range(3):
        projection = 2 * torch.rand(2, 2, generator=generator, dtype=torch.float64) - 1
        shift, scale = normal((2,), generator), float(torch.rand((), generator=generator)) + 0.5

        def g(x: Tensor, projection: Tensor = projection, shift: Tensor = shift, scale: float = scale) -> Tensor:
            return scale * torch.tanh((x - shift) @ projection[0]) * torch.cos((x - shift) @ projection[1])

        built = approximate_nd(
            g, 2 * eps, [(float(shift[0]) - 1, float(shift[0]) + 1), (float(shift[1]) - 1, float(shift[1]) + 1)]
        )
        x = shift + 2 * torch.rand(2000, 2, generator=generator, dtype=torch.float64) - 1
        replaced = float((built.exponentials(x) - built.network(x).detach()[:, 0]).abs().max())
        fitted = float((built.exponentials(x) - g(x)).abs().max())
        total = float((built.network(x).detach()[:, 0] - g(x)).abs().max())
        worst = max(worst, replaced / eps, fitted / eps, total / (2 * eps), replaced / built.replacement_error)
    return Evidence(
        "largest of both errors / eps, their sum / 2 eps", worst, 1.0, "the construction, at 2000 fresh points", 3
    )


@claim(
    "D1.1-10",
    "products of exponential sums are exponential sums, and the constant 1 is one: they form an algebra",
    not_shown="that they separate points of every compact set (see DE8)",
)
def exponentials_form_an_algebra(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(20):
        x = normal((50, 3), generator)
        (nu, gamma), (mu, delta) = [(normal((4, 3), generator), normal((4,), generator)) for _ in range(2)]
        product = exponential_sum_definition(x, nu, gamma) * exponential_sum_definition(x, mu, delta)
        sums = (nu[:, None] + mu).reshape(16, 3)
        together = exponential_sum_definition(x, sums, (gamma[:, None] * delta).reshape(16))
        size = exponential_sum_definition(x, sums, (gamma[:, None] * delta).abs().reshape(16))  # without cancellation
        one = exponential_sum_definition(x, torch.zeros(1, 3, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
        worst = max(worst, float(((product - together).abs() / size).max()), gap(one, torch.ones(50)))
    return Evidence("largest |product - sum| / size", worst, roundings(128), "128 roundings, exponents up to 30", 20)


def different(x: Float[Tensor, "n"]) -> Bool[Tensor, "n n"]:
    return ~torch.eye(len(x), dtype=torch.bool)


def all_pairs(x: Float[Tensor, "n"]) -> Bool[Tensor, "n n"]:
    return torch.ones(len(x), len(x), dtype=torch.bool)


@claim(
    "DE8",
    "exponentials separate any two different points; nothing separates a point from itself",
    right=different,
    printed=all_pairs,
)
def separating_points(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    x = torch.cat(
        [torch.tensor([0.2, 0.3], dtype=torch.float64), torch.rand(40, generator=generator, dtype=torch.float64)]
    )
    one = torch.ones(1, dtype=torch.float64)
    values = torch.stack([exponential_sum_definition(x[:, None], nu * one[:, None], one) for nu in range(-6, 7)])
    apart = (values[:, :, None] != values[:, None, :]).any(dim=0)
    wrong = int((form(x) & ~apart).sum())
    return Evidence("pairs that 13 exponentials do not separate", wrong, 0, "exact: counts", int(form(x).sum()), "==")


@claim(
    "D1.1-17",
    "several outputs: networks stacked give each its own value, and the error in the max norm is the largest of theirs",
)
def stacked_networks(generator: torch.Generator) -> Evidence:
    worst = 0.0
    x = torch.rand(500, 1, generator=generator, dtype=torch.float64)
    for _ in range(10):
        waves = [random_waves(generator) for _ in range(3)]
        built = [approximate_1d(g, 0.3, (0.0, 1.0), lipschitz=constant) for g, constant in waves]
        network = stack_networks([each.network for each in built])
        outputs = network(x).detach()
        apart = torch.cat([each.network(x).detach() for each in built], dim=1)
        missed = (outputs - torch.stack([g(x[:, 0]) for g, _ in waves], dim=1)).abs().amax()
        units = network[0].out_features == sum(each.num_units for each in built)  # type: ignore[operator]
        kept = units and float(missed) <= max(each.error for each in built)
        worst = max(worst, gap(outputs, apart) if kept else math.inf)
    return Evidence(
        "largest |stacked - single|",
        worst,
        roundings(4096),
        "4096 roundings: sums of some hundred terms of size 100",
        10,
    )
