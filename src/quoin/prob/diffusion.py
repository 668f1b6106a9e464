"""Data drowned in noise, a little at each step, and what is known of the way back: the process behind diffusion models.

The chain forwards and its jump to any time; one step backwards when the data are known; the three things a network may
be asked for, each of which gives the others; the score. Times are diffusion_schedule.py's, losses are in quoin.losses
and samplers in quoin.generate.   t a time, or one for each example
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Integer, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.diffusion_schedule import Level, NoiseSchedule
from quoin.prob.normal import MultivariateNormal
from quoin.tensor import as_floating
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = [
    "Denoised",
    "Denoiser",
    "EpsilonPrediction",
    "GaussianDenoiser",
    "PosteriorStep",
    "PredictionType",
    "SamplePrediction",
    "VPrediction",
    "add_noise",
    "add_noise_definition",
    "diffusion_score",
    "make_denoiser",
    "posterior_step",
    "posterior_step_definition",
]


def add_noise_definition(
    x: Float[Tensor, "batch *shape"] | ArrayLike,
    betas: Float[Tensor, "steps"] | ArrayLike,
    noises: Float[Tensor, "steps batch *shape"] | ArrayLike,
) -> Float[Tensor, "batch *shape"]:
    """x_s = √(1 - β_s) x_{s-1} + √β_s ε_s for s = 1 ... t, step by step from x_0.

    Notes: D0-T.
    """
    x = float_tensor(x, "x", betas, noises)
    betas = float_tensor(betas, "betas", x, noises)
    noises = float_tensor(noises, "noises", x, betas)
    for beta, noise in zip(betas, noises, strict=True):
        x = torch.sqrt(1 - beta) * x + torch.sqrt(beta) * noise
    return x


def add_noise(
    schedule: NoiseSchedule,
    clean: Float[Tensor, "batch *shape"] | ArrayLike,
    t: int | Integer[Tensor, "batch"] | ArrayLike,
    noise: Float[Tensor, "batch *shape"] | ArrayLike,
) -> Float[Tensor, "batch *shape"]:
    """x_t = √ᾱ_t x_0 + √(1 - ᾱ_t) ε: in distribution the chain of `add_noise_definition`, in one jump.

    Args:
        clean: x_0.
        t: One timestep for all examples or one for each, from 0, the data, to T.
        noise: ε.

    >>> add_noise(NoiseSchedule(torch.tensor([0.36])), torch.ones(1), 1, torch.full((1,), 2.0))  # 0.8 · 1 + 0.6 · 2
    tensor([2.])

    Notes: D0-T.
    """
    t = t if isinstance(t, int) else number_tensor(t, "t")
    clean = float_tensor(clean, "clean", noise)
    noise = float_tensor(noise, "noise", clean)
    if clean.shape != noise.shape:
        raise UserError(
            f"expected noise of the shape of the examples, {tuple(clean.shape)}, got {tuple(noise.shape)}; sample "
            "as much"
        )
    level = schedule.level(t, clean)
    return level.signal * clean + level.noise * noise


@shown
class PosteriorStep(NamedTuple):
    """The distribution N(mean, std² I) of an earlier time."""

    mean: Float[Tensor, "batch *shape"]
    std: Float[Tensor, ""] | Float[Tensor, "batch *#shape"]  # one for all, or one for each example


def posterior_step_definition(
    schedule: NoiseSchedule,
    clean: Float[Tensor, "batch *shape"] | ArrayLike,
    noisy: Float[Tensor, "batch *shape"] | ArrayLike,
    t: int,
) -> PosteriorStep:
    """q(x_{t-1} | x_t, x_0) by Bayes: precisions add, 1/v = (1 - β_t)/β_t + 1/(1 - ᾱ_{t-1}), and means are
    weighed by them.

    From x_{t-1} ~ N(√ᾱ_{t-1} x_0, 1 - ᾱ_{t-1}) and x_t ~ N(√(1 - β_t) x_{t-1}, β_t), for t >= 2.

    Notes: D0-T.
    """
    clean = float_tensor(clean, "clean", noisy)
    noisy = float_tensor(noisy, "noisy", clean)
    beta, alpha_bar = schedule.betas[t], schedule.alpha_bar[t - 1]
    variance = 1 / ((1 - beta) / beta + 1 / (1 - alpha_bar))
    mean = variance * (torch.sqrt(1 - beta) / beta * noisy + torch.sqrt(alpha_bar) / (1 - alpha_bar) * clean)
    return PosteriorStep(mean, torch.sqrt(variance))


def posterior_step(
    schedule: NoiseSchedule,
    clean: Float[Tensor, "batch *shape"] | ArrayLike,
    noisy: Float[Tensor, "batch *shape"] | ArrayLike,
    t: int | Integer[Tensor, "batch"] | ArrayLike,
    earlier: int | Integer[Tensor, "batch"] | ArrayLike,
) -> PosteriorStep:
    """q(x_s | x_t, x_0) for any s < t: with β = 1 - ᾱ_t/ᾱ_s the chain's step from s to t,

    mean = [√ᾱ_s β x_0 + √(1 - β) (1 - ᾱ_s) x_t] / (1 - ᾱ_t),   variance = β (1 - ᾱ_s)/(1 - ᾱ_t).

    At s = 0 it is x_0 itself. The coefficients are taken in float64: β as a difference of float32 numbers would
    keep three digits.

    Args:
        clean: x_0.
        noisy: x_t.
        earlier: s.

    Notes: D0-T.
    """
    t = t if isinstance(t, int) else number_tensor(t, "t")
    earlier = earlier if isinstance(earlier, int) else number_tensor(earlier, "earlier")
    clean = float_tensor(clean, "clean", noisy)
    noisy = float_tensor(noisy, "noisy", clean)
    for each in (t, earlier):
        schedule.level(each, clean)  # raises an error for times that are not the schedule's
    now, then = (schedule.log_alpha_bar[each if isinstance(each, int) else each.long().cpu()] for each in (t, earlier))
    if bool((now >= then).any()):
        raise UserError(
            "expected a step back, to an earlier time, got one to the same or a later time; give times that fall"
        )
    beta, noise_now, noise_then = -torch.expm1(now - then), -torch.expm1(now), -torch.expm1(then)
    of_clean = torch.exp(then / 2) * beta / noise_now
    of_noisy = torch.exp((now - then) / 2) * noise_then / noise_now
    std = torch.sqrt(beta * noise_then / noise_now)
    of_clean, of_noisy, std = (_shaped(each, clean) for each in (of_clean, of_noisy, std))
    return PosteriorStep(of_clean * clean + of_noisy * noisy, std)


@shown
class Denoised(NamedTuple):
    """Both unknowns of x_t = signal x_0 + noise ε, as a model guesses them; either gives the other."""

    clean: Float[Tensor, "batch *shape"]  # x_0
    noise: Float[Tensor, "batch *shape"]  # ε


Denoiser = Callable[[Tensor, Tensor], Denoised]  # x_t (b, ...) and t (b,)


@runtime_checkable
class PredictionType(Protocol):
    """What a network is asked for, and how its answer is read."""

    def target(
        self, clean: Float[Tensor, "batch *shape"], noise: Float[Tensor, "batch *shape"], level: Level
    ) -> Float[Tensor, "batch *shape"]:
        """What the network should predict."""
        ...

    def denoised(
        self, prediction: Float[Tensor, "batch *shape"], noisy: Float[Tensor, "batch *shape"], level: Level
    ) -> Denoised:
        """Data and noise from its prediction."""
        ...


@shown
class EpsilonPrediction:
    """The network predicts ε; then x_0 = (x_t - noise ε) / signal, which is ill-conditioned where hardly any
    signal is left.

    Notes: D0-T.
    """

    def target(
        self, clean: Float[Tensor, "batch *shape"], noise: Float[Tensor, "batch *shape"], level: Level
    ) -> Float[Tensor, "batch *shape"]:
        return noise

    def denoised(
        self, prediction: Float[Tensor, "batch *shape"], noisy: Float[Tensor, "batch *shape"], level: Level
    ) -> Denoised:
        return Denoised((noisy - level.noise * prediction) / level.signal, prediction)


@shown
class SamplePrediction:
    """The network predicts x_0; then ε = (x_t - signal x_0) / noise, which is ill-conditioned where there is
    hardly any noise.

    Notes: D0-T.
    """

    def target(
        self, clean: Float[Tensor, "batch *shape"], noise: Float[Tensor, "batch *shape"], level: Level
    ) -> Float[Tensor, "batch *shape"]:
        return clean

    def denoised(
        self, prediction: Float[Tensor, "batch *shape"], noisy: Float[Tensor, "batch *shape"], level: Level
    ) -> Denoised:
        return Denoised(prediction, (noisy - level.signal * prediction) / level.noise)


@shown
class VPrediction:
    """The network predicts v = signal ε - noise x_0, which rotates with x_t: x_0 = signal x_t - noise v, ε = noise
    x_t + signal v, at every time.

    Notes: D0-T.
    """

    def target(
        self, clean: Float[Tensor, "batch *shape"], noise: Float[Tensor, "batch *shape"], level: Level
    ) -> Float[Tensor, "batch *shape"]:
        return level.signal * noise - level.noise * clean

    def denoised(
        self, prediction: Float[Tensor, "batch *shape"], noisy: Float[Tensor, "batch *shape"], level: Level
    ) -> Denoised:
        return Denoised(
            level.signal * noisy - level.noise * prediction, level.noise * noisy + level.signal * prediction
        )


def make_denoiser(
    network: Callable[[Tensor, Tensor], Tensor], schedule: NoiseSchedule, prediction_type: PredictionType
) -> Denoiser:
    """A network of (x_t, t), trained to predict what `prediction_type` names, as the denoiser that bounds
    and samplers take.
    """

    def denoise(noisy: Tensor, t: Tensor) -> Denoised:
        return prediction_type.denoised(network(noisy, t), noisy, schedule.level(t, noisy))

    return denoise


def diffusion_score(noise: Real[Tensor, "batch *shape"] | ArrayLike, level: Level) -> Float[Tensor, "batch *shape"]:
    """∇ ln q(x_t) = -E[ε | x_t] / noise: a denoiser that knows the mean of the noise knows the gradient
    of the log-density.

    Args:
        noise: E[ε | x_t], a denoiser's prediction of the noise.
        level: Signal and noise at t, as `schedule.level` gives them.

    Notes: D0-T.
    """
    noise = number_tensor(noise, "noise")
    return -as_floating(noise) / level.noise


@shown
class GaussianDenoiser:
    """The exact denoiser of x_0 ~ N(μ, Σ), an affine map: E[x_0 | x_t] = μ + a Σ (a² Σ + n² I)^-1 (x_t - a μ), a and n
    signal and noise.

    With it every sampler's distribution is normal and known: the oracle of everything in a diffusion model
    but the network.

    Notes: D0-T.
    """

    def __init__(self, distribution: MultivariateNormal, schedule: NoiseSchedule):
        if distribution.mean.ndim != 1:
            raise UserError(
                f"expected one normal distribution, its mean (d,), got {tuple(distribution.mean.shape)}; give one "
                "without batch axes"
            )
        self.distribution, self.schedule = distribution, schedule
        self._gains: dict[int, Tensor] = {}  # a time is asked about again and again

    def marginal(self, t: int) -> MultivariateNormal:
        """The distribution of x_t: N(a μ, a² Σ + n² I)."""
        level = self.schedule.level(t, self.distribution.mean)
        eye = torch.eye(len(self.distribution.mean)).to(self.distribution.covariance)
        return MultivariateNormal(
            level.signal * self.distribution.mean, level.signal**2 * self.distribution.covariance + level.noise**2 * eye
        )

    def gain(self, t: int) -> Float[Tensor, "d d"]:
        """a Σ (a² Σ + n² I)^-1: how much of what is seen is believed."""
        if t not in self._gains:
            self._gains[t] = (
                self.schedule.signal[t]
                * torch.linalg.solve(self.marginal(t).covariance, self.distribution.covariance).mT
            )
        return self._gains[t]

    def uncertainty(self, t: int) -> Float[Tensor, "d d"]:
        """Cov(x_0 | x_t) = Σ - gain · a Σ."""
        return self.distribution.covariance - self.gain(t) @ self.distribution.covariance * self.schedule.signal[t]

    def __call__(self, noisy: Float[Tensor, "batch d"], t: Integer[Tensor, "batch"]) -> Denoised:
        level = self.schedule.level(t, noisy)  # raises an error for times that are not the schedule's
        clean = torch.empty_like(noisy)
        for time in t.unique().tolist():  # samplers ask at one time, tests at a few
            here = t == time
            away = noisy[here] - self.schedule.signal[time] * self.distribution.mean
            clean[here] = self.distribution.mean + away @ self.gain(time).mT
        return SamplePrediction().denoised(clean, noisy, level)


def _shaped(coefficient: Tensor, like: Tensor) -> Tensor:
    """A number as it is; one for each example in the dtype, on the device and with the axes of `like`."""
    return coefficient if coefficient.ndim == 0 else coefficient.reshape(-1, *[1] * (like.ndim - 1)).to(like)
