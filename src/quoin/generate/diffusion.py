"""Noise walked back to data by a denoiser: the chain reversed (DDPM), its shortcuts (DDIM) and the flow that they tend to.

Every sampler goes through `schedule.times(steps)` and asks the denoiser at those times only. It begins with a `start` from
`start_noise`, and whoever passes `watch` is shown each time and the state there, for a strip of pictures. Solvers of higher order are in
diffusion_solvers.py, Langevin steps in langevin.py and guidance by labels in guidance.py.   b examples (b, ...) of any shape
"""

import itertools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from quoin.errors import Mistake, shown
from quoin.prob import Denoised, Denoiser, NoiseSchedule, PredictClean, posterior_step

__all__ = ["Watch", "clipped", "ddim", "ddpm", "denoise_at", "start_noise"]

Watch = Callable[[int, Tensor], None]  # a time and the state (b, ...) there


def start_noise(
    shape: Sequence[int], *, generator: torch.Generator, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
) -> Tensor:  # (b, ...)
    """x_T ~ N(0, I) of `shape` (b, ...), drawn where the generator lies, so that a seed gives the same start on every device."""
    if not shape or min(shape) < 1:
        raise Mistake(f"expected at least one sample to draw, came the shape {tuple(shape)}; ask for 1 or more")
    return torch.randn(tuple(shape), generator=generator, dtype=dtype, device=generator.device).to(device)


def ddpm(
    denoiser: Denoiser, schedule: NoiseSchedule, start: Tensor, *, steps: int, generator: torch.Generator, watch: Watch | None = None
) -> Tensor:  # (b, ...) -> (b, ...)
    """Ancestral sampling: x_s ~ q(x_s | x_t, x̂_0(x_t)), the step back that would be right if the guess x̂_0 were the data.

    Notes: D0-T.
    """

    def step(noisy: Tensor, t: int, earlier: int) -> Tensor:
        back = posterior_step(schedule, denoise_at(denoiser, noisy, t).clean, noisy, t, earlier)
        return back.mean + back.std * _noise_like(noisy, generator) if earlier else back.mean

    return walk(step, schedule.times(steps), start, watch)


def ddim(
    denoiser: Denoiser,
    schedule: NoiseSchedule,
    start: Tensor,
    *,
    steps: int,
    generator: torch.Generator,
    eta: float = 0.0,
    watch: Watch | None = None,
) -> Tensor:  # (b, ...) -> (b, ...)
    """x_s = √ᾱ_s x̂_0 + √(1 - ᾱ_s - c²) ε̂ + c z, with c = η √[(1 - ᾱ_s)/(1 - ᾱ_t) (1 - ᾱ_t/ᾱ_s)] of the noise new.

    η = 1 is `ddpm`; with η = 0 no noise is drawn, and the start decides the sample.

    Notes: D0-T.
    """
    if not 0 <= eta <= 1:
        raise Mistake(f"expected eta from 0 (no new noise) to 1 (as much as DDPM), got {shown(eta)}; choose within")

    def step(noisy: Tensor, t: int, earlier: int) -> Tensor:
        guess = denoise_at(denoiser, noisy, t)
        signal, noise = schedule.level(earlier, noisy)
        fresh = eta * posterior_step(schedule, guess.clean, noisy, t, earlier).std if eta else torch.zeros(())
        kept = torch.sqrt(noise**2 - fresh**2)
        moved = signal * guess.clean + kept * guess.noise
        return moved + fresh * _noise_like(noisy, generator) if eta and earlier else moved

    return walk(step, schedule.times(steps), start, watch)


def clipped(denoiser: Denoiser, schedule: NoiseSchedule, *, low: float, high: float) -> Denoiser:
    """The denoiser with its guess of x_0 held within [low, high], where the data are known to lie, and ε̂ to match."""
    if not low < high:
        raise Mistake(f"expected a range with low below high, got {low} and {high}; give that of the data")

    def denoise(noisy: Tensor, t: Tensor) -> Denoised:
        clean = denoiser(noisy, t).clean.clamp(low, high)
        return PredictClean().denoised(clean, noisy, schedule.level(t, noisy))

    return denoise


def denoise_at(denoiser: Denoiser, noisy: Tensor, t: int) -> Denoised:
    """The denoiser asked at one time for all examples."""
    return denoiser(noisy, torch.full(noisy.shape[:1], t, device=noisy.device))


@torch.no_grad()
def walk(step: Callable[[Tensor, int, int], Tensor], times: Sequence[int], start: Tensor, watch: Watch | None) -> Tensor:
    """Steps from time to time; what most samplers are."""
    if len(start) == 0:
        raise Mistake("expected at least one sample to draw, came a start with none; ask for 1 or more")
    state = start
    if watch is not None:
        watch(times[0], state)
    for t, earlier in itertools.pairwise(times):
        state = step(state, t, earlier)
        if watch is not None:
            watch(earlier, state)
    return state


def _noise_like(noisy: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(noisy.shape, generator=generator, dtype=noisy.dtype, device=generator.device).to(noisy.device)
