"""Diffusion: the process forwards is known exactly, and so is its bound where the data are normal; a denoiser alone is
learnt.

What samplers do is in diffusion_samplers.py.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.generate import classifier_free_guidance_definition
from quoin.losses import denoising_kl, denoising_loss, flow_matching_loss, prior_kl, reconstruction_log_prob
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, min, randint, roundings
from quoin.prob import (
    EpsilonPrediction,
    GaussianDenoiser,
    GaussianFlow,
    MultivariateNormal,
    NoiseSchedule,
    SamplePrediction,
    VPrediction,
    add_noise,
    add_noise_definition,
    condition_normal,
    cosine_beta_schedule,
    diffusion_score,
    kl_normal,
    linear_beta_schedule,
    posterior_step,
    posterior_step_definition,
    sigmoid_beta_schedule,
)

CASES = 10
MeanAndCovariance = tuple[Float[Tensor, "k"], Float[Tensor, "k k"]]


def a_schedule(num_steps: int, generator: torch.Generator) -> NoiseSchedule:
    """One of the three, or one without any order."""
    kinds = (linear_beta_schedule, cosine_beta_schedule, sigmoid_beta_schedule)
    kind = randint(0, 3, generator)
    if kind < 3:
        return kinds[kind](num_steps)
    return NoiseSchedule(0.02 + 0.6 * torch.rand(num_steps, generator=generator, dtype=torch.float64))


def a_normal(d: int, generator: torch.Generator) -> MultivariateNormal:
    root = normal(d, d, generator=generator)
    return MultivariateNormal(
        normal(d, generator=generator), root @ root.mT / d + 0.1 * torch.eye(d, dtype=torch.float64)
    )


@claim(
    "D0-T",
    "t small steps have the distribution of one jump: mean √ᾱ_t x_0, variance 1 - ᾱ_t with ᾱ_t = Π (1 - β_s), for "
    "every schedule",
)
def steps_make_a_jump(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        schedule = a_schedule(randint(2, 40, generator), generator)
        t = randint(1, schedule.num_steps, generator)
        # The chain is linear in x_0 and in each ε_s: what it makes of a 1 in one entry is that one's coefficient.
        noises = torch.cat([torch.zeros(t, 1), torch.eye(t)], dim=1).double()
        start = torch.cat([torch.ones(1), torch.zeros(t)]).double()
        coefficients = add_noise_definition(start, schedule.betas[1 : t + 1], noises)
        zero, one = torch.zeros(1).double(), torch.ones(1).double()
        worst = max(worst, gap(coefficients[:1], add_noise(schedule, one, t, zero)))
        worst = max(worst, gap(coefficients[1:].square().sum().reshape(1), add_noise(schedule, zero, t, one).square()))
    return Evidence("largest error of a coefficient", worst, roundings(500), "500 float64 roundings", 2 * CASES)


@claim(
    "D0-T",
    "q(x_s | x_t, x_0) is the joint normal distribution of the chain, conditioned: its mean and variance, also "
    "over many steps at once",
)
def posterior_is_conditioning(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        schedule = a_schedule(randint(3, 30, generator), generator)
        earlier = randint(1, schedule.num_steps - 1, generator)
        t = randint(earlier + 1, schedule.num_steps, generator)
        clean, noisy = normal(4, 3, generator=generator), normal(4, 3, generator=generator)
        # (x_s, x_t) given x_0, of one coordinate: x_t = r x_s + fresh noise, r² = ᾱ_t / ᾱ_s.
        then, ratio = schedule.alpha_bar[earlier], torch.sqrt(schedule.alpha_bar[t] / schedule.alpha_bar[earlier])
        covariance = (1 - then) * torch.tensor([[1.0, 0.0], [0.0, 0.0]]).double()
        covariance[0, 1] = covariance[1, 0] = ratio * (1 - then)
        covariance[1, 1] = 1 - schedule.alpha_bar[t]
        joint = MultivariateNormal(
            clean.unsqueeze(-1) * torch.stack([torch.sqrt(then), schedule.signal[t]]), covariance
        )
        exact = joint.condition([1], noisy.unsqueeze(-1))
        found = posterior_step(schedule, clean, noisy, t, earlier)
        worst = max(
            worst, gap(found.mean, exact.mean.squeeze(-1)), gap(found.std**2, exact.covariance.flatten()[:1].squeeze())
        )
        one, by_bayes = (
            posterior_step(schedule, clean, noisy, t, t - 1),
            posterior_step_definition(schedule, clean, noisy, t),
        )
        worst = max(worst, gap(one.mean, by_bayes.mean), gap(one.std, by_bayes.std))
    # 1 - ᾱ_s of a schedule that begins with β = 1e-4 has lost 4 digits where it is a difference, as it is in the two
    # exact forms.
    return Evidence(
        "largest error of a mean or standard deviation",
        worst,
        1e-10,
        "float64 rounding, times 1e5 of a difference",
        4 * CASES,
    )


@claim(
    "D0-T",
    "noise, data and velocity determine each other: from one that is right the others are, and guidance by one is "
    "guidance by all",
)
def parametrisations_agree(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        schedule = a_schedule(randint(2, 30, generator), generator)
        clean, other, noise = (normal(6, 2, generator=generator) for _ in range(3))
        t = torch.randint(1, schedule.num_steps, (6,), generator=generator)
        noisy, level = add_noise(schedule, clean, t, noise), schedule.level(t, clean)
        guides = []
        for asked in (EpsilonPrediction(), SamplePrediction(), VPrediction()):
            right = asked.denoised(asked.target(clean, noise, level), noisy, level)
            worst = max(worst, gap(right.clean, clean), gap(right.noise, noise))
            # Two answers about the same x_t, as with and without a label.
            other_noise = SamplePrediction().denoised(other, noisy, level).noise
            answers = [asked.target(one, eps, level) for one, eps in ((clean, noise), (other, other_noise))]
            guides.append(
                asked.denoised(classifier_free_guidance_definition(answers[0], answers[1], 3.0), noisy, level).clean
            )
        worst = max(worst, gap(guides[0], guides[1]), gap(guides[0], guides[2]))
    return Evidence(
        "largest error of a conversion", worst, 1e-9, "float64 rounding over the least signal, about 1e-5", 8 * CASES
    )


@claim(
    "D0-T",
    "the score of the noisy data is minus the expected noise over its standard deviation, ∇ ln q(x_t) = -E[ε | "
    "x_t]/√(1 - ᾱ_t)",
)
def score_is_minus_noise(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        d, parts = randint(1, 3, generator), randint(2, 4, generator)
        schedule = a_schedule(randint(2, 30, generator), generator)
        t = randint(1, schedule.num_steps, generator)
        distributions = [a_normal(d, generator) for _ in range(parts)]
        weights = normal(parts, generator=generator).softmax(0)
        x = normal(5, d, generator=generator).requires_grad_()
        denoisers = [GaussianDenoiser(distribution, schedule) for distribution in distributions]
        # A mixture stays one: ln q by its components, whose posterior probabilities weigh their expected noises.
        scores = torch.stack([each.marginal(t).log_prob(x) for each in denoisers]) + weights.log().unsqueeze(-1)
        (gradient,) = torch.autograd.grad(scores.logsumexp(dim=0).sum(), x)
        times = torch.full((5,), t)
        with torch.no_grad():
            noises = torch.stack([each(x, times).noise for each in denoisers])
            expected = (scores.softmax(dim=0).unsqueeze(-1) * noises).sum(dim=0)
        worst = max(worst, gap(gradient, diffusion_score(expected, schedule.level(t, x))))
    return Evidence(
        "largest error of the score of a mixture",
        worst,
        1e-9,
        "float64 rounding over the least standard deviation",
        5 * CASES,
    )


def corners(d: int) -> Float[Tensor, "2*{d} {d}"]:
    """Points whose mean of any quadratic is its mean under N(0, I)."""
    eye = torch.eye(d, dtype=torch.float64)
    return math.sqrt(d) * torch.cat([eye, -eye])


def reverse_joint(oracle: GaussianDenoiser, schedule: NoiseSchedule) -> MeanAndCovariance:
    """The joint distribution of (x_0, ..., x_T) under the model: x_T ~ N(0, I), then posterior steps from the predicted
    x_0."""
    d, steps = len(oracle.distribution.mean), schedule.num_steps
    eye = torch.eye(d, dtype=torch.float64)
    means, rows = [torch.zeros(d).double()], [torch.cat([eye, torch.zeros(d, d * steps).double()], dim=1)]
    for t in range(steps, 0, -1):
        # One step is affine in x_t; its coefficients are read off our own step on 0 and on the axes.
        asked = torch.cat([torch.zeros(1, d).double(), eye])
        predictor = oracle(asked, torch.full((d + 1,), t)).clean
        back = posterior_step(schedule, predictor, asked, t, t - 1)
        std = torch.sqrt(schedule.betas[1]) if t == 1 else back.std
        offset, matrix = back.mean[0], (back.mean[1:] - back.mean[0]).mT
        row = matrix @ rows[-1]
        column = d * (steps - t + 1)
        row[:, column : column + d] += std * eye
        means.append(offset + matrix @ means[-1])
        rows.append(row)
    mean, root = torch.cat(means[::-1]), torch.cat(rows[::-1])
    return mean, root @ root.mT


def forward_joint(schedule: NoiseSchedule, clean: Float[Tensor, "d"]) -> MeanAndCovariance:
    """The distribution of (x_1, ..., x_T) given x_0, from cov(x_s, x_t) = √(ᾱ_t/ᾱ_s) (1 - ᾱ_s), s <= t."""
    d, log = len(clean), schedule.log_alpha_bar[1:]
    first, last = torch.minimum(log.unsqueeze(0), log.unsqueeze(1)), torch.maximum(log.unsqueeze(0), log.unsqueeze(1))
    table = torch.exp((first - last) / 2) * -torch.expm1(last)
    mean = (schedule.signal[1:].unsqueeze(-1) * clean).flatten()
    return mean, torch.kron(table, torch.eye(d, dtype=torch.float64))


@claim(
    "D0-T",
    "the bound, a sum of T divergences, is the evidence's: -ln p(x_0) plus D(q(x_1..T | x_0)‖p(x_1..T | x_0)), "
    "nothing else",
)
def bound_telescopes(generator: torch.Generator) -> Evidence:
    worst, least_slack = 0.0, math.inf
    for _ in range(CASES):
        d = randint(1, 2, generator)
        schedule = NoiseSchedule(
            0.05 + 0.5 * torch.rand(randint(2, 6, generator), generator=generator, dtype=torch.float64)
        )
        oracle = GaussianDenoiser(a_normal(d, generator), schedule)
        clean = normal(d, generator=generator)
        many = clean.expand(2 * d, d)  # one for each corner, which together stand for the noise
        total = prior_kl(schedule, clean.unsqueeze(0))[0]
        for t in range(1, schedule.num_steps + 1):
            times = torch.full((2 * d,), t)
            predictor = oracle(add_noise(schedule, many, times, corners(d)), times).clean
            term = (
                denoising_kl(schedule, many, predictor, times)
                if t > 1
                else -reconstruction_log_prob(schedule, many, predictor)
            )
            total = total + term.mean()
        mean, covariance = reverse_joint(oracle, schedule)
        evidence = MultivariateNormal(mean[:d], covariance[:d, :d]).log_prob(clean)
        hidden = condition_normal(mean, covariance, list(range(d)), clean)
        given_mean, given_covariance = forward_joint(schedule, clean)
        slack = kl_normal(given_mean, given_covariance, hidden.mean, hidden.covariance)
        least_slack = min(least_slack, float(slack))
        worst = max(worst, gap(total, slack - evidence))
    if not least_slack > 0:
        worst = math.inf
    return Evidence(
        "largest error of the bound, in nats", worst, 1e-9, "float64 rounding, times the covariances' condition", CASES
    )


@claim(
    "D0-T",
    "the mean squared error of a predictor is that of E[ε | x_t], which none undercuts, plus its mean squared "
    "distance from it",
)
def denoising_loss_finds_the_mean(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        d = randint(1, 3, generator)
        schedule = a_schedule(randint(2, 30, generator), generator)
        oracle = GaussianDenoiser(a_normal(d, generator), schedule)
        t = torch.full((4 * d,), randint(1, schedule.num_steps, generator))
        # Both losses are quadratic in the data and the noise together: corners of 2d coordinates stand for all of them.
        points = corners(2 * d)
        clean, noise = (
            oracle.distribution.mean + points[:, :d] @ torch.linalg.cholesky(oracle.distribution.covariance).mT,
            points[:, d:],
        )
        matrix, offset = normal(d, d, generator=generator), normal(d, generator=generator)

        def predictor(x: Tensor, t: Tensor, matrix: Tensor = matrix, offset: Tensor = offset) -> Tensor:
            return x @ matrix + offset

        def exact(x: Tensor, t: Tensor, oracle: GaussianDenoiser = oracle) -> Tensor:
            return oracle(x, t).noise

        found, least = (
            denoising_loss(each, schedule, EpsilonPrediction(), clean, t, noise).mean() for each in (predictor, exact)
        )
        noisy = add_noise(schedule, clean, t, noise)
        apart = (predictor(noisy, t) - exact(noisy, t)).square().mean()
        worst = max(worst, gap(found, least + apart))

        flow, time = (
            GaussianFlow(oracle.distribution),
            torch.full((4 * d,), float(torch.rand((), generator=generator))).double(),
        )
        found, least = (flow_matching_loss(each, clean, noise, time).mean() for each in (predictor, flow))
        noisy = time.unsqueeze(-1) * clean + (1 - time.unsqueeze(-1)) * noise
        worst = max(worst, gap(found, least + (predictor(noisy, time) - flow(noisy, time)).square().mean()))
    return Evidence(
        "largest error of a loss, of noise and of velocity",
        worst,
        1e-9,
        "float64 rounding over the least standard deviation",
        2 * CASES,
    )
