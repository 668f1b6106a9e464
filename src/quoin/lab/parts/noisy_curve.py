"""Noisy points of a curve that is known, so that the true risk of a fit is an integral and not an estimate."""

from __future__ import annotations

import functools

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.losses import squared_loss
from quoin.metrics import Population, estimate_risk, expected_risk, population_from_density
from quoin.models import fit_polynomial, polynomial_features
from quoin.prob import normal_density_1d

__all__ = ["errors_by_degree", "known_curve", "known_population", "sample_curve"]

NOISE, HALF, DEGREES = 0.3, 3.0, 14  # y is the curve + N(0, NOISE^2), x uniform on [-HALF, HALF]


def known_curve(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """The mean of y given x."""
    return torch.sin(1.5 * x)


@functools.cache
def known_population() -> Population:
    """The distribution of (x, y) as nodes and weights."""

    def density(x: Tensor, y: Tensor) -> Tensor:
        return normal_density_1d(y, known_curve(x), torch.tensor(NOISE, dtype=x.dtype)) / (2 * HALF)

    return population_from_density(density, (-HALF, HALF), (-1 - 6 * NOISE, 1 + 6 * NOISE), num_nodes=40)


def sample_curve(count: int, seed: int = 7) -> tuple[Float[Tensor, " {count}"], Float[Tensor, " {count}"]]:
    """x and y of `count` independent points of the population."""
    generator = torch.Generator().manual_seed(seed)
    x = HALF * (2 * torch.rand(count, generator=generator, dtype=torch.float64) - 1)
    return x, known_curve(x) + NOISE * torch.randn(count, generator=generator, dtype=torch.float64)


@functools.lru_cache(maxsize=16)
def errors_by_degree(x: tuple[float, ...], y: tuple[float, ...]) -> list[tuple[float, float]]:
    """Training error and true risk of the polynomials of degree 0, 1, ... fitted to these points."""
    xs, ys = torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)
    found = []
    for degree in range(DEGREES):
        weights = fit_polynomial(xs, ys, degree)

        def model(x: Tensor, weights: Tensor = weights, degree: int = degree) -> Tensor:
            return polynomial_features(x, degree) @ weights

        training = estimate_risk(model, squared_loss, xs, ys).output
        found.append((training, expected_risk(model, squared_loss, known_population())))
    return found
