"""Least squares where the distribution is known: the conditional expectation, and the affine function nearest to it."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.layers import affine_definition
from quoin.losses import squared_loss
from quoin.models import LinearFit, best_affine_predictor, conditional_expectation
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, randint, roundings

CASES = 50
ROUNDING = roundings(4096)
ROUNDING_SOURCE = "4096 float64 roundings, for sums over at most 96 pairs of values of some units, squared"


def random_distribution(
    generator: torch.Generator,
) -> tuple[Float[Tensor, "a c"], Float[Tensor, "a"], Float[Tensor, "c"]]:
    """P(x, y) on a table, the values of X (apart by at least one, so that their variance is not tiny) and those of
    Y."""
    num_x, num_y = randint(3, 8, generator), randint(2, 12, generator)
    joint = torch.rand(num_x, num_y, generator=generator, dtype=torch.float64) + 0.1
    x = torch.arange(num_x, dtype=torch.float64) - num_x / 2 + torch.rand((), generator=generator, dtype=torch.float64)
    return joint / joint.sum(), x, 3 * torch.randn(num_y, generator=generator, dtype=torch.float64)


def mean_squared_error(
    joint: Float[Tensor, "a c"], predicted: Float[Tensor, "a"], y: Float[Tensor, "c"]
) -> Float[Tensor, ""]:
    """E(Y - f(X))^2 for the function f that takes the values `predicted`."""
    return (joint * 2 * squared_loss(predicted.unsqueeze(1).expand_as(joint), y.expand_as(joint))).sum()


def best_affine(joint: Float[Tensor, "a c"], x: Float[Tensor, "a"], y: Float[Tensor, "c"]) -> LinearFit:
    """The best affine predictor from the moments of the table."""
    mean_x, mean_y = joint.sum(dim=1) @ x, joint.sum(dim=0) @ y
    variance = joint.sum(dim=1) @ (x - mean_x).square()
    covariance = (x - mean_x) @ joint @ (y - mean_y)
    return best_affine_predictor(mean_x.reshape(1), mean_y, variance.reshape(1, 1), covariance.reshape(1))


@claim(
    "Z3.16", "E(Y - f(X))² exceeds that of E[Y|X] by exactly E(f(X) - E[Y|X])², so that no function of X does better"
)
def conditional_expectation_is_best(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        joint, _x, y = random_distribution(generator)
        best = conditional_expectation(joint, y)
        other = best + torch.randn(len(best), generator=generator, dtype=torch.float64)
        excess = mean_squared_error(joint, other, y) - mean_squared_error(joint, best, y)
        worst = max(worst, gap(excess, joint.sum(dim=1) @ (other - best).square()))
    return Evidence("largest |excess - E(f - E[Y|X])²|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim("Z3.19", "where E[Y|X] is affine, the best affine predictor is E[Y|X]")
def affine_pattern_is_found(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        _, x, _ = random_distribution(generator)
        slope, level = torch.randn(2, generator=generator, dtype=torch.float64)
        probability = torch.rand(len(x), generator=generator, dtype=torch.float64) + 0.1
        # Y is the line's value at X plus or minus one with equal probability: two columns of the table for each row.
        y = (slope * x + level).repeat_interleave(2) + torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(len(x))
        joint = torch.kron(torch.diag(probability / probability.sum()), torch.full((1, 2), 0.5, dtype=torch.float64))
        fit = best_affine(joint, x, y)
        worst = max(worst, gap(fit.predict(x.unsqueeze(1)), conditional_expectation(joint, y)))
        worst = max(worst, gap(torch.stack([fit.weight[0], fit.bias]), torch.stack([slope, level])))
    return Evidence("largest |w x + b - E[Y|x]| and error in w and b", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim(
    "Z3.19",
    "else it is the projection of E[Y|X] on the affine functions: E(m - f)² = E(m - f*)² + E(f* - f)², m = E[Y|X]",
)
def else_the_projection(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        joint, x, y = random_distribution(generator)
        probability, m = joint.sum(dim=1), conditional_expectation(joint, y)
        fit = best_affine(joint, x, y)
        best = fit.predict(x.unsqueeze(1))
        other = best + torch.randn((), generator=generator, dtype=torch.float64) * x + 1
        apart = [probability @ (left - right).square() for left, right in ((m, other), (m, best), (best, other))]
        worst = max(worst, gap(apart[0], apart[1] + apart[2]))
        # The same line fits Y and m; and m itself is bent, or there would be nothing to project.
        again = best_affine(torch.diag(probability), x, m)
        worst = max(worst, gap(again.predict(x.unsqueeze(1)), best), 0.0 if float(apart[1]) > 1e-20 else math.inf)
    return Evidence("largest failure of Pythagoras' theorem", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim("Z3.19", "for Y = X² and standard normal X the best affine predictor is the constant 1")
def parabola_is_projected_on_a_constant(generator: torch.Generator) -> Evidence:
    # Gauss-Hermite nodes carry the moments of N(0, 1) up to the fifth exactly.
    x = torch.tensor([-math.sqrt(3), 0.0, math.sqrt(3)], dtype=torch.float64)
    probability = torch.tensor([1 / 6, 2 / 3, 1 / 6], dtype=torch.float64)
    fit = best_affine(torch.diag(probability), x, x.square())
    worst = gap(torch.stack([fit.weight[0], fit.bias]), torch.tensor([0.0, 1.0], dtype=torch.float64))
    return Evidence("largest |w - 0| and |b - 1|", worst, roundings(32), "32 float64 roundings, for sums of 3 terms", 1)


@claim("D1-2", "f(x) + f(y) - f(x + y) is the bias for every affine f, so f is additive exactly when its bias is zero")
def additive_without_bias(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for case in range(CASES):
        inputs, outputs = randint(1, 8, generator), randint(1, 8, generator)
        weight = torch.randn(outputs, inputs, generator=generator, dtype=torch.float64)
        bias = (
            torch.randn(outputs, generator=generator, dtype=torch.float64)
            if case % 2
            else torch.zeros(outputs, dtype=torch.float64)
        )
        x, y = torch.randn(2, inputs, generator=generator, dtype=torch.float64)
        fx, fy, together = (affine_definition(each, weight, bias) for each in (x, y, x + y))
        worst = max(worst, gap(fx + fy - together, bias))
        scale = torch.randn((), generator=generator, dtype=torch.float64)
        worst = max(worst, gap(affine_definition(scale * x, weight, bias) - scale * fx, (1 - scale) * bias))
    source = "256 float64 roundings, for sums of at most 8 products"
    return Evidence("largest |f(x) + f(y) - f(x + y) - b|", worst, roundings(256), source, CASES)
