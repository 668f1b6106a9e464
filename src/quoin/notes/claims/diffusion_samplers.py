"""From noise back to data: for normal data every sampler's distribution is known, and tends to that of the data with a
known order.

A sampler without new noise is then an affine map of its start, read off by running it on 0 and on the axes;
distributions are compared in full.
"""

import itertools
import math
from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.generate import (
    flow_log_prob,
    integrate_euler,
    integrate_midpoint,
    langevin,
    sample_ddim,
    sample_ddpm,
    sample_dpm_solver_2,
    sample_euler,
    sample_heun,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.diffusion import CASES, MeanAndCovariance, a_normal, a_schedule
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, min, randint
from quoin.prob import (
    GaussianDenoiser,
    GaussianFlow,
    MultivariateNormal,
    NoiseSchedule,
    linear_beta_schedule,
    posterior_step,
)

SIGMAS = 6.0
ABOUT_NORMAL = "15 nearly normal numbers, each beyond 6 twice in a billion"
ROWS = 20_000


def back(
    oracle: GaussianDenoiser, schedule: NoiseSchedule, t: int, earlier: int
) -> tuple[Float[Tensor, "d"], Float[Tensor, "d d"], Float[Tensor, ""], Float[Tensor, "1"]]:
    """The step from t to an earlier time as offset + matrix x_t + std z, and the weight of the prediction of x_0 in
    it."""
    d = len(oracle.distribution.mean)
    asked = simplex(d)
    step = posterior_step(schedule, oracle(asked, torch.full((d + 1,), t)).clean, asked, t, earlier)
    weight = posterior_step(schedule, torch.ones(1).double(), torch.zeros(1).double(), t, earlier).mean
    return step.mean[0], (step.mean[1:] - step.mean[0]).mT, step.std, weight


def reverse_distribution(
    oracle: GaussianDenoiser, schedule: NoiseSchedule, steps: int, start: MeanAndCovariance, *, whole: bool
) -> MeanAndCovariance:
    """The distribution at time 0 of a chain that starts with `start`; `whole` adds what is not known of x_0 to the
    variance of a step."""
    mean, covariance = start
    for t, earlier in itertools.pairwise(schedule.timesteps(steps)):
        offset, matrix, std, weight = back(oracle, schedule, t, earlier)
        mean = offset + matrix @ mean
        covariance = matrix @ covariance @ matrix.mT + std**2 * torch.eye(len(mean)).double()
        if whole:
            covariance = covariance + weight**2 * oracle.uncertainty(t)
    return mean, covariance


def distribution_distance(found: MeanAndCovariance, exact: MultivariateNormal) -> float:
    return max(gap(found[0], exact.mean), gap(found[1], exact.covariance))


def at_noise(oracle: GaussianDenoiser, schedule: NoiseSchedule) -> MeanAndCovariance:
    start = oracle.marginal(schedule.num_steps)
    return start.mean, start.covariance


@claim(
    "D0-T",
    "for normal data x_s given x_t is normal, with the variance given x_0 too plus what x_t leaves open of it: any "
    "stride is exact",
)
def exact_reverse_of_normal_data(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        schedule = a_schedule(randint(2, 40, generator), generator)
        oracle = GaussianDenoiser(a_normal(randint(1, 3, generator), generator), schedule)
        steps, start = randint(1, schedule.num_steps, generator), at_noise(oracle, schedule)
        worst = max(
            worst,
            distribution_distance(
                reverse_distribution(oracle, schedule, steps, start, whole=True), oracle.distribution
            ),
        )
        short = reverse_distribution(oracle, schedule, steps, start, whole=False)
        missing = torch.linalg.eigvalsh(oracle.distribution.covariance - short[1])
        if not float(missing.min()) > 0 or gap(short[0], oracle.distribution.mean) > 1e-9:
            worst = math.inf  # the variance alone, without the rest, must be seen to be too small; the mean is right
    return Evidence(
        "largest error of a mean or covariance",
        worst,
        1e-9,
        "float64 rounding over the least standard deviation",
        CASES,
    )


@claim(
    "D0-T",
    "ancestral sampling samples from the distribution of its chain, and DDIM with η = 1 is that chain: the same "
    "samples of the same noise",
)
def ddim_with_all_noise_is_ddpm(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(3):
        schedule = a_schedule(randint(8, 20, generator), generator)
        oracle = GaussianDenoiser(a_normal(2, generator), schedule)
        steps = randint(3, schedule.num_steps, generator)
        start, seed = normal(ROWS, 2, generator=generator), randint(0, 2**31, generator)
        chain = sample_ddpm(oracle, schedule, start, num_steps=steps, generator=torch.Generator().manual_seed(seed))
        other = sample_ddim(
            oracle, schedule, start, num_steps=steps, eta=1.0, generator=torch.Generator().manual_seed(seed)
        )
        if gap(chain, other) > 1e-8:
            worst = math.inf
        eye = torch.eye(2).double()
        worst = max(
            worst,
            deviations(
                chain, reverse_distribution(oracle, schedule, steps, (torch.zeros(2).double(), eye), whole=False)
            ),
        )
        half = sample_ddim(
            oracle, schedule, start, num_steps=steps, eta=0.5, generator=torch.Generator().manual_seed(seed)
        )
        if gap(chain, half) < 1e-3:
            worst = math.inf  # less noise must be seen to give other samples
    return Evidence("largest deviation of a moment, in standard errors", worst, SIGMAS, ABOUT_NORMAL, 15)


def gaussian_score(
    x: Float[Tensor, "n d"], *, mean: Float[Tensor, "d"], precision: Float[Tensor, "d d"]
) -> Float[Tensor, "n d"]:
    return (mean - x) @ precision


def deviations(samples: Float[Tensor, "n k"], distribution: MeanAndCovariance) -> float:
    """The error of the samples' mean and covariance in standard errors, which are known for whitened numbers."""
    white = torch.linalg.solve_triangular(
        torch.linalg.cholesky(distribution[1]), (samples - distribution[0]).mT, upper=False
    ).mT
    products = white.mT @ white / len(white) - torch.eye(white.shape[1]).double()
    error = torch.full_like(products, 1.0).fill_diagonal_(math.sqrt(2)) / math.sqrt(len(white))
    return max(float((products / error).abs().max()), float(white.mean(dim=0).abs().max()) * math.sqrt(len(white)))


def mapped(found: Float[Tensor, "m k"], start: MeanAndCovariance) -> MeanAndCovariance:
    """The distribution that an affine map makes of a normal one, from what it makes of 0 and of the axes."""
    matrix = (found[1:] - found[0]).mT
    return found[0] + matrix @ start[0], matrix @ start[1] @ matrix.mT


def simplex(d: int) -> Float[Tensor, "{d}+1 {d}"]:
    return torch.cat([torch.zeros(1, d), torch.eye(d)]).double()


def order(coarse: float, fine: float) -> float:
    """p where errors fall as steps^-p, from those of some steps and of four times as many."""
    return math.log(coarse / fine) / math.log(4)


@claim(
    "D0-T",
    "every sampler tends to the distribution of the data: DDPM, DDIM and Euler as 1/steps, Heun and DPM-Solver-2 "
    "as 1/steps²",
    not_shown="the limit itself, and data that are not those tried: the error falls at its rate as steps double",
)
def samplers_tend_to_the_data(generator: torch.Generator) -> Evidence:
    # Where little noise is left no solver is better than the jump to x̂_0 at the end, so that orders are measured at a
    # tenth of the way.
    schedule, few, many = linear_beta_schedule(2000), 50, 200
    oracle = GaussianDenoiser(a_normal(2, generator), schedule)
    start = at_noise(oracle, schedule)

    def off(sampler: Callable[..., Tensor], steps: int) -> float:
        seen: dict[int, Tensor] = {}
        sampler(oracle, schedule, simplex(2), num_steps=steps, generator=torch.Generator(), callback=seen.__setitem__)
        t = min(time for time in seen if time >= schedule.num_steps / 10)
        return distribution_distance(mapped(seen[t], start), oracle.marginal(t))

    def chain_off(steps: int) -> float:
        return distribution_distance(
            reverse_distribution(oracle, schedule, steps, start, whole=False), oracle.distribution
        )

    expected = {sample_ddim: 1, sample_euler: 1, sample_heun: 2, sample_dpm_solver_2: 2}
    worst = max(abs(order(off(sampler, few), off(sampler, many)) - p) for sampler, p in expected.items())
    worst = max(worst, abs(order(chain_off(few), chain_off(many)) - 1))
    source = "a rule of order p has p + O(1/steps); one that is wrong has 0, one that is of another order is 1 away"
    return Evidence("largest error of an order to 1, 1, 1, 2 and 2", worst, 0.4, source, 5)


@claim(
    "D0-T",
    "Langevin steps of size δ on N(μ, Σ) have the stationary covariance Σ (I - ½ δ Σ^-1)^-1: the distribution "
    "itself only as δ tends to 0",
)
def langevin_settles(generator: torch.Generator) -> Evidence:
    worst, least_seen = 0.0, math.inf
    for _ in range(3):
        distribution = a_normal(2, generator)
        inverse, eye = torch.linalg.inv(distribution.covariance), torch.eye(2).double()
        values = torch.linalg.eigvalsh(distribution.covariance)
        delta = float(0.5 * values[0])  # then every direction forgets its start by 1 - δ/λ a step
        settled = torch.linalg.inv(eye - delta * inverse / 2).mT @ distribution.covariance
        # Started at a point, they have forgotten it by e^-12: a start from the answer would be right without any step.
        count, start = math.ceil(12 * float(values[-1]) / delta), torch.zeros(ROWS // 4, 2).double()
        score = partial(gaussian_score, mean=distribution.mean, precision=inverse)
        samples = langevin(score, start, step_size=delta, num_steps=count, generator=generator)
        worst = max(worst, deviations(samples, (distribution.mean, settled)))
        least_seen = min(least_seen, deviations(samples, (distribution.mean, distribution.covariance)))
    if least_seen < SIGMAS:
        worst = math.inf  # the variance that the steps add must be seen
    return Evidence("largest deviation of a moment, in standard errors", worst, SIGMAS, ABOUT_NORMAL, 15)


@claim(
    "D0-T",
    "the flow of E[x - ε | x_t] carries N(0, I) to the data, and its density: by Euler as 1/steps, by midpoints as "
    "1/steps²",
    not_shown="the limit itself: the error falls at its rate as steps double",
)
def flow_carries_noise_to_data(generator: torch.Generator) -> Evidence:
    slack = []
    for _ in range(3):
        distribution = a_normal(2, generator)
        flow, start = GaussianFlow(distribution), (torch.zeros(2).double(), torch.eye(2).double())
        # of normal data midpoints have one order more
        for follow, p in (
            (integrate_euler, 1),
            (integrate_midpoint, 2),
        ):
            coarse, fine = (
                distribution_distance(mapped(follow(flow, simplex(2), num_steps=steps), start), distribution)
                for steps in (20, 80)
            )
            slack.append(order(coarse, fine) - p)
        x = distribution.mean + normal(20, 2, generator=generator) @ torch.linalg.cholesky(distribution.covariance).mT
        coarse, fine = (
            gap(flow_log_prob(flow, x, num_steps=steps).output, distribution.log_prob(x)) for steps in (20, 80)
        )
        slack.append(order(coarse, fine) - 2)
    source = "a rule of order p has p + O(1/steps) or more; one that is wrong has 0"
    return Evidence("least order above 1, 2 and 2", min(slack), -0.4, source, len(slack), ">=")
