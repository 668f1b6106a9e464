"""Sampling by the slope of the log-density alone: Langevin steps, and a diffusion's levels worked through with them."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from quoin.errors import Mistake, shown
from quoin.generate.diffusion import Watch, denoise_at, walk
from quoin.prob import Denoiser, NoiseSchedule, diffusion_score

__all__ = ["annealed_langevin", "langevin"]


@torch.no_grad()
def langevin(
    score: Callable[[Tensor], Tensor], start: Tensor, *, step_size: float, num_steps: int, generator: torch.Generator
) -> Tensor:  # (b, ...) -> (b, ...)
    """x <- x + δ ∇ln p(x) + √(2δ) z, again and again: for a small δ the law of x tends to p, from wherever it starts.

    For N(μ, Σ) it tends to a normal law with covariance Σ (I - ½ δ Σ^-1)^-1, too wide by about δ/2 in every direction.

    Notes: D0-T.
    """
    if not 0 < step_size < math.inf or num_steps < 1:
        came = f"{shown(step_size)} and {shown(num_steps)}"
        raise Mistake(f"expected a step size above 0 and at least one step, got {came}; try 0.01 and 1000")
    state = start
    for _ in range(num_steps):
        noise = torch.randn(state.shape, generator=generator, dtype=state.dtype, device=generator.device).to(state.device)
        state = state + step_size * score(state) + math.sqrt(2 * step_size) * noise
    return state


def annealed_langevin(
    denoiser: Denoiser,
    schedule: NoiseSchedule,
    start: Tensor,
    *,
    steps: int,
    generator: torch.Generator,
    corrections: int = 5,
    step_size: float = 0.1,
    watch: Watch | None = None,
) -> Tensor:  # (b, ...) -> (b, ...)
    """At each time, from noise to data, `corrections` Langevin steps of δ = step_size · noise² on ln q(x_t); at the end x̂_0.

    Notes: D0-T.
    """

    def step(noisy: Tensor, t: int, earlier: int) -> Tensor:
        level = schedule.level(t, noisy)
        delta = step_size * float(level.noise) ** 2

        def score(x: Tensor) -> Tensor:
            return diffusion_score(denoise_at(denoiser, x, t).noise, level)

        state = langevin(score, noisy, step_size=delta, num_steps=corrections, generator=generator)
        return denoise_at(denoiser, state, t).clean if earlier == 0 else state

    return walk(step, schedule.times(steps), start, watch)
