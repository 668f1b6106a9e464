"""Convex sets and functions: segments, sublevel sets, local minima, second derivatives.

Jensen's inequality is in jensen.py, convergence rates in convergence.py.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.optim import (
    GradientDescent,
    chord_gap,
    convex_combination,
    descend,
    hessian_test,
    is_convex,
    is_convex_set,
    quadratic_constants,
    second_difference,
    sublevel_set,
)
from quoin.tensor import logsumexp, norm

Contains = Callable[[Tensor], bool]
FEW = "64 float64 roundings"
MORE = "4096 float64 roundings"
COUNT = "exact: a count"
ZERO = torch.zeros((), dtype=torch.float64)


def with_eigenvalues(values: Float[Tensor, "d"], generator: torch.Generator) -> Float[Tensor, "d d"]:
    """A symmetric matrix with these eigenvalues and random eigenvectors."""
    vectors = torch.linalg.qr(normal(len(values), len(values), generator=generator)).Q
    matrix = vectors * values @ vectors.mT
    return (matrix + matrix.mT) / 2


def convex_functions(dim: int, generator: torch.Generator) -> list[Callable[[Tensor], Tensor]]:
    """Smooth, kinked and flat ones, on the whole space."""
    rows, shift = normal(4, dim, generator=generator), normal(4, generator=generator)
    flat = with_eigenvalues(torch.arange(dim).double(), generator)
    return [
        lambda x: x @ flat @ x,
        lambda x: logsumexp(rows @ x + shift),
        lambda x: norm(x, 1),
        lambda x: (rows @ x + shift).max(),
        lambda x: x.cosh().sum(),
    ]


# ---- sets -------------------------------------------------------------------------------------------------------


def inwards(points: Float[Tensor, "n dim"]) -> Float[Tensor, "2*n dim"]:
    """The points, and a copy of them scaled so near to 0 that some lie in every set that holds 0 well inside."""
    return torch.cat([points, points / 50])


def ball(dim: int, generator: torch.Generator) -> Contains:
    """Around a point not too far from 0, which it contains."""
    center = 0.3 * normal(dim, generator=generator)
    return lambda x: bool((x - center).norm() <= center.norm() + 1)


def polytope(dim: int, generator: torch.Generator) -> Contains:
    """{x : Ax <= b} with 0 inside."""
    rows = normal(dim + 2, dim, generator=generator)
    return lambda x: bool((rows @ x <= 1).all())


def subspace(basis: Float[Tensor, "dim k"]) -> Contains:
    """The span of orthonormal columns."""
    return lambda x: float((x - basis @ (basis.mT @ x)).norm()) < 1e-12


def intersection(*sets: Contains) -> Contains:
    return lambda x: all(each(x) for each in sets)


def two_copies(one: Contains, apart: float) -> Contains:
    return lambda x: one(x) or one(x - apart)


@claim(
    "Z12.3",
    "a set is convex if it holds the segment between any two of its points: subspaces do, a sphere and a ring do not",
)
def segments_stay_inside(generator: torch.Generator) -> Evidence:
    wrong, cases = 0, 10
    for _ in range(cases):
        dim = randint(2, 5, generator)
        basis = torch.linalg.qr(normal(dim, randint(1, dim - 1, generator), generator=generator)).Q
        within = normal(30, basis.shape[1], generator=generator) @ basis.mT
        whole = is_convex_set(subspace(basis), within, generator=generator, num_cases=200)
        on_sphere = within / within.norm(dim=1, keepdim=True)
        sphere = is_convex_set(lambda x: abs(float(x.norm()) - 1) < 1e-12, on_sphere, generator=generator)
        ring = is_convex_set(lambda x: 0.9 <= float(x.norm()) <= 1.1, on_sphere, generator=generator)
        wrong += (not whole) + bool(sphere) + bool(ring)
    return Evidence("sets classified wrongly", wrong, 0, COUNT, 3 * cases, "==")


def any_weight_up_to_one(contains: Contains, points: Float[Tensor, "n dim"], generator: torch.Generator) -> bool:
    return bool(is_convex_set(contains, points, generator=generator, num_cases=200))


def any_real_weight(contains: Contains, points: Float[Tensor, "n dim"], generator: torch.Generator) -> bool:
    """The definition with no range for λ: what it describes are the affine sets."""
    inside = [x for x in points if contains(x)]
    weights = 3 * normal(len(inside) - 1, generator=generator)
    return all(contains(convex_combination(a, b, float(weight))) for a, b, weight in zip(inside, inside[1:], weights))


@claim(
    ("ZE27", "Z12.2"),
    "intervals, balls and polytopes are convex, which asks for λa + (1-λ)b with λ in [0,1] only: X = [0,1], a = 1, "
    "b = 0, λ = 2 gives 2",
    right=any_weight_up_to_one,
    printed=any_real_weight,
)
def weights_are_between_zero_and_one(
    form: Callable[[Contains, Tensor, torch.Generator], bool], generator: torch.Generator
) -> Evidence:
    wrong, cases = 0, 10
    for _ in range(cases):
        dim = randint(1, 4, generator)
        for contains in (lambda x: bool(((x >= 0) & (x <= 1)).all()), ball(dim, generator), polytope(dim, generator)):
            wrong += not form(
                contains, inwards(torch.rand(50, dim, generator=generator, dtype=torch.float64)), generator
            )
    outside = float(convex_combination(torch.tensor(1.0), torch.tensor(0.0), 2.0))
    message = f"[0, 1] holds 1 and 0, and λ = 2 gives {outside:g}"
    return Evidence("convex sets called not convex", wrong, 0, COUNT, 3 * cases, "==", counterexample=message)


@claim(
    "Z12.4",
    "X ∩ Y is convex if X and Y are; X ∪ Y need not be: [0,1] ∪ [2,3] lacks the middle of 1 and 2",
    not_shown="all convex sets: those tried",
)
def intersections_are_convex(generator: torch.Generator) -> Evidence:
    wrong, cases = 0, 10
    for _ in range(cases):
        dim = randint(2, 4, generator)
        round_one, points = ball(dim, generator), inwards(0.5 * normal(50, dim, generator=generator))
        common = intersection(round_one, polytope(dim, generator), sublevel_set(lambda x: norm(x, 1), 1.5))
        wrong += not is_convex_set(common, points, generator=generator, num_cases=200)
        wrong += bool(is_convex_set(two_copies(round_one, 12.0), torch.cat([points, points + 12]), generator=generator))
    line = torch.tensor([0.0, 1.0, 2.0, 3.0], dtype=torch.float64)
    found = is_convex_set(lambda x: 0 <= float(x) <= 1 or 2 <= float(x) <= 3, line, generator=generator).counterexample
    wrong += found is None or not 1 < float(convex_combination(*found[:3])) < 2
    return Evidence("sets classified wrongly", wrong, 0, COUNT, 2 * cases + 1, "==")


# ---- functions --------------------------------------------------------------------------------------------------


@claim(
    "Z12.5",
    "½x² and e^{x/2} lie below their chords, that of ½x² by λ(1-λ)(a-b)²/2 at λ; cos(πx) and log x cross theirs",
)
def chords_lie_above(generator: torch.Generator) -> Evidence:
    line = torch.linspace(-2, 2, 41, dtype=torch.float64)
    wrong = not is_convex(lambda x: (x / 2).exp(), line, generator=generator)
    wrong += bool(is_convex(lambda x: (math.pi * x).cos(), line, generator=generator))
    wrong += bool(is_convex(torch.log, line + 2.1, generator=generator))
    worst, cases = math.inf if wrong else 0.0, 200
    for a, b in normal(cases, 2, generator=generator):
        weight = float(torch.rand((), generator=generator))
        found = chord_gap(lambda x: x**2 / 2, a, b, weight)
        worst = max(worst, gap(found, weight * (1 - weight) * (a - b) ** 2 / 2))
    return Evidence("largest |gap - λ(1-λ)(a-b)²/2|, or a wrong verdict", worst, roundings(64), FEW, cases + 3)


# ---- minima and below sets --------------------------------------------------------------------------------------


def quadratic(Q: Float[Tensor, "d d"], center: Float[Tensor, "d"]) -> Callable[[Tensor], Tensor]:
    return lambda x: (x - center) @ Q @ (x - center) / 2


@claim(
    "Z12.8",
    "a local minimum of a convex function is global: descents from anywhere end at one value, where x⁴/4 - x²/2 + "
    "x/5 has two",
    not_shown="all convex functions: those tried",
)
def descents_agree(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 5
    for _ in range(cases):
        # One flat direction, so a line of minimisers; along the others a step leaves at most 0.4 of the distance.
        Q = with_eigenvalues(torch.tensor([0.0, 0.6, 0.8, 1.0], dtype=torch.float64), generator)
        bowl, rule = (
            quadratic(Q, normal(4, generator=generator)),
            GradientDescent(1 / quadratic_constants(Q).smoothness),
        )
        for start in 3 * normal(4, 4, generator=generator):
            worst = max(worst, gap(descend(bowl, start, rule, 25).values[-1], ZERO))
    starts = torch.tensor([-1.2, 1.2], dtype=torch.float64)
    tilted = [descend(lambda x: x**4 / 4 - x**2 / 2 + x / 5, start, GradientDescent(0.3), 60) for start in starts]
    worst = worst if all(float(way.gradient_norms[-1]) < 1e-6 for way in tilted) else math.inf  # both rest
    worst = worst if float(tilted[1].values[-1] - tilted[0].values[-1]) > 0.1 else math.inf
    return Evidence(
        "largest value at rest above the least, 0", worst, roundings(2048), "2048 float64 roundings", 4 * cases + 2
    )


def short_of_one(generator: torch.Generator) -> list[float]:
    return [0.0, *torch.rand(8, generator=generator, dtype=torch.float64).tolist(), 1 - 1e-6]


def up_to_one(generator: torch.Generator) -> list[float]:
    return [*short_of_one(generator), 1.0]


@claim(
    ("ZE28", "Z12.8"),
    "if f(x₀) < f(x*), f(λx* + (1-λ)x₀) < f(x*) for λ in [0,1), however near 1: x* is no local minimum; at λ = 1 "
    "both sides are equal",
    right=short_of_one,
    printed=up_to_one,
)
def lower_at_once(form: Callable[[torch.Generator], list[float]], generator: torch.Generator) -> Evidence:
    rises, cases = 0, 0
    one = torch.ones((), dtype=torch.float64)
    pairs: list[tuple[Callable[[Tensor], Tensor], Tensor, Tensor]] = [(torch.square, one, 0 * one)]
    for _ in range(20):
        dim = randint(1, 4, generator)
        for f in convex_functions(dim, generator):
            a, b = normal(2, dim, generator=generator)
            # by less, and f(x*) may have no digits left for the decrease at 1 - 1e-6
            if abs(float(f(a) - f(b))) > 1e-3:
                pairs.append((f, a, b) if f(a) > f(b) else (f, b, a))
    for f, high, low in pairs:
        for weight in form(generator):
            rises += not float(f(convex_combination(high, low, weight))) < float(f(high))
            cases += 1
    message = "f = x², x* = 1, x₀ = 0, λ = 1: f(x*) is not below itself"
    return Evidence(
        "weights λ at which f is not strictly below f(x*)", rises, 0, COUNT, cases, "==", counterexample=message
    )


@claim(
    "Z12.9",
    "{x : f(x) ≤ b} is convex for every b if f is convex; not only then: those of log are intervals, and log is "
    "not convex",
    not_shown="all convex functions: those tried",
)
def below_sets_are_convex(generator: torch.Generator) -> Evidence:
    wrong, cases = 0, 0
    for _ in range(4):
        dim = randint(1, 3, generator)
        points = normal(60, dim, generator=generator)
        for f in convex_functions(dim, generator):
            level = float(max(f(points[0]), f(points[1]))) + 1e-9  # two points at least lie below it
            wrong += not is_convex_set(sublevel_set(f, level), inwards(points), generator=generator, num_cases=200)
            cases += 1
    positive = normal(60, generator=generator).exp()
    wrong += not all(
        is_convex_set(sublevel_set(torch.log, level), positive, generator=generator) for level in (0.0, 0.5, 1.0)
    )
    wrong += bool(is_convex(torch.log, positive, generator=generator))
    wrong += bool(
        is_convex_set(sublevel_set(torch.cos, 0.0), 9 * positive, generator=generator)
    )  # intervals with holes between
    return Evidence("sets classified wrongly", wrong, 0, COUNT, cases + 5, "==")


# ---- second derivatives -----------------------------------------------------------------------------------------


@claim(
    "Z12.10",
    "½xᵀQx is convex iff Q ⪰ 0: the Hessian test reads the least eigenvalue, and segments refute where it is negative",
)
def quadratics_by_eigenvalue(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 12
    for case in range(cases):
        dim = randint(2, 4, generator)
        values = torch.rand(dim, generator=generator, dtype=torch.float64)
        values[0] = (-1.0, 0.0, 0.5)[case % 3]
        Q = with_eigenvalues(values, generator)
        f, points = quadratic(Q, torch.zeros(dim, dtype=torch.float64)), normal(3, dim, generator=generator)
        found, searched = (
            hessian_test(f, points),
            is_convex(f, normal(40, dim, generator=generator), generator=generator, tol=1e-10),
        )
        worst = max(worst, gap(found.least, values.min().expand(3)), gap(found.largest, values.max().expand(3)))
        worst = worst if bool(found) == bool(searched) == bool(values[0] >= 0) else math.inf
        direction = normal(dim, generator=generator)
        differences = second_difference(f, points[0], direction, 0.5)  # of a quadratic, at any step
        worst = max(worst, gap(differences, direction @ Q @ direction))
    return Evidence("largest |eigenvalue, difference - exact|, or a wrong verdict", worst, roundings(4096), MORE, cases)


def curves_up(f: Callable[[Tensor], Tensor], points: Float[Tensor, "n"], generator: torch.Generator) -> bool:
    return bool(hessian_test(f, points))


def has_convex_below_sets(
    f: Callable[[Tensor], Tensor], points: Float[Tensor, "n"], generator: torch.Generator
) -> bool:
    levels = f(points).sort().values[2::4].tolist()
    return all(is_convex_set(sublevel_set(f, level), points, generator=generator) for level in levels)


@claim(
    ("ZE29", "Z12.10"),
    "f ∈ C² is convex iff f'' ≥ 0, of seven functions on (0, 4]; convex below sets are not enough: log has them",
    right=curves_up,
    printed=has_convex_below_sets,
)
def second_derivative_decides(
    form: Callable[[Callable[[Tensor], Tensor], Tensor, torch.Generator], bool], generator: torch.Generator
) -> Evidence:
    points = torch.linspace(0.05, 4, 24, dtype=torch.float64)
    functions = {
        "x²": torch.square,
        "e^x": torch.exp,
        "x log x": lambda x: x * x.log(),
        "-log x": lambda x: -x.log(),
        "log x": torch.log,
        "-x²": lambda x: -(x**2),
        "cos(3x)": lambda x: (3 * x).cos(),
    }
    astray = [
        name
        for name, f in functions.items()
        if form(f, points, generator) != bool(is_convex(f, points, generator=generator))
    ]
    message = f"taken for convex though a chord lies below, or the reverse: {', '.join(astray) or 'none'}"
    return Evidence(
        "functions on which the test and the chords disagree", len(astray), 0, COUNT, len(functions), "==", message
    )
