"""Gaussian noise: the likelihood of linear regression, why least squares maximises it, and why it is a density."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.losses import gaussian_nll
from quoin.models import LinearGaussian, least_squares, linear_regression_definition
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.linear_models import CASES, ROUNDING, ROUNDING_SOURCE, Problem, model_at, random_problem
from quoin.notes.claims.rounding import gap, max, roundings


@claim("Z3.13", "under independent noise the likelihood of all targets is the product of the likelihoods of each")
def likelihood_factorises(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = random_problem(generator)
        distribution = distribution_at(p)
        with torch.no_grad():
            covariance = distribution.scale**2 * torch.eye(len(p.y), dtype=torch.float64)
            joint = torch.distributions.MultivariateNormal(distribution(p.X), covariance).log_prob(p.y)
            worst = max(worst, gap(distribution.log_prob(p.y, p.X).sum(), joint))
    return Evidence("largest |Σ log p(y_i|x_i) - log p(y|X)|, relative", worst, ROUNDING, ROUNDING_SOURCE, CASES)


def distribution_at(p: Problem) -> LinearGaussian:
    distribution = LinearGaussian(len(p.weight), scale=p.lr + 0.5).double()
    distribution.load_state_dict(model_at(p).state_dict())
    return distribution


def bracketed(residual: Float[Tensor, "n"], variance: float) -> Float[Tensor, ""]:
    return sum((math.log(2 * math.pi * variance) / 2 + r**2 / (2 * variance) for r in residual), torch.zeros(()))


def not_bracketed(residual: Float[Tensor, "n"], variance: float) -> Float[Tensor, ""]:
    return sum(math.log(2 * math.pi * variance) / 2 for _ in residual) + residual[-1] ** 2 / (2 * variance)


@claim(
    "ZE8",
    "the sum in the negative log-likelihood is over both terms of each example",
    right=bracketed,
    printed=not_bracketed,
)
def sum_over_both_terms(form: Callable[[Tensor, float], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = random_problem(generator)
        distribution = distribution_at(p)
        with torch.no_grad():
            ours = form(p.residual, distribution.scale**2)
            worst = max(
                worst,
                gap(ours, -distribution.log_prob(p.y, p.X).sum()),
                gap(ours, gaussian_nll(distribution(p.X), p.y, distribution.scale).sum()),
            )
    return Evidence("largest |formula - (-log p(y|X))|, relative", worst, ROUNDING, ROUNDING_SOURCE, CASES)


def as_density(values: Float[Tensor, "n"], step: float) -> Float[Tensor, ""]:
    return (values * step).sum()


def as_probability(values: Float[Tensor, "n"], step: float) -> Float[Tensor, ""]:
    return values.sum()


@claim(
    "ZE43",
    "exp(-loss) is a density in y: its integral is one, not the sum of its values",
    right=as_density,
    printed=as_probability,
)
def likelihood_is_a_density(form: Callable[[Tensor, float], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = random_problem(generator)
        distribution, step = distribution_at(p), 0.01
        with torch.no_grad():
            x = p.X[:1]
            y = distribution(x) + step * torch.arange(-1200, 1201, dtype=torch.float64)
            total = form(distribution.log_prob(y, x.expand(len(y), -1)).exp(), step)
        worst = max(worst, gap(total, torch.ones_like(total)))
    # Equidistant sums of a normal density err by 2 exp(-2 (π scale/step)²), and scale is at least 50 steps; 12 units
    # hold the tails.
    return Evidence(
        "largest |total over all y - 1|",
        worst,
        roundings(2401),
        "a rounding for each of 2401 terms; no other error",
        CASES,
    )


@claim("ZE43", "a negative log-likelihood can be negative: at the mean it is ln(σ√2π), below 0 for every σ < 1/√2π")
def negative_log_likelihood_below_zero(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        scale = 0.01 + 0.38 * float(torch.rand((), generator=generator, dtype=torch.float64))
        distribution = LinearGaussian(3, scale=scale).double()
        x = torch.randn(1, 3, generator=generator, dtype=torch.float64)
        with torch.no_grad():
            loss = -distribution.log_prob(distribution(x), x)
        exact = torch.tensor([math.log(scale * math.sqrt(2 * math.pi))], dtype=torch.float64)
        worst = max(worst, gap(loss, exact) if float(loss) < 0 else math.inf)
    return Evidence("largest |loss at the mean - ln(σ√2π)|", worst, roundings(8), "8 float64 roundings", CASES)


@claim("Z3.15", "the least-squares fit is the maximum of the Gaussian likelihood, whatever the scale of the noise")
def least_squares_is_maximum_likelihood(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = random_problem(generator, overdetermined=True)
        scale = p.lr + 0.5

        def nll(parameters: Tensor, p: Problem = p, scale: float = scale) -> Tensor:
            return gaussian_nll(linear_regression_definition(p.X, parameters[:-1], parameters[-1]), p.y, scale).sum()

        # The negative log-likelihood is quadratic, so one Newton step from anywhere lands on its minimum.
        start = torch.cat([p.weight, p.bias.unsqueeze(0)])
        gradient = torch.autograd.functional.jacobian(nll, start)
        hessian = torch.autograd.functional.hessian(nll, start)
        most_probable = start - torch.linalg.solve(hessian, gradient)
        fit = least_squares(p.X, p.y)
        difference = gap(torch.cat([fit.weight, fit.bias.unsqueeze(0)]), most_probable)
        worst = max(worst, difference / float(torch.linalg.cond(hessian)))
    source = f"{ROUNDING_SOURCE}, each magnified at most by the condition number"
    return Evidence("largest |least squares - maximum likelihood| / condition number", worst, ROUNDING, source, CASES)


@claim(
    "Z3.18",
    "a product of densities underflows (standard normal at one standard deviation: to 0 from 525 factors), its log "
    "does not",
)
def product_of_densities_underflows(generator: torch.Generator) -> Evidence:
    one_deviation = torch.ones(1000, dtype=torch.float64)
    losses = gaussian_nll(torch.zeros_like(one_deviation), one_deviation, 1.0)
    product = (-losses).exp().cumprod(dim=0)
    exact = 1000 * (math.log(2 * math.pi) + 1) / 2
    log_is_right = abs(float(losses.sum()) / exact - 1) <= ROUNDING
    first = int((product == 0).nonzero()[0]) + 1 if log_is_right else math.nan
    return Evidence("factors until the product is exactly 0", first, 525, "exact: float64 ends at 2^-1074", 1000, "==")


@claim("Z3.18", "the product of likelihoods and the sum of their logs are largest at the same parameters")
def product_and_sum_of_logs_agree(generator: torch.Generator) -> Evidence:
    different = compared = 0
    for _ in range(CASES):
        p = random_problem(generator)
        steps = torch.linspace(-2, 2, 41, dtype=torch.float64)
        losses = torch.stack(
            [gaussian_nll(linear_regression_definition(p.X, p.weight + s, p.bias), p.y, 1.0) for s in steps]
        )
        losses = losses[losses.sum(dim=1) < 700]  # beyond, the product is no longer a float
        if len(losses) > 1:
            compared += 1
            different += int((-losses).exp().prod(dim=1).argmax() != losses.sum(dim=1).argmin())
    return Evidence(
        "cases with different best parameters", different, 0, "exact: the logarithm is increasing", compared, "=="
    )
