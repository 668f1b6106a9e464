"""What diffusion models are trained on and evaluated by: the squared error of a prediction, and the variational bound
it comes from.

    -ln p(x_0) <= D(q(x_T | x_0)‖p(x_T)) + Σ_{t=2}^T E D(q(x_{t-1} | x_t, x_0)‖p(x_{t-1} | x_t)) + E[-ln p(x_0 | x_1)]

with p(x_T) standard normal and p(x_{t-1} | x_t) the posterior step with the denoiser's x̂_0 for x_0, so that a
divergence is a weighted squared error. The process is in quoin.prob.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob import (
    Denoiser,
    NoiseSchedule,
    PredictionType,
    add_noise,
    kl_standard_normal,
    linear_path,
    linear_path_velocity,
)
from quoin.tensor import check_floating
from quoin.tensor.labels import as_indices

__all__ = [
    "DiffusionVLB",
    "denoising_kl",
    "denoising_kl_definition",
    "denoising_loss",
    "diffusion_vlb",
    "flow_matching_loss",
    "prior_kl",
    "reconstruction_log_prob",
    "sampled_diffusion_vlb",
]


class ExampleNoise(Protocol):
    """Noise of the examples of a batch, one row each, as `quoin.data.RowNoise` draws it."""

    def normal(self, *row_shape: int, dtype: torch.dtype | None = None) -> Float[Tensor, "batch *row_shape"]: ...

    def uniform(self, *row_shape: int, dtype: torch.dtype | None = None) -> Float[Tensor, "batch *row_shape"]: ...


Network = Callable[[Tensor, Tensor], Tensor]  # x_t (batch, ...), t (batch,) -> (batch, ...)


def denoising_loss(
    network: Network,
    schedule: NoiseSchedule,
    prediction_type: PredictionType,
    clean: Float[Tensor, "batch *shape"],
    t: Integer[Tensor, "batch"],
    noise: Float[Tensor, "batch *shape"],
) -> Float[Tensor, "batch"]:
    """The simple loss: the mean of (target - network(x_t, t))² over an example's numbers, at x_t = √ᾱ_t x_0 + √(1 -
    ᾱ_t) ε.

    Args:
        prediction_type: What the network predicts, and so the target: ε, x_0 or v.
        clean: x_0.
        t: Timesteps from 1 to T, one for each example.
        noise: ε ~ N(0, I).

    Notes: D0-T.
    """
    check_floating(clean, "clean")
    check_floating(noise, "noise")
    target = prediction_type.target(clean, noise, schedule.level(t, clean))
    return _mean_square(target - network(add_noise(schedule, clean, t, noise), t))


def flow_matching_loss(
    velocity: Network,
    data: Float[Tensor, "batch *shape"],
    noise: Float[Tensor, "batch *shape"],
    t: Float[Tensor, "batch"],
) -> Float[Tensor, "batch"]:
    """The mean of (x - ε - v(x_t, t))² over an example's numbers, at x_t = (1 - t) ε + t x.

    Notes: D0-T.
    """
    check_floating(data, "data")
    check_floating(noise, "noise")
    return _mean_square(linear_path_velocity(noise, data) - velocity(linear_path(noise, data, t), t))


def prior_kl(schedule: NoiseSchedule, clean: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch"]:
    """D(q(x_T | x_0)‖N(0, I)): what of the data is still there when the noise should be pure.

    Notes: D0-T.
    """
    check_floating(clean, "clean")
    mean = schedule.signal[-1] * clean.flatten(1)
    return kl_standard_normal(mean, torch.log(schedule.noise[-1]).to(mean).expand_as(mean))


def denoising_kl_definition(
    schedule: NoiseSchedule, clean: Float[Tensor, "batch *shape"], prediction: Float[Tensor, "batch *shape"], t: int
) -> Float[Tensor, "batch"]:
    """D(q(x_{t-1} | x_t, x_0)‖q(x_{t-1} | x_t, x̂_0)) = ‖μ̃ - μ‖² / (2 β̃_t), the distributions having one variance:
    β̃_t = β_t (1 - ᾱ_{t-1})/(1 - ᾱ_t).

    Args:
        prediction: x̂_0, the prediction of x_0 and not of the noise.

    Notes: D0-T.
    """
    _check_prediction(clean, prediction)
    beta, now, then = schedule.betas[t], schedule.alpha_bar[t], schedule.alpha_bar[t - 1]
    variance = beta * (1 - then) / (1 - now)
    means_apart = torch.sqrt(then) * beta / (1 - now) * (clean - prediction)
    return means_apart.flatten(1).square().sum(dim=-1) / (2 * variance)


def denoising_kl(
    schedule: NoiseSchedule,
    clean: Float[Tensor, "batch *shape"],
    prediction: Float[Tensor, "batch *shape"],
    t: Integer[Tensor, "batch"],
) -> Float[Tensor, "batch"]:
    """`denoising_kl_definition` for a time each, as ½ [SNR_{t-1} - SNR_t] ‖x_0 - x̂_0‖² with SNR = ᾱ/(1 - ᾱ), t >= 2.

    Args:
        prediction: x̂_0, the prediction of x_0 and not of the noise.

    Notes: D0-T.
    """
    _check_prediction(clean, prediction)
    schedule.check_timesteps(t, clean)
    t = as_indices(t, "t")
    if bool((t < 2).any()):
        raise UserError(
            "expected times of 2 or more, got 1 or less; the first step has no divergence but `reconstruction_log_prob`"
        )
    # Taken in float64, and not as 1/(1 - ᾱ) - 1: at late times the ratio is far below the rounding of 1.
    ratio = -torch.exp(schedule.log_alpha_bar) / torch.expm1(schedule.log_alpha_bar)
    weight = ((ratio[t.cpu() - 1] - ratio[t.cpu()]) / 2).to(clean)
    return weight * (clean - prediction).flatten(1).square().sum(dim=-1)


def reconstruction_log_prob(
    schedule: NoiseSchedule,
    clean: Float[Tensor, "batch *shape"],
    prediction: Float[Tensor, "batch *shape"],
    *,
    bin_width: float = 0.0,
) -> Float[Tensor, "batch"]:
    """ln p(x_0 | x_1) for N(x̂_0, β_1 I): its density, or with a `bin_width` the probability of each value's bin.

    Values on a grid, such as grey levels, have bins x ± bin_width/2; the bins of an example at the ends, -1 and 1, go
    on for ever.

    Args:
        prediction: x̂_0, predicted from x_1.
        bin_width: Distance of two neighbouring values of the data; 0 for a density.

    Notes: D0-T.
    """
    _check_prediction(clean, prediction)
    std = math.sqrt(float(schedule.betas[1]))
    away = (clean - prediction).flatten(1) / std
    if not bin_width:
        return (-away.square() / 2 - math.log(std * math.sqrt(2 * math.pi))).sum(dim=-1)
    half, ends = bin_width / (2 * std), clean.flatten(1)
    # By symmetry every bin is computed in the left tail, where differences of the distribution function keep their
    # digits.
    upper = torch.where(ends >= 1, math.inf, away + half)
    lower = torch.where(ends <= -1, -math.inf, away - half)
    flip = lower + upper > 0
    upper, lower = torch.where(flip, -lower, upper), torch.where(flip, -upper, lower)
    high, low = torch.special.log_ndtr(upper), torch.special.log_ndtr(lower)
    return (high + torch.log(-torch.expm1(low - high))).sum(dim=-1)


@shown
class DiffusionVLB(NamedTuple):
    """The bound in nats an example, and the three terms that it is the sum of."""

    output: Float[Tensor, "batch"]
    prior: Float[Tensor, "batch"]  # what x_T still has of x_0
    denoising: Float[Tensor, "batch"]  # the divergences of times 2 to T
    reconstruction: Float[Tensor, "batch"]  # -ln p(x_0 | x_1)


def diffusion_vlb(
    denoiser: Denoiser,
    schedule: NoiseSchedule,
    clean: Float[Tensor, "batch *shape"],
    *,
    generator: torch.Generator,
    bin_width: float = 0.0,
) -> DiffusionVLB:
    """The variational bound, each of its T terms by one sample of x_t.

    Args:
        denoiser: Takes x_t and t to predictions of x_0 and of the noise.
        generator: Or the noise of these examples, as `quoin.data.RowNoise` draws it.
        bin_width: As in `reconstruction_log_prob`; 0 for a bound on the density.

    Notes: D0-T.
    """
    denoising = clean.new_zeros(len(clean))
    for time in range(2, schedule.num_steps + 1):
        t = torch.full((len(clean),), time, device=clean.device)
        denoising = denoising + denoising_kl(schedule, clean, _predict(denoiser, schedule, clean, t, generator), t)
    return _vlb(denoiser, schedule, clean, denoising, bin_width, generator)


def sampled_diffusion_vlb(
    denoiser: Denoiser,
    schedule: NoiseSchedule,
    clean: Float[Tensor, "batch *shape"],
    *,
    num_times: int,
    generator: torch.Generator | ExampleNoise,
    bin_width: float = 0.0,
) -> DiffusionVLB:
    """`diffusion_vlb` with `num_times` times for each example instead of all: the same mean, at a fraction of the cost.

    The times are stratified: one from each of `num_times` equal pieces of 2 ... T, shifted by one random number an
    example.

    Args:
        denoiser: Takes x_t and t to predictions of x_0 and of the noise.
        generator: Or the noise of these examples, as `quoin.data.RowNoise` draws it.
        bin_width: As in `reconstruction_log_prob`; 0 for a bound on the density.

    Notes: D0-T.
    """
    terms = schedule.num_steps - 1
    if not 1 <= num_times <= max(1, terms):
        raise UserError(
            f"expected 1 to {max(1, terms)} times, as many as the schedule has steps behind the first, got {num_times}"
        )
    if isinstance(generator, torch.Generator):
        shift = torch.rand(len(clean), generator=generator, dtype=torch.float64, device=generator.device)
    else:
        shift = generator.uniform(dtype=torch.float64)
    shift = shift.to(clean.device)
    denoising = clean.new_zeros(len(clean))
    for i in range(num_times if terms else 0):
        t = 2 + ((i + shift) * terms / num_times).long().clamp(max=terms - 1)
        denoising = denoising + terms / num_times * denoising_kl(
            schedule, clean, _predict(denoiser, schedule, clean, t, generator), t
        )
    return _vlb(denoiser, schedule, clean, denoising, bin_width, generator)


def _predict(
    denoiser: Denoiser, schedule: NoiseSchedule, clean: Tensor, t: Tensor, generator: torch.Generator | ExampleNoise
) -> Tensor:
    if isinstance(generator, torch.Generator):
        noise = torch.randn(clean.shape, generator=generator, dtype=clean.dtype, device=generator.device)
    else:
        noise = generator.normal(*clean.shape[1:], dtype=clean.dtype)
    return denoiser(add_noise(schedule, clean, t, noise.to(clean.device)), t).clean


def _vlb(
    denoiser: Denoiser,
    schedule: NoiseSchedule,
    clean: Tensor,
    denoising: Tensor,
    bin_width: float,
    generator: torch.Generator | ExampleNoise,
) -> DiffusionVLB:
    one = torch.ones(len(clean), dtype=torch.long, device=clean.device)
    prediction = _predict(denoiser, schedule, clean, one, generator)
    reconstruction = -reconstruction_log_prob(schedule, clean, prediction, bin_width=bin_width)
    prior = prior_kl(schedule, clean)
    return DiffusionVLB(prior + denoising + reconstruction, prior, denoising, reconstruction)


def _check_prediction(clean: Tensor, prediction: Tensor) -> None:
    check_floating(clean, "clean")
    check_floating(prediction, "prediction")


def _mean_square(error: Tensor) -> Tensor:
    return error.flatten(1).square().mean(dim=-1)
