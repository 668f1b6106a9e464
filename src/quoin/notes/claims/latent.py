"""Latent-variable models: what sampling says about the evidence, which proposals help, and an example worked out by
hand."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.info import kl_divergence
from quoin.losses import elbo_definition
from quoin.models import PPCA, covariance_definition
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal, uniform, uniform_tensor
from quoin.notes.claims.rounding import gap, max, min, randint, roundings
from quoin.prob import (
    Exponential,
    ExponentialLatent,
    FiniteLatentModel,
    MultivariateNormal,
    Quadrature,
    TriangularNormal,
    exponential_elbo,
    exponential_elbo_optimum,
    importance_log_evidence,
    iwae_bound,
    kl_standard_normal,
    kl_standard_normal_definition,
    line_quadrature,
    mc_log_evidence,
    normal_expectation,
)

CASES = 20
QUADRATURE = 1e-8  # what 80 nodes a piece leave of a smooth integrand


def random_ppca(generator: torch.Generator, latent_dim: int) -> PPCA:
    d = latent_dim + randint(1, 3, generator)
    model = PPCA(
        normal(d, latent_dim, generator=generator), normal(d, generator=generator), uniform(0.5, 1.5, generator)
    )
    return model.requires_grad_(False)


@claim(
    "D6-12",
    "the log of a mean of likelihoods under the prior is too low on average, less so with more samples, and tends "
    "to ln p(x)",
    not_shown="the limit itself: finite numbers of samples",
)
def monte_carlo_evidence_is_low_and_consistent(generator: torch.Generator) -> Evidence:
    # ln p(x) = ln N(1; 0, 1.25). The likelihood has a relative variance of 1.38, so that 12 samples are 0.06 too low on
    # average.
    model = PPCA(torch.ones(1, 1).double(), torch.zeros(1).double(), 0.5).requires_grad_(False)
    x, repeats, many = torch.ones(1, dtype=torch.float64), 10_000, 200_000
    exact = MultivariateNormal(torch.zeros(1).double(), 1.25 * torch.eye(1).double()).log_prob(x)
    means, errors = [], []
    for count in (1, 3, 12):
        log_weights = mc_log_evidence(model, x, num_samples=count * repeats, generator=generator).log_weights.reshape(
            count, repeats
        )
        found = iwae_bound(log_weights)  # the log of a mean of `count` likelihoods, many times over
        means.append(float(found.mean()))
        errors.append(float(found.std()) / math.sqrt(repeats))
    rises = [(after - before) / error for before, after, error in zip(means, [*means[1:], float(exact)], errors)]
    off = (mc_log_evidence(model, x, num_samples=many, generator=generator).output - exact).abs()
    if float(off) > 6 * math.sqrt(1.4 / many):
        rises.append(-math.inf)
    source = "each rise is 16 standard errors or more: less than 8 comes less than once in a million times"
    return Evidence(
        "least rise from 1 to 3 to 12 samples to the truth, in standard errors", min(rises), 8.0, source, repeats, ">="
    )


def separated(weights: Float[Tensor, "n"]) -> FiniteLatentModel:
    """Components 20 standard deviations apart on a line."""
    means = 20.0 * torch.arange(len(weights), dtype=torch.float64).unsqueeze(-1)
    return FiniteLatentModel(
        weights, MultivariateNormal(means, torch.eye(1, dtype=torch.float64).expand(len(weights), 1, 1))
    )


def fraction_that_explains(model: FiniteLatentModel, num_samples: int, generator: torch.Generator) -> float:
    """How often a fresh z from the prior gives a fresh x a likelihood above e^-50: it is then of x's own component."""
    own, z = (model.sample_prior((num_samples,), generator=generator) for _ in range(2))
    x = 20.0 * own.double().unsqueeze(-1) + normal(num_samples, 1, generator=generator)
    return float((model.log_likelihood(x, z) > -50).double().mean())


def sum_of_squares(weights: Float[Tensor, "n"]) -> float:
    return float(weights.square().sum())


def hardly_ever(weights: Float[Tensor, "n"]) -> float:
    return 0.0


@claim(
    "D6-13",
    "under the prior a well-separated mixture hits the component of x with probability Σφ_i²; of m samples only "
    "φ_i m count",
)
def prior_samples_mostly_miss(generator: torch.Generator) -> Evidence:
    worst, num_samples = 0.0, 20_000
    for n in (2, 3, 10, 50):
        weights = (0.2 + torch.rand(n, generator=generator, dtype=torch.float64)).softmax(0)
        model = separated(weights)
        worst = max(worst, abs(fraction_that_explains(model, num_samples, generator) - sum_of_squares(weights)))
        found = mc_log_evidence(model, model.components.mean[0], num_samples=num_samples, generator=generator)  # type: ignore[attr-defined]
        worst = max(worst, abs(float(found.effective_sample_size) / num_samples - float(weights[0])))
    # Hoeffding: a fraction of 20,000 samples is off by 0.022 with probability 2 e^{-19.4} < 1e-8.
    return Evidence(
        "largest error of a fraction to its probability",
        worst,
        0.022,
        "Hoeffding's bound, broken less than once in a million",
        8,
    )


@claim(
    "DE70",
    "a component sampled at random explains x with probability Σφ_i²: half the time for two, and rarely only for many",
    right=sum_of_squares,
    printed=hardly_ever,
)
def rare_only_for_many_components(form: Callable[[Tensor], float], generator: torch.Generator) -> Evidence:
    worst, num_samples, fractions = 0.0, 20_000, []
    for n in (2, 3, 10, 50):
        weights = torch.full((n,), 1 / n, dtype=torch.float64)
        fractions.append(fraction_that_explains(separated(weights), num_samples, generator))
        worst = max(worst, abs(fractions[-1] - form(weights)))
    message = f"n = 2, 3, 10, 50 components: {', '.join(f'{each:.3f}' for each in fractions)}"
    return Evidence(
        "largest error of a fraction to its probability",
        worst,
        0.022,
        "Hoeffding's bound, 2 e^-19 a fraction",
        4,
        counterexample=message,
    )


@claim("D6-15", "with the posterior as proposal one sample gives p(x) without variance; with any other, weights vary")
def posterior_is_the_best_proposal(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        model = random_ppca(generator, randint(1, 3, generator))
        x = normal(5, len(model.weight), generator=generator)
        q = model.posterior(x)
        found = importance_log_evidence(model, q, x, num_samples=1, generator=generator)
        worst = max(worst, gap(found.output, model.log_evidence(x)))
        other = importance_log_evidence(
            model, TriangularNormal(q.mean, 1.2 * q.scale_tril), x, num_samples=20, generator=generator
        )
        if not bool((other.log_weights.std(dim=0) > 1e-3).all()):
            worst = math.inf  # the measure must see a proposal that is not the posterior
    return Evidence(
        "largest error of one weight to p(x), in logs", worst, roundings(20_000), "20,000 float64 roundings", 5 * CASES
    )


@claim(
    "D6-14",
    "the mean log of an average of m weights is the ELBO for m = 1, rises with m and stays below ln p(x)",
    not_shown="every m: those tried",
)
def importance_weighted_bounds_rise(generator: torch.Generator) -> Evidence:
    model = PPCA(torch.ones(2, 1).double(), torch.zeros(2).double(), 0.8).requires_grad_(False)
    repeats = 40_000
    x = torch.tensor([1.0, -0.5], dtype=torch.float64).expand(repeats, 2)
    truth = model.posterior(x[0])
    q = TriangularNormal(truth.mean.expand(repeats, 1) + 0.5, 1.1 * truth.scale_tril)
    weights = importance_log_evidence(model, q, x, num_samples=16, generator=generator).log_weights  # (16, repeats)
    means = [model.elbo(x[0], q.mean[0], q.covariance)]
    rises = []
    for count in (1, 4, 16):
        found = iwae_bound(weights[:count])
        error = float(found.std()) / math.sqrt(repeats)
        if count == 1:
            rises.append(6.0 - abs(float(found.mean() - means[0])) / error)  # the ELBO itself, within 6 errors
        else:
            rises.append(float(found.mean() - means[-1]) / error - 1.5)
        means.append(found.mean())
    rises.append(float(model.log_evidence(x[0]) - means[-1]) / error - 1.5)
    source = (
        "6 standard errors for the ELBO, and rises of 9 or more, of which 1.5 are asked: less than once in a million"
    )
    return Evidence(
        "least margin of ELBO = L_1 < L_4 < L_16 < ln p(x), in standard errors", min(rises), 0.0, source, repeats, ">="
    )


def weights_and_logs(generator: torch.Generator) -> tuple[float, float]:
    """How far E (w/p)² and Var ln w are from their closed forms for a q that is narrower than the posterior, and how
    they compare."""
    model = PPCA(normal(2, 1, generator=generator), normal(2, generator=generator), 1.0).requires_grad_(False)
    x, s2 = normal(2, generator=generator), uniform(0.7, 0.95, generator)
    truth = model.posterior(x)
    q = TriangularNormal(truth.mean, math.sqrt(s2) * truth.scale_tril)
    distribution, p = MultivariateNormal(q.mean, q.covariance), model.log_evidence(x)

    def log_weight(z: Tensor) -> Tensor:  # ln (w / p(x))
        return model.log_joint(x, z) - q.log_prob(z) - p

    def mean(f: Callable[[Tensor], Tensor]) -> float:
        return float(normal_expectation(f, distribution, num_nodes=120))

    second = mean(lambda z: (2 * log_weight(z)).exp())
    variance = mean(lambda z: log_weight(z) ** 2) - mean(log_weight) ** 2
    off = max(abs(second - s2 / math.sqrt(2 * s2 - 1)), abs(variance - (1 - s2) ** 2 / 2))
    # And the mean of ln w splits into a divergence, in closed form, and the mean of ln p(x | z).
    split = mean(lambda z: model.log_likelihood(x, z)) - float(
        kl_standard_normal(q.mean, q.scale_tril.diagonal().log())
    )
    off = max(off, abs(float(model.elbo(x, q.mean, q.covariance)) - split))
    return off, (second**2000 - 1) / (2000 * variance)  # of the two variances, over two thousand such coordinates


@claim(
    "D6-18",
    "weights are unstable where logs are not: over d coordinates E w² grows as rᵈ, Var ln w as d; and the mean of "
    "ln w splits",
)
def logs_are_stable(generator: torch.Generator) -> Evidence:
    found = [weights_and_logs(generator) for _ in range(CASES)]
    # s² <= 0.95 gives r >= 1.0014, hence r^2000 - 1 >= 14, and 2000 Var ln w = 2.5.
    worst = max(off for off, _ in found) if all(ratio > 5 for _, ratio in found) else math.inf
    return Evidence(
        "largest difference from the closed forms", worst, QUADRATURE, "Gauss-Hermite quadrature with 120 nodes", CASES
    )


def nodes(x: Float[Tensor, ""]) -> Quadrature:
    """Where to integrate over z >= 0 what has its mass near 0 and near x."""
    middle = max(1.0, float(x))
    return line_quadrature(torch.tensor([0.0, middle / 2, middle, middle + 3, math.inf], dtype=torch.float64))


def bound_as_printed(
    prior_rate: Float[Tensor, "*#batch"], rate: Float[Tensor, "*#batch"], x: Float[Tensor, "*#batch"]
) -> Float[Tensor, "*#batch"]:
    """With 1/φ² for the second moment of Exp(φ), which is its variance."""
    return exponential_elbo(prior_rate, rate, x) + 1 / (2 * rate**2)


@claim(
    "DE57",
    "E Z² = 2/φ² for Exp(φ): the bound has 2/φ² where 1/φ² is printed, and its best rate is 2/x",
    right=exponential_elbo,
    printed=bound_as_printed,
)
def exponential_bound_by_quadrature(
    form: Callable[[Tensor, Tensor, Tensor], Tensor], generator: torch.Generator
) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        theta, phi, x = (
            uniform_tensor(0.2, 3, generator),
            uniform_tensor(0.5, 3, generator),
            uniform_tensor(-3, 4, generator),
        )
        z, weights = nodes(x)
        q = Exponential(phi).log_prob(z)
        there = q.exp() > 0
        log_joint = torch.where(there, ExponentialLatent(theta).log_joint(x, z), 0)
        worst = max(
            worst, gap(form(theta, phi, x), elbo_definition(log_joint, torch.where(there, q, 0), weights * q.exp()))
        )
        x = uniform_tensor(0.5, 4, generator)
        rate = (2 / x).requires_grad_()
        (gradient,) = torch.autograd.grad(form(rate.detach(), rate, x), rate)
        worst = max(worst, abs(float(gradient)))
    return Evidence(
        "largest error of the bound to quadrature, and derivative at 2/x",
        worst,
        QUADRATURE,
        "80 tanh-sinh nodes a piece",
        CASES,
    )


@claim(
    "D6-21",
    "the bound of the exponential model is largest at θ = φ = 2/x for x > 0; for x <= 0 it grows with φ; it is "
    "below ln p(x)",
)
def exponential_optimum(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        x = uniform_tensor(0.3, 4, generator)
        best = exponential_elbo_optimum(x)
        at = torch.stack([best.rate, best.rate]).requires_grad_()
        value = exponential_elbo(at[0], at[1], x)
        (gradients,) = torch.autograd.grad(value, at)
        worst = max(worst, gap(value, best.output), float(gradients.abs().max()) * 1e-3)
        others = 10 ** (2 * torch.rand(2, 500, generator=generator, dtype=torch.float64) - 1)
        worst = max(worst, float((exponential_elbo(others[0], others[1], x) - best.output).max()))
        for point in (x, -x, torch.zeros_like(x)):
            theta, phi = uniform_tensor(0.2, 3, generator), uniform_tensor(0.2, 3, generator)
            evidence = ExponentialLatent(theta).log_evidence(point)
            z, weights = nodes(point)
            summed = (weights * ExponentialLatent(theta).log_joint(point, z).exp()).sum().log()
            worst = max(worst, gap(evidence, summed) * roundings(64) / QUADRATURE)
            worst = max(worst, float(exponential_elbo(theta, phi, point) - evidence))
        rates = 10 ** torch.linspace(-1, 4, 50, dtype=torch.float64)
        growing = exponential_elbo(rates, rates, -x)
        if not bool((growing.diff() > 0).all()):
            worst = math.inf
    return Evidence(
        "largest amount above the maximum or the evidence", worst, roundings(64), "64 float64 roundings", 4 * CASES
    )


def with_softplus_diagonal(outputs: Float[Tensor, "*batch n"], dim: int) -> Float[Tensor, "*batch {dim} {dim}"]:
    return covariance_definition(outputs[..., : dim * (dim + 1) // 2], dim)


def as_they_come(outputs: Float[Tensor, "*batch n"], dim: int) -> Float[Tensor, "*batch {dim} {dim}"]:
    return outputs.unflatten(-1, (dim, dim))


@claim(
    "DE71",
    "what a network gives out becomes a covariance as L L^T with a positive diagonal; unchanged it is none",
    right=with_softplus_diagonal,
    printed=as_they_come,
)
def outputs_become_covariances(form: Callable[[Tensor, int], Tensor], generator: torch.Generator) -> Evidence:
    accepted = 0
    for _ in range(CASES):
        dim = randint(2, 5, generator)
        outputs = normal(dim * dim, generator=generator)
        try:
            distribution = MultivariateNormal(normal(dim, generator=generator), form(outputs, dim))
            accepted += bool(distribution.log_prob(distribution.mean).isfinite())
        except UserError:
            continue
    return Evidence("outputs that are a normal distribution's covariance", accepted, CASES, "all, exactly", CASES, "==")


def divergence_as_printed(mean: Float[Tensor, "*batch d"], std: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
    return (torch.log(std**2) + std**2 + mean**2 - 1).sum(dim=-1) / 2


@claim(
    ("DE61", "D6-29"),
    "D(N(μ, σ²)‖N(0, 1)) = ½ (σ² + μ² - 1 - ln σ²): with the sign of the logarithm as printed it may be negative",
    right=kl_standard_normal_definition,
    printed=divergence_as_printed,
)
def divergence_to_the_standard_normal(form: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst, standard = 0.0, torch.distributions.Normal(torch.zeros((), dtype=torch.float64), 1.0)
    for _ in range(CASES):
        mean, std = uniform_tensor(-2, 2, generator), uniform_tensor(0.3, 2, generator)
        found = form(mean.unsqueeze(0), std.unsqueeze(0))
        worst = max(worst, gap(found, kl_divergence(torch.distributions.Normal(mean, std), standard)))
        if form is kl_standard_normal_definition:
            worst = max(worst, gap(kl_standard_normal(mean.unsqueeze(0), std.log().unsqueeze(0)), found))
    return Evidence("largest difference from quadrature", worst, QUADRATURE, "80 tanh-sinh nodes a piece", CASES)
