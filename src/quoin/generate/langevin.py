"""Sampling by the gradient of the log-density alone: Langevin steps, and through a diffusion's levels."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError, format_value
from quoin.generate.diffusion import StepCallback, denoise_at, run_sampler
from quoin.prob import Denoiser, NoiseSchedule, diffusion_score

__all__ = ["annealed_langevin", "langevin"]


@torch.no_grad()
def langevin(
    score: Callable[[Tensor], Tensor],
    start: Float[Tensor, "batch *shape"],
    *,
    step_size: float,
    num_steps: int,
    generator: torch.Generator,
) -> Float[Tensor, "batch *shape"]:
    """x <- x + δ ∇ln p(x) + √(2δ) z, again and again: for a small δ the distribution of x tends to p, from wherever it
    starts.

    For N(μ, Σ) it tends to a normal distribution with covariance Σ (I - ½ δ Σ^-1)^-1, too wide by about δ/2 in every
    direction.

    Args:
        score: ∇ln p of each example, in the shape of its input.
        step_size: δ.

    Notes: D0-T.
    """
    if not 0 < step_size < math.inf or num_steps < 1:
        got = f"{format_value(step_size)} and {format_value(num_steps)}"
        raise UserError(f"expected a step size above 0 and at least one step, got {got}; try 0.01 and 1000")
    state = start
    for _ in range(num_steps):
        noise = torch.randn(state.shape, generator=generator, dtype=state.dtype, device=generator.device).to(
            state.device
        )
        state = state + step_size * score(state) + math.sqrt(2 * step_size) * noise
    return state


def annealed_langevin(
    denoiser: Denoiser,
    schedule: NoiseSchedule,
    start: Float[Tensor, "batch *shape"],
    *,
    num_steps: int,
    generator: torch.Generator,
    num_corrector_steps: int = 5,
    step_size: float = 0.1,
    callback: StepCallback | None = None,
) -> Float[Tensor, "batch *shape"]:
    """At each time, from noise to data, `num_corrector_steps` Langevin steps of δ = step_size · noise² on ln q(x_t); at
    the end x̂_0.

    Args:
        denoiser: Predicts x̂_0 and ε̂ from x_t (batch, ...) and t (batch,), as `quoin.prob.make_denoiser` makes it.
        start: The noise x_T, as `sample_initial_noise` gives it.
        num_steps: How many timesteps of the schedule are visited, evenly spaced.
        callback: Called with each timestep and the samples there, `start` first and the result last.

    Notes: D0-T.
    """

    def step(noisy: Tensor, t: int, earlier: int) -> Tensor:
        level = schedule.level(t, noisy)
        delta = step_size * float(level.noise) ** 2

        def score(x: Tensor) -> Tensor:
            return diffusion_score(denoise_at(denoiser, x, t).noise, level)

        state = langevin(score, noisy, step_size=delta, num_steps=num_corrector_steps, generator=generator)
        return denoise_at(denoiser, state, t).clean if earlier == 0 else state

    return run_sampler(step, schedule.timesteps(num_steps), start, callback)
