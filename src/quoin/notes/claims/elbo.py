"""The evidence lower bound: what it loses, the ways to write it, and four ways to differentiate an estimate of it."""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from quoin.losses import (
    elbo_by_analytic_kl,
    elbo_by_baseline,
    elbo_by_paths,
    elbo_by_score,
    elbo_by_stochastic_backprop,
    elbo_definition,
    elbo_groupings,
)
from quoin.models import triangular_factor
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.latent import random_ppca
from quoin.notes.claims.random_tensors import normal, uniform, uniform_tensor
from quoin.notes.claims.rounding import excess, gap, randint, roundings
from quoin.prob import DiagonalNormal, LatentModel, MultivariateNormal, TriangularNormal, kl, kl_normal, normal_expectation

CASES = 20


def random_laws(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """p(z), p(y | z) for one y, and a q that leaves some z out."""
    prior = normal(n, generator=generator).softmax(0)
    likelihood = torch.rand(n, generator=generator, dtype=torch.float64) + 1e-3
    q = normal(n, generator=generator).exp() * (torch.rand(n, generator=generator) < 0.8)
    q[0] += 0.1
    return prior, likelihood, q / q.sum()


def random_normal(dim: int, generator: torch.Generator) -> TriangularNormal:
    return TriangularNormal(normal(dim, generator=generator), triangular_factor(normal(dim * (dim + 1) // 2, generator=generator), dim))


def exact_noise(dim: int) -> Tensor:
    """Gauss-Hermite's nodes -√3, 0, √3 as often as their weights 1, 4, 1 say: a plain mean is exact for polynomials of degree 5."""
    line = [-math.sqrt(3.0)] + [0.0] * 4 + [math.sqrt(3.0)]
    return torch.tensor(list(itertools.product(line, repeat=dim)), dtype=torch.float64)


@claim(("D6-19", "D6-17"), "ln p(x) = D(q‖p(z | x)) + L, so that L is a lower bound, and loses nothing if and only if q is the posterior")
def gap_is_a_divergence(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        dim = randint(1, 3, generator)
        model, q = random_ppca(generator, dim), random_normal(dim, generator)
        x = normal(len(model.weight), generator=generator)
        truth = model.posterior(x)
        for law in (q, TriangularNormal(truth.mean, truth.factor)):
            bound = elbo_by_paths(model, law, x, exact_noise(dim))
            lost = kl_normal(law.mean, law.covariance, truth.mean, truth.covariance)
            worst = max(worst, gap(bound + lost, model.log_evidence(x)))
        worst = max(worst, abs(float(lost)))
        if not float(model.log_evidence(x) - elbo_by_paths(model, q, x, exact_noise(dim))) > 1e-6:
            worst = math.inf  # another q must lose something
        prior, likelihood, table = random_laws(randint(2, 6, generator), generator)
        joint = prior * likelihood
        there = table > 0
        log_q = torch.where(there, table, 1).log()
        bound = elbo_definition(joint.log(), log_q, table)
        worst = max(worst, gap(bound + kl(table, joint / joint.sum()), joint.sum().log()), excess(bound, joint.sum().log()))
    return Evidence("largest gap of ln p(x) to the sum", worst, roundings(50_000), "50,000 float64 roundings", 3 * CASES)


@claim("D6-20", "L = -D(q‖p(x, ·)) for the joint law at one x, whose mass is p(x), not 1: D(q‖cP) = D(q‖P) - ln c")
def bound_is_a_divergence_from_the_joint(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        prior, likelihood, q = random_laws(randint(2, 6, generator), generator)
        joint = prior * likelihood
        log_q = torch.where(q > 0, q, 1).log()
        divergence = torch.where(q > 0, q * (log_q - joint.log()), 0).sum()
        worst = max(worst, gap(elbo_definition(joint.log(), log_q, q), -divergence))
        mass = joint.sum()
        worst = max(worst, gap(divergence, kl(q, joint / mass) - mass.log()))
        if abs(float(mass) - 1) < 1e-9:
            worst = math.inf
    return Evidence("largest gap between the bound and minus the divergence", worst, roundings(256), "256 float64 roundings", CASES)


@claim("M29", "the six groupings of the bound have one value")
def six_groupings_are_one(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        prior, likelihood, q = random_laws(randint(1, 8, generator), generator)
        six = torch.stack(elbo_groupings(prior, likelihood, q))
        exact = elbo_definition((prior * likelihood).log(), torch.where(q > 0, q, 1).log(), q)
        worst = max(worst, gap(six, exact.expand(6)), gap(six[2], six[5]))
    return Evidence("largest gap between two groupings", worst, roundings(256), "256 float64 roundings", 6 * CASES)


def by_draws(estimate: Tensor, draws: int, points: int) -> Tensor:
    return estimate


def by_points(estimate: Tensor, draws: int, points: int) -> Tensor:
    return estimate * draws / points


@claim(
    "DE55",
    "the Monte-Carlo bound is a mean over its M draws; divided by another number N it is off by M/N",
    right=by_draws,
    printed=by_points,
)
def bound_is_a_mean_over_draws(form: Callable[[Tensor, int, int], Tensor], generator: torch.Generator) -> Evidence:
    worst, draws, points = 0.0, 4000, 1000
    for _ in range(CASES):
        model = random_ppca(generator, 1)
        q = DiagonalNormal(normal(1, generator=generator), 0.3 * normal(1, generator=generator))
        x = normal(len(model.weight), generator=generator) + 3
        noise = q.noise((draws,), generator=generator)
        z = q.place(noise)
        error = float((model.log_joint(x, z) - q.log_prob(z)).std()) / math.sqrt(draws)
        found = form(elbo_by_score(model, q, x, noise), draws, points)
        worst = max(worst, abs(float(found - model.elbo(x, q.mean, q.covariance))) / error)
    source = "the central limit theorem for a quadratic of 4000 normal draws; 7 errors come less than once in a million times"
    return Evidence("largest gap of the estimate to the bound, in standard errors", worst, 7.0, source, CASES)


def from_q(q: TriangularNormal) -> Tensor:
    return kl_normal(q.mean, q.covariance, torch.zeros_like(q.mean), torch.eye(q.dim, dtype=q.mean.dtype))


def from_the_prior(q: TriangularNormal) -> Tensor:
    """What is subtracted if D(p_Z‖q) is added."""
    return -kl_normal(torch.zeros_like(q.mean), torch.eye(q.dim, dtype=q.mean.dtype), q.mean, q.covariance)


@claim(
    ("DE56", "D6-26"),
    "L = -D(q‖p_Z) + E ln p(x | Z), with a minus and q first; D(p_Z‖q) with a plus may exceed ln p(x)",
    right=from_q,
    printed=from_the_prior,
)
def bound_with_its_divergence(form: Callable[[TriangularNormal], Tensor], generator: torch.Generator) -> Evidence:
    worst, above = 0.0, 0
    for _ in range(CASES):
        dim = randint(1, 3, generator)
        model, q = random_ppca(generator, dim), random_normal(dim, generator)
        x = normal(len(model.weight), generator=generator)
        found = elbo_by_analytic_kl(model, q, x, exact_noise(dim), kl=form(q))
        above += bool(found > model.log_evidence(x))
        worst = max(worst, gap(found, model.elbo(x, q.mean, q.covariance)))
    told = f"above ln p(x), whose lower bound it is, in {above} of {CASES} cases"
    return Evidence(
        "largest gap to ln p(x) - D(q‖p(z | x))", worst, roundings(50_000), "50,000 float64 roundings", CASES, counterexample=told
    )


def slopes(bound: Tensor, leaves: Sequence[Tensor]) -> Tensor:
    return torch.cat([each.flatten() for each in torch.autograd.grad(bound.sum(), leaves, retain_graph=True)])


@claim(
    ("D6-24", "D6-27"),
    "score, reparametrised, analytic and Bonnet-Price gradients of the bound are all unbiased, in the model's parameters and in q's",
)
def four_gradients_are_unbiased(generator: torch.Generator) -> Evidence:
    """Exactly: ln p(x, z) is quadratic for a linear model, the score adds degree two, and the noise integrates degree five."""
    worst = 0.0
    for _ in range(CASES):
        dim = randint(1, 2, generator)
        model = random_ppca(generator, dim).requires_grad_(True)
        x, noise = normal(len(model.weight), generator=generator), exact_noise(dim)
        mean = normal(dim, generator=generator).requires_grad_()
        entries = normal(dim * (dim + 1) // 2, generator=generator).requires_grad_()
        q = TriangularNormal(mean, triangular_factor(entries, dim))
        leaves = [mean, entries, *model.parameters()]
        exact = slopes(model.elbo(x, q.mean, q.covariance), leaves)
        for form in (elbo_by_score, elbo_by_paths, partial(elbo_by_analytic_kl, kl=from_q(q)), elbo_by_stochastic_backprop):
            worst = max(worst, gap(slopes(form(model, q, x, noise), leaves), exact))
        # Draws of a whole rule are not independent: leaving one out of m then counts m / (m - 1) times.
        mine = slopes(elbo_by_baseline(model, q, x, noise), leaves[:2]) * (len(noise) - 1) / len(noise)
        worst = max(worst, gap(mine, exact[: mine.numel()]))
    return Evidence("largest gap to the exact gradient", worst, roundings(200_000), "200,000 float64 roundings", 5 * CASES)


class Wave(LatentModel):
    """ln p(x | z) = sin(ωz): nothing but an integrand that oscillates."""

    def __init__(self, omega: Tensor):
        self.omega = omega

    def log_prior(self, z: Tensor) -> Tensor:
        return -(z.square().sum(dim=-1) + math.log(2 * math.pi)) / 2

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        return torch.sin(self.omega * z[..., 0])

    def sample_prior(self, shape: Sequence[int] = (), *, generator: torch.Generator) -> Tensor:
        return normal(*shape, 1, generator=generator)


def variance_of_slope(form: Callable, model: LatentModel, mean: float, x: Tensor) -> float:
    """Of one draw's slope in the mean of q = N(mean, 1), over all draws, by quadrature: every node has a q and a slope of its own."""

    def slope(noise: Tensor) -> Tensor:  # (nodes, 1) -> (nodes,)
        place = torch.full_like(noise, mean).requires_grad_()
        q = DiagonalNormal(place, torch.zeros_like(place))
        return torch.autograd.grad(form(model, q, x, noise.unsqueeze(0)).sum(), place)[0].squeeze(-1)

    law = MultivariateNormal(torch.zeros(1, dtype=torch.float64), torch.eye(1, dtype=torch.float64))
    first, second = (float(normal_expectation(lambda e, p=p: slope(e) ** p, law, num_nodes=100)) for p in (1, 2))
    return second - first**2


@claim(
    "D6-25",
    "reparametrised gradients scatter less than score gradients where x is far out, and more where the integrand oscillates fast",
)
def paths_scatter_less_unless_it_oscillates(generator: torch.Generator) -> Evidence:
    least = math.inf
    for _ in range(CASES):
        model = random_ppca(generator, 1)
        # Three deviations out: ln p(x, z) - ln q(z), by which a score is multiplied, is then far below 0.
        x = model.bias + 3 * model.noise + normal(len(model.bias), generator=generator).abs()
        mean = uniform(-1, 1, generator)
        scatter = [variance_of_slope(form, model, mean, x) for form in (elbo_by_paths, elbo_by_score)]
        least = min(least, scatter[1] / max(scatter[0], 1e-12))
        # At q = N(0, 1) one path's slope is ω cos(ωz) - z, of variance near ω²/2, and one score's z sin(ωz), of variance below 1.
        wave = Wave(uniform_tensor(4, 7, generator))
        scatter = [variance_of_slope(form, wave, 0.0, x) for form in (elbo_by_paths, elbo_by_score)]
        least = min(least, scatter[0] / scatter[1])
    return Evidence("least ratio of the larger variance to the smaller, as stated", least, 1.0, "exact, by quadrature", 2 * CASES, ">=")
