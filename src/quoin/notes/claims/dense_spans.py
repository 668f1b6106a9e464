"""What is dense among the continuous functions: shallow networks unless their activation is a polynomial, and the
algebras of Stone-Weierstrass."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from quoin.expressivity import shallow_definition, sup_error_in_span
from quoin.layers import Affine, relu, sigmoid, tanh
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.piecewise import normal
from quoin.notes.claims.random_tensors import uniform
from quoin.notes.claims.rounding import max, min, roundings

Activation = Callable[[Tensor], Tensor]
Sampled = Callable[[int], tuple[Float[Tensor, "n k"], Float[Tensor, "n"]]]
# In one variable and in two: swings of the wave, points a swing of the fit, and units.
SWINGS, A_SWING, UNITS = {1: 24, 2: 4}, {1: 40, 2: 12}, {1: (25, 300, 900), 2: (25, 400)}
RIDGE = 1e-8

# ---- shallow networks -------------------------------------------------------------------------------------------


def wave_on_a_cube(d: int, swings: int, points: int) -> tuple[Float[Tensor, "n {d}"], Float[Tensor, "n"]]:
    """A grid on the unit cube, so many points a side, and the values there of cos(π m u_1), fading with u_2.

    On the cube's edge u_2 = 1 the wave is +1 and -1 in turn at m + 1 points. A polynomial that is less than 1 away from
    it at all of them changes sign m times there, so its degree is at least m: no polynomial of a lower degree comes
    closer than 1 in the sup norm.
    """
    u = torch.cartesian_prod(*[torch.linspace(0, 1, points, dtype=torch.float64)] * d).reshape(-1, d)
    fading = (1 + u[:, 1]) / 2 if d > 1 else torch.ones(len(u), dtype=torch.float64)
    return u, (math.pi * swings * u[:, 0]).cos() * fading


def random_units(activation: Activation, d: int, swings: int, units: int, generator: torch.Generator) -> Sampled:
    """For so many points a side of a random box: the outputs there of random hidden units and a 1, and the wave."""
    low, width = normal((d,), generator), 0.5 + torch.rand(d, generator=generator, dtype=torch.float64)
    direction = normal((units, d), generator)
    direction = direction / direction.norm(dim=1, keepdim=True)
    speed = 4 * swings * torch.rand(units, generator=generator, dtype=torch.float64)
    shift = math.sqrt(d) * (2.2 * torch.rand(units, generator=generator, dtype=torch.float64) - 1.1)
    # In the coordinates 2u - 1 the unit is σ(speed (⟨direction, 2u - 1⟩ - shift)); here it is written for x itself.
    weight = 2 * speed[:, None] * direction / width
    hidden = Affine(weight, -speed * (direction.sum(dim=1) + shift) - weight @ low)
    eye = Affine(torch.eye(units, dtype=torch.float64), torch.zeros(units, dtype=torch.float64))

    def sampled(points: int) -> tuple[Tensor, Tensor]:
        u, wave = wave_on_a_cube(d, swings, points)
        outputs = shallow_definition(low + width * u, hidden, eye, activation)
        return torch.cat([outputs, torch.ones(len(u), 1, dtype=torch.float64)], dim=1), wave

    return sampled


def sup_error_at(sampled: Sampled, points: int) -> float:
    """The largest |wave - network| at the points of the fit itself: what no polynomial of a lower degree can press
    below 1, for the wave is ±1 at some of them."""
    columns, wave = sampled(points)
    return sup_error_in_span(columns / columns.norm(dim=0).clamp(min=1e-300), wave)


def sup_error_between(sampled: Sampled, points: int, finer: int = 3) -> float:
    """The largest |wave - network| on a finer grid than the one of the fit: with hundreds of units a network may be
    right at its own points alone.

    The last layer is that of least squares, with a ridge that holds its weights, and so its slopes, in bounds: also
    those of a unit that is hardly active at any point.
    """
    columns, wave = sampled(points)
    scale = columns.norm(dim=0)
    scale = scale.clamp(min=scale.mean() / 10)
    gram = (columns / scale).T @ (columns / scale) + RIDGE * torch.eye(len(scale), dtype=torch.float64)
    last = torch.cholesky_solve((columns / scale).T @ wave[:, None], torch.linalg.cholesky(gram)) / scale[:, None]
    columns, wave = sampled(finer * (points - 1) + 1)
    return float((columns @ last - wave[:, None]).abs().max())


def failure_of_density(activation: Activation, d: int, generator: torch.Generator) -> float:
    """The last error over ½, where no polynomial of degree under 24 (4 in two variables) is below 2.

    Infinite where the errors do not shrink as units are added.
    """
    swings, points = SWINGS[d], A_SWING[d] * SWINGS[d] + 1
    errors = [sup_error_between(random_units(activation, d, swings, units, generator), points) for units in UNITS[d]]
    shrink = all(new < max(0.75 * old, 0.01) for old, new in pairwise(errors))  # 0.01: what the ridge may leave
    return 2 * errors[-1] if shrink else math.inf


@claim(
    "D1.1-6",
    "with ReLU, tanh, sin, sigmoid, softplus or e^(-x²) the sup error of fits, also between their points, shrinks "
    "below ½ as units are added, for a wave from which every polynomial of degree under 24 stays 1 away; with the "
    "first three in two variables too",
    not_shown="density for every compact K and continuous g: boxes of one and two dimensions and waves alone, on grids "
    "of 120 and 36 points a swing; an activation that is a polynomial of degree 24 or more may pass",
)
def other_activations_follow(generator: torch.Generator) -> Evidence:
    activations = [relu, tanh, torch.sin, sigmoid, softplus, lambda z: torch.exp(-z.square())]
    worst = max(failure_of_density(activation, 1, generator) for activation in activations)
    worst = max(worst, *(failure_of_density(activation, 2, generator) for activation in activations[:3]))
    source = "half of what alternation leaves to polynomials of degree under 24, or 4"
    return Evidence("largest last sup error / ½, the errors shrinking", worst, 1.0, source, 24)


@claim(
    "D1.1-6",
    "with a polynomial activation of degree 2, 3 or 20 no number of units comes closer than 1 to such a wave in the "
    "sup norm",
    not_shown="all polynomials and last layers at once: for each, changes of sign prove it, and it is run on nine fits",
)
def polynomials_are_stuck(generator: torch.Generator) -> Evidence:
    least, cases = math.inf, 0
    for d, swings, degrees, sizes in ((1, 24, (2, 3, 20), (25, 200)), (2, 6, (2, 3, 5), (50,))):
        for degree in degrees:
            powers = torch.cat([normal((degree,), generator), torch.ones(1, dtype=torch.float64)])
            scale = 4 * swings * 2 * math.sqrt(d)  # what the argument of a unit can reach: z^20 stays in range

            def sigma(z: Tensor, powers: Tensor = powers, scale: float = scale) -> Tensor:
                return ((z / scale)[..., None] ** torch.arange(len(powers))) @ powers

            for units in sizes:
                sampled = random_units(sigma, d, swings, units, generator)
                least, cases = min(least, sup_error_at(sampled, {1: 20, 2: 8}[d] * swings + 1)), cases + 1
    return Evidence("least sup error", least, 1 - 1e-6, "exact: alternation; rounding of the fit", cases, ">=")


# ---- Stone-Weierstrass ------------------------------------------------------------------------------------------

# Chebyshev's points hold least squares close to the best in the sup norm; an odd number has 0 among them.
LINE = (math.pi * torch.arange(1025, dtype=torch.float64) / 1024).cos().flip(0)
SIZES = (16, 64, 256)
Span = Callable[[int], Float[Tensor, "n k"]]


def polynomials_in(phi: Float[Tensor, "n"]) -> Span:
    """Up to degree n, the algebra that one function and the constants generate, in a basis that loses no digits."""
    y = (2 * phi - phi.max() - phi.min()) / (phi.max() - phi.min())
    return lambda degree: (y.clamp(-1, 1).acos()[:, None] * torch.arange(degree + 1)).cos()


def slowest_fall(span: Span, target: Float[Tensor, "n"], sizes: Sequence[int]) -> float:
    """The largest ratio of an error to the one before it, as the algebra is exhausted; an error that is rounding has
    fallen."""
    errors = [sup_error_in_span(span(size), target) for size in sizes]
    return max(0.0 if new < 1e-9 else new / old for old, new in pairwise(errors))


@claim(
    "D1.1-11",
    "Stone-Weierstrass: in the algebras of x, of e^x and of x³, on two intervals, and of x and y on a square, the sup "
    "error falls with each fourfold degree",
    not_shown="density in C(K) for every compact space K: five algebras on four sets, up to degree 256",
)
def algebras_are_dense(generator: torch.Generator) -> Evidence:
    worst = 0.0
    phases, heights = normal((4,), generator), normal((4,), generator)
    frequencies = 3 * torch.rand(4, generator=generator, dtype=torch.float64)

    def kinked(x: Tensor) -> Tensor:
        return x.abs() + (frequencies * x[..., None] + phases).sin() @ heights / heights.abs().sum()

    # A kink at 0 is a root |y|^(1/3) of y = x³: its errors fall as n^(-1/3), by 0.63 where n is multiplied by 4.
    for phi, rate in ((LINE, 1 / 3), (LINE.exp(), 1 / 3), (LINE**3, 0.75)):
        worst = max(worst, slowest_fall(polynomials_in(phi), kinked(LINE), SIZES) / rate)
    apart = LINE[LINE.abs() >= 0.25]  # on two intervals the sign is continuous
    worst = max(worst, slowest_fall(polynomials_in(apart), apart.sign(), SIZES[:2]) / (1 / 3))
    side = LINE[::32]
    square = torch.cartesian_prod(side, side)

    def of_two(degree: int) -> Tensor:
        columns = [polynomials_in(square[:, axis])(degree) for axis in (0, 1)]
        both = (columns[0][:, :, None] * columns[1][:, None]).flatten(1)
        total = (torch.arange(degree + 1)[:, None] + torch.arange(degree + 1)).flatten()
        return both[:, total <= degree]

    worst = max(worst, slowest_fall(of_two, (square[:, 0] - square[:, 1]).abs(), (1, 4, 16)) / 0.5)
    return Evidence(
        "largest fall of the error / what is asked (⅓, ¾ of x³, ½ of two variables)",
        worst,
        1.0,
        "errors of Lipschitz functions fall as 1/n, of y^(1/3) as n^(-1/3)",
        9,
    )


@claim(
    "D1.1-11",
    "|x| by polynomials of degree n: never nearer than 0.1036/(n - 1), and by least squares within 4/(π(n + 1))",
)
def rate_of_the_absolute_value(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for degree in (4, 10, 32, 100, 256):  # Bernstein (1914): 1 / (4 (1 + √2) (n - 1)) for even n
        error = sup_error_in_span(polynomials_in(LINE)(degree), LINE.abs())
        best = 1 / (4 * (1 + math.sqrt(2)) * (degree - 1))
        # On 1025 points the cosines of frequency 2048 - k fold onto k: the error stays within twice the truncation's.
        worst = max(worst, best / error, error / (2 * 2 / (math.pi * (degree + 1))))
    return Evidence("largest of bound / error, error / truncation", worst, 1.0, "Bernstein; the Chebyshev series", 5)


@claim(
    "D1.1-11",
    "its hypotheses are needed: an algebra that gives a and b one value stays |g(a) - g(b)|/2 from g, one that "
    "vanishes at a |g(a)|; one separating function mends the first",
)
def hypotheses_are_needed(generator: torch.Generator) -> Evidence:
    least, cases = math.inf, 10
    for _ in range(cases):
        i, j = (torch.randperm(len(LINE) - 2, generator=generator)[:2] + 1).tolist()
        g = (uniform(1, 6, generator) * LINE + uniform(0, 6, generator)).sin() + 0.3 * LINE
        basis = polynomials_in(LINE)(60)
        constant = torch.ones_like(LINE)[:, None]
        joined = torch.cat([constant, ((LINE - LINE[i]) * (LINE - LINE[j]))[:, None] * basis], dim=1)
        lost = float((g[i] - g[j]).abs() / 2)
        least = min(least, sup_error_in_span(joined, g) - lost)
        least = min(least, sup_error_in_span((LINE - LINE[i])[:, None] * basis, g) - float(g[i].abs()))
        mended = sup_error_in_span(torch.cat([joined, LINE[:, None]], dim=1), g)
        least = min(least, 0.0 if mended < 1e-9 else -math.inf)
    even = sup_error_in_span(polynomials_in(LINE.square())(60), LINE)  # cannot tell x from -x
    least = min(least, even - 1)
    return Evidence("least of sup error - what is lost", least, -roundings(2**14), "exact, and rounding", cases, ">=")
