"""Moments of normal vectors: pairings, integration by parts, and the step that makes one coordinate independent of the
rest."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.gaussians import random_distribution, vector
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.prob import (
    MultivariateNormal,
    decorrelation,
    integration_by_parts,
    normal_expectation,
    normal_moment,
    pairings,
    wick,
    wick_definition,
)

CASES = 30


def centered(distribution: MultivariateNormal) -> MultivariateNormal:
    return MultivariateNormal(torch.zeros_like(distribution.mean), distribution.covariance)


@claim(
    "D5-21",
    "for X ~ N(0, Σ), Σ singular or not, E[X_i … X_l] is the sum over pairings of products of covariances, and 0 "
    "for odd order",
    not_shown="moments of every order: those tried",
)
def moments_are_sums_over_pairings(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for case in range(CASES):
        distribution = centered(random_distribution(3, generator, rank=2 if case % 3 == 0 else None))
        for order in range(1, 8):
            indices = torch.randint(0, 3, (order,), generator=generator)
            direct = normal_expectation(
                lambda x, indices=indices: x[..., indices].prod(dim=-1), distribution, num_nodes=8
            )
            listed = indices.tolist()
            # What rounding can do is counted from the size of the integrand, not from what cancels.
            size = normal_expectation(
                lambda x, indices=indices: x[..., indices].prod(dim=-1).abs(), distribution, num_nodes=8
            )
            for form in (wick, wick_definition):
                worst = max(worst, gap(form(distribution.covariance, listed), direct) / max(1.0, float(size)))
            worst = max(worst, float(wick(distribution.covariance, listed).abs()) if order % 2 else 0.0)
    return Evidence(
        "largest |Σ over pairings - E ∏ X|, relative", worst, roundings(2**12), "4096 float64 roundings", 7 * CASES
    )


@claim("D5-21", "the same by Taylor: ∂⁴/∂a_1…∂a_4 of E e^⟨a,X⟩ at 0 is Σ_12 Σ_34 + Σ_13 Σ_24 + Σ_14 Σ_23")
def moments_are_derivatives(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        distribution = centered(random_distribution(4, generator))
        a = torch.zeros(4, dtype=torch.float64, requires_grad=True)
        derivative = distribution.mgf(a)
        for index in range(4):
            (derivatives,) = torch.autograd.grad(derivative, a, create_graph=True)
            derivative = derivatives[index]
        S = distribution.covariance
        three = S[0, 1] * S[2, 3] + S[0, 2] * S[1, 3] + S[0, 3] * S[1, 2]
        worst = max(worst, gap(derivative, three), gap(wick(S, range(4)), three))
    return Evidence("largest |∂⁴ - three products|", worst, roundings(256), "256 float64 roundings", CASES)


@claim("D5-21", "pairing needs a centred X: for N(1, 1) it gives 3 (E X²)² = 12, and E X⁴ is 10")
def centring_is_needed(generator: torch.Generator) -> Evidence:
    one = torch.ones(1, 1, dtype=torch.float64)
    moment = float(normal_moment(one[0], one, [0] * 4))
    paired = float(wick(one + one, [0] * 4))  # the second moment is 2
    direct = float(normal_expectation(lambda x: x[..., 0] ** 4, MultivariateNormal(one[0], one)))
    right = abs(direct - 10) <= roundings(2**10) and moment == 10
    return Evidence("pairing E X² - E X⁴", paired - moment if right else torch.nan, 2, "exact: 12 - 10", 1, "==")


def product_moment(distribution: MultivariateNormal, i: int, j: int) -> Float[Tensor, ""]:
    return normal_moment(distribution.mean, distribution.covariance, [i, j])


def moment_of_the_pair(distribution: MultivariateNormal, i: int, j: int) -> Float[Tensor, "2"]:
    return torch.stack([normal_moment(distribution.mean, distribution.covariance, [index]) for index in (i, j)])


@claim(
    "DE41",
    "each pair contributes E[X_i X_j], a number, and not the pair E[X_i, X_j]",
    right=product_moment,
    printed=moment_of_the_pair,
)
def pairs_are_products(form: Callable[[MultivariateNormal, int, int], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        distribution = centered(random_distribution(4, generator))
        total = sum(
            (form(distribution, *first) * form(distribution, *second) for first, second in pairings(4)), torch.zeros(())
        )
        direct = normal_expectation(lambda x: x.prod(dim=-1), distribution, num_nodes=6)
        worst = max(worst, gap(total, direct))
    return Evidence("largest |Σ over pairings - E X₁X₂X₃X₄|", worst, roundings(2**12), "4096 float64 roundings", CASES)


def random_function(generator: torch.Generator) -> Callable[[Tensor], Tensor]:
    """A cubic polynomial and a sine of three coordinates."""
    B, a = torch.randn(3, 3, generator=generator, dtype=torch.float64), vector(3, generator) / 4
    return lambda x: ((x @ B) * x).sum(dim=-1) * x[..., 0] + torch.sin(x @ a)


def square_of_the_first(x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
    return x[..., 0] ** 2


def centered_factor(
    distribution: MultivariateNormal, f: Callable[[Tensor], Tensor], coordinate: int
) -> Float[Tensor, ""]:
    return integration_by_parts(f, distribution, coordinate=coordinate).product


def bare_factor(distribution: MultivariateNormal, f: Callable[[Tensor], Tensor], coordinate: int) -> Float[Tensor, ""]:
    return normal_expectation(lambda x: x[..., coordinate] * f(x), distribution)


@claim(
    ("D5-22", "DE76"),
    "E[(X_k − μ_k) f(X)] = Σ_i Σ_ki E[∂_i f(X)]: a mean is taken off",
    right=centered_factor,
    printed=bare_factor,
)
def gaussian_integration_by_parts(
    form: Callable[[MultivariateNormal, Callable[[Tensor], Tensor], int], Tensor], generator: torch.Generator
) -> Evidence:
    worst, counterexample = 0.0, ""
    for case in range(CASES):
        distribution = random_distribution(3, generator, rank=2 if case % 3 == 0 else None)
        f, coordinate = random_function(generator), randint(0, 2, generator)
        if case == 0:
            distribution, coordinate = (
                MultivariateNormal(torch.ones(1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)),
                0,
            )
            f = square_of_the_first
        left, derivatives = (
            form(distribution, f, coordinate),
            integration_by_parts(f, distribution, coordinate=coordinate).derivatives,
        )
        worst = max(worst, gap(left, derivatives))
        if case == 0:
            counterexample = f"N(1, 1) and f = x²: {float(left):.2f} against {float(derivatives):.2f}"
    source = "4096 float64 roundings; 20 nodes a coordinate miss the sine by less"
    return Evidence(
        "largest difference of the sides, relative",
        worst,
        roundings(2**12),
        source,
        CASES,
        counterexample=counterexample,
    )


def over_the_variance(x: Float[Tensor, "*batch"], variance: float) -> Float[Tensor, "*batch"]:
    return -x / variance


def times_the_variance(x: Float[Tensor, "*batch"], variance: float) -> Float[Tensor, "*batch"]:
    return -x * variance


@claim(
    "DE42",
    "d/dx e^(−x²/2σ²) brings down −x/σ²: σ² E f′(X) = −σ² E[f(X)·(−X/σ²)]",
    right=over_the_variance,
    printed=times_the_variance,
)
def derivative_of_the_bell(form: Callable[[Tensor, float], Tensor], generator: torch.Generator) -> Evidence:
    worst, counterexample = 0.0, ""
    for case in range(CASES):
        variance, power = (
            (4.0, 3) if case == 0 else (0.5 + 3 * float(torch.rand((), generator=generator)), randint(1, 5, generator))
        )
        distribution = MultivariateNormal(
            torch.zeros(1, dtype=torch.float64), torch.tensor([[variance]], dtype=torch.float64)
        )
        derivatives = integration_by_parts(
            lambda x, power=power: x[..., 0] ** power, distribution
        ).derivatives  # σ² E f'(X)
        parts = -variance * normal_expectation(
            lambda x, p=power, v=variance: x[..., 0] ** p * form(x[..., 0], v), distribution
        )
        worst = max(worst, gap(parts, derivatives))
        if case == 0:
            counterexample = f"σ = 2 and f = x³: {float(parts):.0f} against {float(derivatives):.0f}"
    source = "1024 float64 roundings; the nodes are exact"
    return Evidence(
        "largest difference of the sides, relative",
        worst,
        roundings(2**10),
        source,
        CASES,
        counterexample=counterexample,
    )


def by_its_own_loading(covariance: Float[Tensor, "d d"]) -> Float[Tensor, "d d"]:
    return decorrelation(covariance).matrix


def by_one_loading(covariance: Float[Tensor, "d d"]) -> Float[Tensor, "d d"]:
    own = torch.eye(len(covariance), dtype=covariance.dtype)
    return own - decorrelation(covariance).loadings[1] * torch.ones_like(own[:, :1]) * own[0]


@claim(
    ("D5-23", "DE43"),
    "X̂ = X − λX_1, λ a vector, is independent of X_1",
    right=by_its_own_loading,
    printed=by_one_loading,
)
def decorrelated_is_independent(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for case in range(CASES):
        d = randint(3, 5, generator)
        distribution = centered(random_distribution(d, generator, rank=d - 1 if case % 3 == 0 else None))
        own = torch.eye(d, dtype=torch.float64)
        pair = distribution.affine(
            torch.cat([own[:1], form(distribution.covariance)])
        )  # (X_1, X̂), which is singular: X̂_1 = 0
        first, others = pair.marginal([0]), pair.marginal(range(1, d + 1))
        scale = float(distribution.covariance.diagonal().max() / distribution.covariance[0, 0])
        a = vector(d + 1, generator) / 4
        for value in (pair.covariance[0, 1:], pair.mgf(a) - first.mgf(a[:1]) * others.mgf(a[1:])):
            worst = max(worst, gap(value, torch.zeros_like(value)) / max(1.0, scale))
    return Evidence(
        "largest |Cov(X̂, X₁)|, |E e^⟨a,(X₁,X̂)⟩ - product|", worst, roundings(2**10), "1024 float64 roundings", CASES
    )
