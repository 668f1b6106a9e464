"""The evidence lower bound: what it loses, the ways to write it, and four ways to differentiate an estimate of it."""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.losses import (
    elbo_analytic_kl,
    elbo_bonnet_price,
    elbo_definition,
    elbo_groupings,
    elbo_reinforce,
    elbo_reinforce_baseline,
    elbo_reparameterized,
)
from quoin.models import scale_tril_from_entries
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.latent import random_ppca
from quoin.notes.claims.random_tensors import normal, uniform, uniform_tensor
from quoin.notes.claims.rounding import excess, gap, max, min, randint, roundings
from quoin.prob import (
    DiagonalNormal,
    LatentModel,
    MultivariateNormal,
    TriangularNormal,
    kl_divergence,
    kl_normal,
    normal_expectation,
)

CASES = 20


def random_distributions(
    n: int, generator: torch.Generator
) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"], Float[Tensor, "n"]]:
    """p(z), p(y | z) for one y, and a q that leaves some z out."""
    prior = normal(n, generator=generator).softmax(0)
    likelihood = torch.rand(n, generator=generator, dtype=torch.float64) + 1e-3
    q = normal(n, generator=generator).exp() * (torch.rand(n, generator=generator) < 0.8)
    q[0] += 0.1
    return prior, likelihood, q / q.sum()


def random_normal(dim: int, generator: torch.Generator) -> TriangularNormal:
    return TriangularNormal(
        normal(dim, generator=generator),
        scale_tril_from_entries(normal(dim * (dim + 1) // 2, generator=generator), dim),
    )


def exact_noise(dim: int) -> Float[Tensor, "nodes {dim}"]:
    """Gauss-Hermite's nodes -√3, 0, √3 as often as their weights 1, 4, 1 say: a plain mean is exact for polynomials of
    degree 5."""
    line = [-math.sqrt(3.0)] + [0.0] * 4 + [math.sqrt(3.0)]
    return torch.tensor(list(itertools.product(line, repeat=dim)), dtype=torch.float64)


@claim(
    ("D6-19", "D6-17"),
    "ln p(x) = D(q‖p(z | x)) + L, so that L is a lower bound, and loses nothing if and only if q is the posterior",
)
def gap_is_a_divergence(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        dim = randint(1, 3, generator)
        model, q = random_ppca(generator, dim), random_normal(dim, generator)
        x = normal(len(model.weight), generator=generator)
        truth = model.posterior(x)
        for distribution in (q, TriangularNormal(truth.mean, truth.scale_tril)):
            bound = elbo_reparameterized(model, distribution, x, exact_noise(dim))
            lost = kl_normal(distribution.mean, distribution.covariance, truth.mean, truth.covariance)
            worst = max(worst, gap(bound + lost, model.log_evidence(x)))
        worst = max(worst, abs(float(lost)))
        if not float(model.log_evidence(x) - elbo_reparameterized(model, q, x, exact_noise(dim))) > 1e-6:
            worst = math.inf  # another q must lose something
        prior, likelihood, table = random_distributions(randint(2, 6, generator), generator)
        joint = prior * likelihood
        there = table > 0
        log_q = torch.where(there, table, 1).log()
        bound = elbo_definition(joint.log(), log_q, table)
        worst = max(
            worst,
            gap(bound + kl_divergence(table, joint / joint.sum()), joint.sum().log()),
            excess(bound, joint.sum().log()),
        )
    return Evidence(
        "largest error of ln p(x) to the sum", worst, roundings(50_000), "50,000 float64 roundings", 3 * CASES
    )


@claim(
    "D6-20", "L = -D(q‖p(x, ·)) for the joint distribution at one x, whose mass is p(x), not 1: D(q‖cP) = D(q‖P) - ln c"
)
def bound_is_a_divergence_from_the_joint(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        prior, likelihood, q = random_distributions(randint(2, 6, generator), generator)
        joint = prior * likelihood
        log_q = torch.where(q > 0, q, 1).log()
        divergence = torch.where(q > 0, q * (log_q - joint.log()), 0).sum()
        worst = max(worst, gap(elbo_definition(joint.log(), log_q, q), -divergence))
        mass = joint.sum()
        worst = max(worst, gap(divergence, kl_divergence(q, joint / mass) - mass.log()))
        if abs(float(mass) - 1) < 1e-9:
            worst = math.inf
    return Evidence(
        "largest difference between the bound and minus the divergence",
        worst,
        roundings(256),
        "256 float64 roundings",
        CASES,
    )


@claim("M29", "the six groupings of the bound have one value")
def six_groupings_are_one(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        prior, likelihood, q = random_distributions(randint(1, 8, generator), generator)
        six = torch.stack(elbo_groupings(prior, likelihood, q))
        exact = elbo_definition((prior * likelihood).log(), torch.where(q > 0, q, 1).log(), q)
        worst = max(worst, gap(six, exact.expand(6)), gap(six[2], six[5]))
    return Evidence(
        "largest difference between two groupings", worst, roundings(256), "256 float64 roundings", 6 * CASES
    )


def by_samples(estimate: Float[Tensor, ""], num_samples: int, points: int) -> Float[Tensor, ""]:
    return estimate


def by_points(estimate: Float[Tensor, ""], num_samples: int, points: int) -> Float[Tensor, ""]:
    return estimate * num_samples / points


@claim(
    "DE55",
    "the Monte-Carlo bound is a mean over its M samples; divided by another number N it is off by M/N",
    right=by_samples,
    printed=by_points,
)
def bound_is_a_mean_over_samples(form: Callable[[Tensor, int, int], Tensor], generator: torch.Generator) -> Evidence:
    worst, num_samples, points = 0.0, 4000, 1000
    for _ in range(CASES):
        model = random_ppca(generator, 1)
        q = DiagonalNormal(normal(1, generator=generator), 0.3 * normal(1, generator=generator))
        x = normal(len(model.weight), generator=generator) + 3
        noise = q.sample_noise((num_samples,), generator=generator)
        z = q.transform(noise)
        error = float((model.log_joint(x, z) - q.log_prob(z)).std()) / math.sqrt(num_samples)
        found = form(elbo_reinforce(model, q, x, noise), num_samples, points)
        worst = max(worst, abs(float(found - model.elbo(x, q.mean, q.covariance))) / error)
    source = (
        "the central limit theorem for a quadratic of 4000 normal samples; 7 errors come less than once in a "
        "million times"
    )
    return Evidence("largest error of the estimate to the bound, in standard errors", worst, 7.0, source, CASES)


def from_q(q: TriangularNormal) -> Float[Tensor, ""]:
    return kl_normal(q.mean, q.covariance, torch.zeros_like(q.mean), torch.eye(q.dim, dtype=q.mean.dtype))


def from_the_prior(q: TriangularNormal) -> Float[Tensor, ""]:
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
        found = elbo_analytic_kl(model, q, x, exact_noise(dim), kl=form(q))
        above += bool(found > model.log_evidence(x))
        worst = max(worst, gap(found, model.elbo(x, q.mean, q.covariance)))
    message = f"above ln p(x), whose lower bound it is, in {above} of {CASES} cases"
    return Evidence(
        "largest difference from ln p(x) - D(q‖p(z | x))",
        worst,
        roundings(50_000),
        "50,000 float64 roundings",
        CASES,
        counterexample=message,
    )


def gradients(bound: Float[Tensor, "..."], leaves: Sequence[Float[Tensor, "..."]]) -> Float[Tensor, "p"]:
    return torch.cat([each.flatten() for each in torch.autograd.grad(bound.sum(), leaves, retain_graph=True)])


@claim(
    ("D6-24", "D6-27"),
    "score, reparametrised, analytic and Bonnet-Price gradients of the bound are all unbiased, in the model's "
    "parameters and in q's",
)
def four_gradients_are_unbiased(generator: torch.Generator) -> Evidence:
    """Exactly: ln p(x, z) is quadratic for a linear model, the score adds degree two, and the noise integrates degree
    five."""
    worst = 0.0
    for _ in range(CASES):
        dim = randint(1, 2, generator)
        model = random_ppca(generator, dim).requires_grad_(True)
        x, noise = normal(len(model.weight), generator=generator), exact_noise(dim)
        mean = normal(dim, generator=generator).requires_grad_()
        entries = normal(dim * (dim + 1) // 2, generator=generator).requires_grad_()
        q = TriangularNormal(mean, scale_tril_from_entries(entries, dim))
        leaves = [mean, entries, *model.parameters()]
        exact = gradients(model.elbo(x, q.mean, q.covariance), leaves)
        for form in (elbo_reinforce, elbo_reparameterized, partial(elbo_analytic_kl, kl=from_q(q)), elbo_bonnet_price):
            worst = max(worst, gap(gradients(form(model, q, x, noise), leaves), exact))
        # Samples of a whole rule are not independent: leaving one out of m then counts m / (m - 1) times.
        mine = gradients(elbo_reinforce_baseline(model, q, x, noise), leaves[:2]) * (len(noise) - 1) / len(noise)
        worst = max(worst, gap(mine, exact[: mine.numel()]))
    return Evidence(
        "largest difference from the exact gradient", worst, roundings(200_000), "200,000 float64 roundings", 5 * CASES
    )


class Wave(LatentModel):
    """ln p(x | z) = sin(ωz): nothing but an integrand that oscillates."""

    def __init__(self, omega: Float[Tensor, ""]):
        self.omega = omega

    def log_prior(self, z: Float[Tensor, "*batch 1"]) -> Float[Tensor, "*batch"]:
        return -(z.square().sum(dim=-1) + math.log(2 * math.pi)) / 2

    def log_likelihood(self, x: Float[Tensor, "..."], z: Float[Tensor, "*batch 1"]) -> Float[Tensor, "*batch"]:
        return torch.sin(self.omega * z[..., 0])

    def sample_prior(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator
    ) -> Float[Tensor, "*shape 1"]:
        return normal(*sample_shape, 1, generator=generator)


def variance_of_gradient(form: Callable, model: LatentModel, mean: float, x: Float[Tensor, "d"]) -> float:
    """Of one sample's gradient in the mean of q = N(mean, 1), by quadrature: every node has a q and a gradient of its
    own."""

    def gradient_of(noise: Tensor) -> Tensor:  # (nodes, 1) -> (nodes,)
        loc = torch.full_like(noise, mean).requires_grad_()
        q = DiagonalNormal(loc, torch.zeros_like(loc))
        return torch.autograd.grad(form(model, q, x, noise.unsqueeze(0)).sum(), loc)[0].squeeze(-1)

    distribution = MultivariateNormal(torch.zeros(1, dtype=torch.float64), torch.eye(1, dtype=torch.float64))
    first, second = (
        float(normal_expectation(lambda e, p=p: gradient_of(e) ** p, distribution, num_nodes=100)) for p in (1, 2)
    )
    return second - first**2


@claim(
    "D6-25",
    "reparametrised gradients vary less than score-function gradients where x is far out, more where the integrand "
    "oscillates",
)
def paths_scatter_less_unless_it_oscillates(generator: torch.Generator) -> Evidence:
    least = math.inf
    for _ in range(CASES):
        model = random_ppca(generator, 1)
        # Three standard deviations out: ln p(x, z) - ln q(z), by which a score is multiplied, is then far below 0.
        x = model.bias + 3 * model.noise + normal(len(model.bias), generator=generator).abs()
        mean = uniform(-1, 1, generator)
        scatter = [variance_of_gradient(form, model, mean, x) for form in (elbo_reparameterized, elbo_reinforce)]
        least = min(least, scatter[1] / max(scatter[0], 1e-12))
        # At q = N(0, 1) one reparametrised gradient is ω cos(ωz) - z, of variance near ω²/2,
        # and one score-function gradient z sin(ωz), of variance below 1.
        wave = Wave(uniform_tensor(4, 7, generator))
        scatter = [variance_of_gradient(form, wave, 0.0, x) for form in (elbo_reparameterized, elbo_reinforce)]
        least = min(least, scatter[0] / scatter[1])
    return Evidence(
        "least ratio of the larger variance to the smaller, as stated",
        least,
        1.0,
        "exact, by quadrature",
        2 * CASES,
        ">=",
    )
