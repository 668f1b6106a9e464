"""Piecewise linear functions of one variable are exactly the networks of one hidden ReLU layer: Lemma 1.3, its proof
and its misprints."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.expressivity import (
    PiecewiseLinear,
    affine_layers,
    clipped_ramp,
    from_relu_network,
    piecewise_linear_definition,
    relu_form_definition,
    shallow_definition,
    to_relu_network,
    to_relu_network_with_identity,
)
from quoin.layers import relu
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, randint, roundings

CASES = 40
ROUNDING = roundings(256)
ROUNDING_SOURCE = "256 float64 roundings, for sums of at most 11 terms of size at most about 60"


def normal(shape: tuple[int, ...], generator: torch.Generator) -> Float[Tensor, "..."]:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def random_function(generator: torch.Generator, least: int = 0) -> PiecewiseLinear:
    """Breakpoints 0.1 to 2.1 apart around 0, so that none is lost to rounding, and slopes that differ from piece to
    piece."""
    p = randint(least, 8, generator)
    gaps = 0.1 + 2 * torch.rand(p + 1, generator=generator, dtype=torch.float64)
    slopes = normal((p + 2,), generator)
    return PiecewiseLinear(gaps.cumsum(0) - gaps.sum() / 2, slopes, normal((), generator))


def sample_points(f: PiecewiseLinear, generator: torch.Generator) -> Float[Tensor, "n"]:
    """The breakpoints, points between and points far outside."""
    return torch.cat([f.breakpoints, 20 * torch.rand(200, generator=generator, dtype=torch.float64) - 10])


@claim(
    "D1.1-3",
    "every continuous piecewise linear f is a network of one hidden ReLU layer, of p + 3 units and also of p + 2",
    not_shown="functions of several variables, of which not all are shallow (see D1.1-5)",
)
def piecewise_linear_is_shallow(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        f = random_function(generator)
        x, p = sample_points(f, generator), len(f.breakpoints) - 1
        for build, units in ((to_relu_network, p + 2), (to_relu_network_with_identity, p + 3)):
            hidden, last = affine_layers(build(f))
            by_definition = shallow_definition(x[:, None], hidden, last)[:, 0]
            expected = piecewise_linear_definition(x, f.breakpoints, f.slopes, f.offset)
            worst = max(worst, gap(by_definition, expected) if len(hidden.bias) == units else math.inf)
    return Evidence("largest |network - f|", worst, ROUNDING, ROUNDING_SOURCE, 2 * CASES)


@claim("D1.1-3", "and back: both networks of f have the breakpoints, slopes and offset of f, and no others")
def extraction_inverts(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        f = random_function(generator)
        for build in (to_relu_network, to_relu_network_with_identity):
            back = from_relu_network(build(f))
            if back.num_pieces != f.num_pieces:
                worst = math.inf
                continue
            worst = max(
                worst, gap(back.breakpoints, f.breakpoints), gap(back.slopes, f.slopes), gap(back.offset, f.offset)
            )
    return Evidence("largest difference of a breakpoint, slope or offset", worst, ROUNDING, ROUNDING_SOURCE, 2 * CASES)


@claim("D1.1-4", "for s <= t the clamp (0 ∨ (x - s)) ∧ (t - s) is ReLU(x - s) - ReLU(x - t); for s > t it is not")
def clamp_is_two_relus(generator: torch.Generator) -> Evidence:
    x, s = 3 * normal((2000,), generator), normal((2000,), generator)
    t = s + normal((2000,), generator).abs()
    t[:20] = s[:20]
    two = relu(x - s) - relu(x - t)
    clamped = torch.minimum((x - s).clamp(min=0), t - s)
    worst = max(gap(clipped_ramp(x, s, t), two), gap(clamped, two))
    swapped = float((clipped_ramp(x, t, s) - (relu(x - t) - relu(x - s))).abs().max())  # s and t the wrong way round
    source = "8 float64 roundings of numbers up to 16"
    return Evidence("largest |clamp - two ReLUs|", worst if swapped > 0.1 else math.inf, roundings(128), source, len(x))


def affine_offsets(f: PiecewiseLinear) -> Float[Tensor, "pieces"]:
    return f.offsets


def no_offsets(f: PiecewiseLinear) -> Float[Tensor, "pieces"]:
    return torch.zeros_like(f.slopes)


@claim(
    "DE3",
    "the pieces are affine: linear ones, without offset, meet at 0 only",
    right=affine_offsets,
    printed=no_offsets,
)
def pieces_meet(form: Callable[[PiecewiseLinear], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        f = random_function(generator)
        offsets = form(f)
        left = f.slopes[:-1] * f.breakpoints + offsets[:-1]
        right = f.slopes[1:] * f.breakpoints + offsets[1:]
        worst = max(worst, gap(left, right))
    return Evidence("largest jump at a breakpoint", worst, ROUNDING, ROUNDING_SOURCE, CASES)


def printed_ramps(
    x: Float[Tensor, "n"], breakpoints: Float[Tensor, "m"], slopes: Float[Tensor, "m+1"], offset: Float[Tensor, ""]
) -> Float[Tensor, "n"]:
    """lambda_0 (x ∧ t_0) + c_0 + sum_{l=1}^{p-1} lambda_l ((0 ∨ (x - t_l)) ∧ (t_{l+1} - t_l)) + lambda_p (0 ∨ (x -
    t_p))."""
    between = clipped_ramp(x[:, None], breakpoints[1:-1], breakpoints[2:]) @ slopes[1:-2]
    return slopes[0] * torch.minimum(x, breakpoints[0]) + offset + between + slopes[-2] * relu(x - breakpoints[-1])


def printed_relus(
    x: Float[Tensor, "n"], breakpoints: Float[Tensor, "m"], slopes: Float[Tensor, "m+1"], offset: Float[Tensor, ""]
) -> Float[Tensor, "n"]:
    """lambda_0 x + c_0 + sum_{l=1}^{p+1} (lambda_l - lambda_{l-1}) ReLU(x - t_l); there is no t_{p+1}, so its
    breakpoint is nowhere."""
    return slopes[0] * x + offset + relu(x[:, None] - breakpoints[1:]) @ slopes.diff()[:-1]


def distance_to_table(form: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    """From f as a table of pieces, which is what makes it a piecewise linear function."""
    worst = 0.0
    for _ in range(CASES):
        f = random_function(generator, least=1)
        x = sample_points(f, generator)
        worst = max(worst, gap(form(x, f.breakpoints, f.slopes, f.offset), f(x)))
    return Evidence("largest |sum - f|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim(
    "DE4",
    "the clipped ramps of the proof run over [t_{l-1}, t_l] for l = 1 ... p and end with the slope lambda_{p+1}",
    right=piecewise_linear_definition,
    printed=printed_ramps,
)
def ramps_sum_to_f(form: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    return distance_to_table(form, generator)


@claim(
    "DE5",
    "in the ReLU form the slope jumps by lambda_l - lambda_{l-1} at t_{l-1}",
    right=relu_form_definition,
    printed=printed_relus,
)
def relus_sum_to_f(form: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    return distance_to_table(form, generator)
