"""The reverse process by a denoiser: ancestral sampling (DDPM), its shortcuts (DDIM) and the flow that they tend to.

Every sampler goes through `schedule.timesteps(num_steps)` and evaluates the denoiser at those timesteps only. It begins
with a `start` from `sample_initial_noise`, and whoever passes `callback` is given each timestep and the sample there,
for a strip of images. Solvers of higher order are in diffusion_solvers.py, Langevin steps in langevin.py and guidance
by labels in guidance.py.
"""

import itertools
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError, format_value
from quoin.prob import Denoised, Denoiser, NoiseSchedule, SamplePrediction, posterior_step

__all__ = ["StepCallback", "clip_denoiser", "denoise_at", "sample_ddim", "sample_ddpm", "sample_initial_noise"]

StepCallback = Callable[[int, Tensor], None]  # a timestep and the samples (batch, ...) there


def sample_initial_noise(
    shape: Sequence[int],
    *,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Float[Tensor, "batch ..."]:
    """x_T ~ N(0, I) of `shape`, sampled on the generator's device, so that a seed gives the same start on
    every device.
    """
    if not shape or min(shape) < 1:
        raise UserError(f"expected at least one sample, got the shape {tuple(shape)}; ask for 1 or more")
    return torch.randn(tuple(shape), generator=generator, dtype=dtype, device=generator.device).to(device)


def sample_ddpm(
    denoiser: Denoiser,
    schedule: NoiseSchedule,
    start: Float[Tensor, "batch *shape"],
    *,
    num_steps: int,
    generator: torch.Generator,
    callback: StepCallback | None = None,
) -> Float[Tensor, "batch *shape"]:
    """Ancestral sampling: x_s ~ q(x_s | x_t, x̂_0(x_t)), the posterior step if the prediction x̂_0 were the data.

    Args:
        denoiser: Predicts x̂_0 and ε̂ from x_t (batch, ...) and t (batch,), as `quoin.prob.make_denoiser` makes it.
        start: The noise x_T, as `sample_initial_noise` gives it.
        num_steps: How many steps are taken, evenly spaced in the schedule; at most as many as it has.
        callback: Called with each timestep and the samples there, `start` first and the result last.

    Notes: D0-T.
    """

    def step(noisy: Tensor, t: int, earlier: int) -> Tensor:
        back = posterior_step(schedule, denoise_at(denoiser, noisy, t).clean, noisy, t, earlier)
        return back.mean + back.std * _noise_like(noisy, generator) if earlier else back.mean

    return run_sampler(step, schedule.timesteps(num_steps), start, callback)


def sample_ddim(
    denoiser: Denoiser,
    schedule: NoiseSchedule,
    start: Float[Tensor, "batch *shape"],
    *,
    num_steps: int,
    generator: torch.Generator,
    eta: float = 0.0,
    callback: StepCallback | None = None,
) -> Float[Tensor, "batch *shape"]:
    """x_s = √ᾱ_s x̂_0 + √(1 - ᾱ_s - c²) ε̂ + c z, with c = η √[(1 - ᾱ_s)/(1 - ᾱ_t) (1 - ᾱ_t/ᾱ_s)] of the noise new.

    Args:
        denoiser: Predicts x̂_0 and ε̂ from x_t (batch, ...) and t (batch,), as `quoin.prob.make_denoiser` makes it.
        start: The noise x_T, as `sample_initial_noise` gives it.
        num_steps: How many steps are taken, evenly spaced in the schedule; at most as many as it has.
        eta: η from 0 to 1: 0 adds no noise, so that `start` decides the sample; 1 is `sample_ddpm`.
        callback: Called with each timestep and the samples there, `start` first and the result last.

    Notes: D0-T.
    """
    if not 0 <= eta <= 1:
        raise UserError(
            f"expected eta from 0 (no new noise) to 1 (as much as DDPM), got {format_value(eta)}; choose within"
        )

    def step(noisy: Tensor, t: int, earlier: int) -> Tensor:
        prediction = denoise_at(denoiser, noisy, t)
        signal, noise = schedule.level(earlier, noisy)
        fresh = eta * posterior_step(schedule, prediction.clean, noisy, t, earlier).std if eta else torch.zeros(())
        kept = torch.sqrt(noise**2 - fresh**2)
        moved = signal * prediction.clean + kept * prediction.noise
        return moved + fresh * _noise_like(noisy, generator) if eta and earlier else moved

    return run_sampler(step, schedule.timesteps(num_steps), start, callback)


def clip_denoiser(denoiser: Denoiser, schedule: NoiseSchedule, *, low: float, high: float) -> Denoiser:
    """The denoiser with its prediction of x_0 clipped to [low, high], where the data are known to lie, and ε̂ to
    match."""
    if not low < high:
        raise UserError(f"expected a range with low below high, got {low} and {high}; give that of the data")

    def denoise(noisy: Tensor, t: Tensor) -> Denoised:
        clean = denoiser(noisy, t).clean.clamp(low, high)
        return SamplePrediction().denoised(clean, noisy, schedule.level(t, noisy))

    return denoise


def denoise_at(denoiser: Denoiser, noisy: Float[Tensor, "batch *shape"], t: int) -> Denoised:
    """The denoiser evaluated at one timestep for all examples."""
    return denoiser(noisy, torch.full(noisy.shape[:1], t, device=noisy.device))


@torch.no_grad()
def run_sampler(
    step: Callable[[Tensor, int, int], Tensor],
    times: Sequence[int],
    start: Float[Tensor, "batch *shape"],
    callback: StepCallback | None,
) -> Float[Tensor, "batch *shape"]:
    """Steps from time to time; what most samplers are."""
    if len(start) == 0:
        raise UserError("expected at least one sample, got a start with none; ask for 1 or more")
    state = start
    if callback is not None:
        callback(times[0], state)
    for t, earlier in itertools.pairwise(times):
        state = step(state, t, earlier)
        if callback is not None:
            callback(earlier, state)
    return state


def _noise_like(noisy: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(noisy.shape, generator=generator, dtype=noisy.dtype, device=generator.device).to(noisy.device)
