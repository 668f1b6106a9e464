"""Information of densities: where it goes as for tables, and where not; minimisers of cross-entropy."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Cauchy, MultivariateNormal, Normal, Uniform

from quoin.info import (
    conditional_cross_entropy,
    conditional_differential_entropy,
    differential_entropy,
    differential_entropy_definition,
    distribution_cross_entropy,
    entropy,
    joint_entropy,
    kl_by_truncation,
    kl_divergence,
    mutual_information,
    mutual_information_of_density,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.distances import random_distributions
from quoin.notes.claims.random_tensors import uniform, uniform_tensor
from quoin.notes.claims.rounding import gap, max, min, randint, roundings
from quoin.prob import Density, density_kl_divergence_definition, normal_density_1d, product_density

CASES = 50
# what 80 nodes a piece leave of a smooth integrand; measured against closed forms in the tests, it is less by far
QUADRATURE = 1e-8


def random_pair(generator: torch.Generator) -> MultivariateNormal:
    root = torch.randn(2, 2, generator=generator, dtype=torch.float64) * uniform_tensor(0.05, 2, generator)
    covariance = root @ root.mT + 1e-3 * torch.eye(2, dtype=torch.float64)
    return MultivariateNormal(torch.zeros(2, dtype=torch.float64), covariance)


def coordinate(distribution: MultivariateNormal, axis: int) -> Normal:
    return Normal(distribution.loc[axis], distribution.covariance_matrix[axis, axis].sqrt())


@claim(
    "Z13.9",
    "the entropy of a table is never negative; that of a density may be: uniform on [a, b], log(b - a); [0, ½], -ln 2",
)
def differential_entropy_may_be_negative(generator: torch.Generator) -> Evidence:
    worst = abs(float(differential_entropy_definition(Density(lambda x: 2 + 0 * x, (0, 0.5)))) + math.log(2))
    for _ in range(CASES):
        worst = max(worst, -float(entropy(random_distributions(1, generator)).min()))
        width = uniform(0.01, 3, generator)
        for form in (differential_entropy, differential_entropy_definition):
            worst = max(worst, abs(float(form(Uniform(torch.zeros((), dtype=torch.float64), width))) - math.log(width)))
    return Evidence("largest |h - log(b - a)| or negative H", worst, roundings(64), "64 float64 roundings", CASES)


@claim(
    "Z13.13",
    "on a finite interval the uniform distribution has the largest entropy, log(b - a); what another lacks is its "
    "KL from it",
)
def uniform_has_the_largest_entropy(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        a = uniform(-2, 2, generator)
        b = a + uniform(0.1, 4, generator)
        heights = torch.rand(4, generator=generator, dtype=torch.float64) + 1e-3

        def density(
            x: Tensor, a=a, b=b, heights=heights
        ) -> Tensor:  # a cubic with positive coefficients in (x - a) / (b - a)
            powers = torch.stack([((x - a) / (b - a)) ** power for power in range(4)])
            return (heights[:, None] * powers).sum(dim=0) / ((heights / torch.arange(1, 5)).sum() * (b - a))

        distribution = Density(density, (a, b))
        most, found = math.log(b - a), float(differential_entropy(distribution))
        lacking = float(kl_divergence(distribution, Uniform(torch.tensor(a, dtype=torch.float64), b)))
        worst = max(worst, found - most, abs(most - found - lacking))
    return Evidence(
        "largest h - log(b - a), or |log(b - a) - h - KL|", worst, QUADRATURE, "error of the quadrature", CASES
    )


@claim(
    "Z13.15", "Y = X adds nothing to a table, H(X, X) = H(X); a pair of densities with Y → X loses all, h(X, Y) → -∞"
)
def a_copy_costs_nothing_or_everything(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = random_distributions(1, generator)[0]
        worst = max(worst, gap(joint_entropy(torch.diag(p)), entropy(p)))
        std = uniform(0.1, 3, generator)
        for noise in (1e-1, 1e-2, 1e-3):  # Y = X + noise · Z: h(X, Y) = h(X) + h(noise · Z), which has no lower bound
            pair = std**2 * torch.ones(2, 2, dtype=torch.float64) + torch.diag(
                torch.tensor([0, noise**2], dtype=torch.float64)
            )
            both = differential_entropy(MultivariateNormal(torch.zeros(2, dtype=torch.float64), pair))
            known = math.log(2 * math.pi * math.e * std * noise)
            worst = max(worst, abs(float(both) - known))
    return Evidence(
        "largest |H(X, X) - H(X)|, |h(X, Y) - log(2πe σ ε)|",
        worst,
        1e-8,
        "a condition number of 1e7 times rounding",
        CASES,
    )


def bounded_by_the_sum(h_x: float, h_y: float, h_xy: float, *, table: bool) -> float:
    """The breach of H(X, Y) ≤ H(X) + H(Y), and for tables of max(H(X), H(Y)) ≤ H(X, Y)."""
    return max(h_xy - h_x - h_y, max(h_x, h_y) - h_xy if table else -math.inf)


def bounded_from_below_always(h_x: float, h_y: float, h_xy: float, *, table: bool) -> float:
    return max(h_xy - h_x - h_y, max(h_x, h_y) - h_xy)


@claim(
    "ZE32",
    "of a pair H(X, Y) ≤ H(X) + H(Y) holds for tables and densities, max(H(X), H(Y)) ≤ H(X, Y) for tables only",
    right=bounded_by_the_sum,
    printed=bounded_from_below_always,
)
def joint_entropy_is_bounded(form: Callable[..., float], generator: torch.Generator) -> Evidence:
    one, half = Density(lambda x: 1 + 0 * x, (0, 1)), Density(lambda x: 2 + 0 * x, (0, 0.5))
    entropies = (float(differential_entropy(distribution)) for distribution in (one, half, product_density(one, half)))
    worst = form(*entropies, table=False)
    message = f"X ~ U[0, 1], Y ~ U[0, ½] independent: h(X, Y) = -0.693 < h(X) = 0, a breach of {worst:.3g}"
    for _ in range(CASES):
        joint = random_distributions(randint(2, 5, generator), generator)
        joint = joint / joint.sum()
        tables = (float(each) for each in (entropy(joint.sum(dim=1)), entropy(joint.sum(dim=0)), joint_entropy(joint)))
        pair = random_pair(generator)
        normals = (float(differential_entropy(each)) for each in (coordinate(pair, 0), coordinate(pair, 1), pair))
        worst = max(worst, form(*tables, table=True), form(*normals, table=False))
    return Evidence(
        "largest violation of a bound", worst, 1e-10, "error of the quadrature", 2 * CASES + 1, counterexample=message
    )


@claim(
    "Z13.18",
    "of a density too I = h(X, Y) - h(Y | X) - h(X | Y) = h(X) + h(Y) - h(X, Y), -½ log(1 - ρ²) for a normal pair",
)
def forms_of_information_agree(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 3
    for _ in range(cases):
        correlation = uniform(-0.7, 0.7, generator)
        covariance = torch.tensor([[1, correlation], [correlation, 1]], dtype=torch.float64)
        distribution = MultivariateNormal(torch.zeros(2, dtype=torch.float64), covariance)
        edges = (-math.inf, -1, 0, 1, math.inf)

        def density(x: Tensor, y: Tensor, rest=1 - correlation**2, correlation=correlation) -> Tensor:
            return torch.exp(-(x * x - 2 * correlation * x * y + y * y) / (2 * rest)) / (2 * math.pi * math.sqrt(rest))

        known = -math.log(1 - correlation**2) / 2
        for joint in (Density(density, edges, edges, num_nodes=48), distribution):
            kept = conditional_differential_entropy(joint, 0) + conditional_differential_entropy(joint, 1)
            alone = differential_entropy(coordinate(distribution, 0)) + differential_entropy(
                coordinate(distribution, 1)
            )
            together = differential_entropy(joint)
            for found in (together - kept, alone - together, mutual_information_of_density(joint, 0)):
                worst = max(worst, abs(float(found) - known))
    return Evidence(
        "largest |I + ½ log(1 - ρ²)|", worst, 1e-6, "error of the quadrature with 48 nodes a piece", 6 * cases
    )


def grows_with_the_bins(bins: int, y: Uniform) -> float:
    return math.log(bins)


def is_the_entropy(bins: int, y: Uniform) -> float:
    return float(differential_entropy(y))


@claim(
    "ZE34",
    "for a bijection I(X, Y) = H(X) = H(Y) holds for tables; for densities I is infinite: log(bins) for X uniform, "
    "Y = 2X, in finer bins",
    right=grows_with_the_bins,
    printed=is_the_entropy,
)
def information_of_a_bijection(form: Callable[[int, Uniform], float], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = random_distributions(1, generator)[0]
        renamed = torch.zeros(len(p), len(p), dtype=torch.float64)
        renamed[torch.arange(len(p)), torch.randperm(len(p), generator=generator)] = p
        worst = max(worst, gap(mutual_information(renamed), entropy(p)))
    low, high = torch.tensor([0.0, 2.0], dtype=torch.float64)
    for bins in (10, 100, 1000):  # X in bin i of [0, 1] exactly if Y = 2X in bin i of [0, 2]
        binned = torch.eye(bins, dtype=torch.float64) / bins
        worst = max(worst, abs(float(mutual_information(binned)) - form(bins, Uniform(low, high))))
    message = f"X ~ U[0, 1], Y = 2X: h(X) = 0, h(Y) = ln 2, and I of 1000 bins is 6.91; off by {worst:.3g}"
    quantity = "largest difference from what I should be"
    return Evidence(quantity, worst, roundings(64), "64 roundings", CASES + 3, counterexample=message)


def on_a_set_of_probability(p: Density, q: Density, suspects: Float[Tensor, "n"]) -> bool:
    return float(p.expectation(lambda x: (q(x) == 0).double())) > 1e-6


def at_some_point(p: Density, q: Density, suspects: Float[Tensor, "n"]) -> bool:
    return bool(((p(suspects) > 0) & (q(suspects) == 0)).any())


@claim(
    "ZE35",
    "KL of densities is infinite if q = 0 on a set to which P gives probability; a single point is none",
    right=on_a_set_of_probability,
    printed=at_some_point,
)
def a_hole_must_have_probability(
    form: Callable[[Density, Density, Tensor], bool], generator: torch.Generator
) -> Evidence:
    wrong, message, cases = 0, "", 15
    for _ in range(cases):
        hole, width = uniform(-2, 2, generator), uniform(0.3, 1, generator)
        edges = sorted({-math.inf, -4, -2, 0, 2, 4, math.inf, hole, hole + width})

        def punctured(x: Tensor, hole=hole) -> Tensor:
            return torch.where(x == hole, 0, normal_density_1d(x, 1.0))

        def torn(x: Tensor, hole=hole, width=width) -> Tensor:  # no mass between hole and hole + width, more elsewhere
            left, right = (0.5 * math.erfc(-(at - 1) / math.sqrt(2)) for at in (hole, hole + width))
            return torch.where((hole < x) & (x < hole + width), 0, normal_density_1d(x, 1.0) / (1 - right + left))

        p, whole, split = (Density(density, edges) for density in (normal_density_1d, punctured, torn))
        suspects = torch.tensor([hole, hole + width / 2], dtype=torch.float64)
        for q in (whole, split):
            found = float(density_kl_divergence_definition(p, q))
            wrong += math.isinf(found) != form(p, q, suspects)
            wrong += q is whole and abs(found - 0.5) > QUADRATURE
            message = (
                message
                or f"N(0, 1) and N(1, 1) with q({hole:.3g}) = 0: KL = "
                f"{float(density_kl_divergence_definition(p, whole)):.3g}"
            )
    return Evidence("pairs on which the rule is wrong", wrong, 0, "exact: a count", 2 * cases, "==", message)


@claim(
    "Z13.24",
    "KL may be infinite though q > 0 everywhere: of a Cauchy distribution against a normal one |x| ≤ R alone gives "
    "about R / π",
)
def heavy_tails_make_kl_infinite(generator: torch.Generator) -> Evidence:
    zero, one = torch.tensor([0.0, 1.0], dtype=torch.float64)
    p, q = Cauchy(zero, one), Normal(zero, one)
    radii = [float(10 ** uniform_tensor(0, 5, generator)) for _ in range(CASES)]
    breach = 0.0 if math.isinf(float(kl_divergence(p, q))) and float(kl_divergence(q, p)) < math.inf else math.inf
    for radius, found in zip(radii, kl_by_truncation(p, q, radii).tolist()):
        # The part of x² / 2 is (R - arctan R) / π; p log p lies between -log 4π and 0, and ½ log 2π comes at most once.
        tail = (radius - math.atan(radius)) / math.pi
        breach = max(breach, tail - math.log(4 * math.pi) - found, found - tail - math.log(2 * math.pi) / 2)
    return Evidence("largest violation of R / π ± 3 over |x| ≤ R", breach, 1e-8, "error of the quadrature", CASES)


@claim(
    "M22",
    "descent on the cross-entropy from Pop to a universal model ends in Pop: KL after k steps of 2 is at most "
    "|ℓ*|² / 4k",
)
def descent_reaches_the_population(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 6
    for _ in range(cases):
        pop = random_distributions(1, generator, positive=True)[0]
        logits = torch.zeros(len(pop), dtype=torch.float64, requires_grad=True)
        # The Hessian diag(q) - qqᵀ is at most ½, so that 2 is a step of 1/L; the nearest logits of Pop are the centred
        # ones.
        away = float((pop.log() - pop.log().mean()).square().sum())
        for step in range(1, 201):
            (gradient,) = torch.autograd.grad(distribution_cross_entropy(pop, logits.softmax(dim=0)), logits)
            logits = (logits - 2 * gradient).detach().requires_grad_()
            if step in (1, 10, 50, 200):
                reached = logits.detach().softmax(dim=0)
                worst = max(worst, float(kl_divergence(pop, reached)) * 4 * step / max(away, 1e-12))
                other = random_distributions(1, generator, positive=True)[0]
                if len(other) == len(pop):  # and nothing lies below: H(Pop, Q) ≥ H(Pop, Pop)
                    worst = max(
                        worst, math.inf if float(distribution_cross_entropy(pop, other)) < float(entropy(pop)) else 0.0
                    )
    return Evidence(
        "largest KL(Pop, Q_k) over |ℓ*|² / 4k",
        worst,
        1,
        "gradient descent on a convex function, steps of 1/L",
        4 * cases,
    )


@claim(
    "M22c",
    "a family that lacks Pop leaves a gap: linear logits on XOR with 10% noise reach ln 2 = 0.6931, where H = "
    "0.3251 nats",
)
def a_narrow_family_leaves_a_gap(generator: torch.Generator) -> Evidence:
    x = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=torch.float64)
    labels = torch.tensor([0, 1, 1, 0])
    pop = (
        torch.full((4, 2), 0.1, dtype=torch.float64).scatter(1, labels[:, None], 0.9) / 4
    )  # inputs alike, labels noisy
    noise = -0.1 * math.log(0.1) - 0.9 * math.log(0.9)
    least, cases = math.inf, 2
    for _ in range(cases):
        loss = torch.tensor(math.inf)
        weights = torch.randn(3, generator=generator, dtype=torch.float64, requires_grad=True)
        for _ in range(300):  # convex, with a curvature of at most (1 + 1 + 1) / 4
            q = torch.sigmoid(x @ weights[:2] + weights[2])
            loss = conditional_cross_entropy(pop, torch.stack([1 - q, q], dim=-1))
            (gradient,) = torch.autograd.grad(loss, weights)
            weights = (weights - gradient * 4 / 3).detach().requires_grad_()
        least = min(least, float(loss.detach()))
    perfect = float(conditional_cross_entropy(pop, pop * 4))
    far = max(abs(least - math.log(2)), abs(perfect - noise), abs((least - perfect) - (math.log(2) - noise)))
    return Evidence(
        "largest |reached - ln 2|, |H - 0.3251|, |gap - 0.3681|",
        far,
        1e-6,
        "300 steps on a strictly convex loss",
        cases,
    )
