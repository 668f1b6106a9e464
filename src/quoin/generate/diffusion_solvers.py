"""The flow behind a diffusion, solved to second order: fewer questions to the denoiser for the same sample.

    x = cos θ x_0 + sin θ ε,   dx/dθ = v(x) = cos θ ε̂ - sin θ x̂_0

with the angle θ_t = arctan(noise/signal) as time: a derivative that stays bounded from the data to pure noise. Nothing
here is random: the start decides the sample, and `generator` is taken only to be called like the other samplers. A step
that kept x̂_0 and ε̂ would rotate x by the angle, and that is `sample_ddim` without new noise.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.generate.diffusion import StepCallback, denoise_at, run_sampler
from quoin.prob import Denoised, Denoiser, NoiseSchedule

__all__ = ["sample_dpm_solver_2", "sample_euler", "sample_heun"]


def sample_euler(
    denoiser: Denoiser,
    schedule: NoiseSchedule,
    start: Float[Tensor, "batch *shape"],
    *,
    num_steps: int,
    generator: torch.Generator | None = None,
    callback: StepCallback | None = None,
) -> Float[Tensor, "batch *shape"]:
    """x_s = x_t + (θ_s - θ_t) v(x_t): along the derivative at x_t.

    Args:
        denoiser: Predicts x̂_0 and ε̂ from x_t (batch, ...) and t (batch,), as `quoin.prob.make_denoiser` makes it.
        start: The noise x_T, as `sample_initial_noise` gives it.
        num_steps: How many steps are taken, evenly spaced in the schedule; at most as many as it has.
        generator: Not used, for no noise is added.
        callback: Called with each timestep and the samples there, `start` first and the result last.

    Notes: D0-T.
    """

    def step(noisy: Tensor, t: int, earlier: int) -> Tensor:
        turn = schedule.angle[earlier] - schedule.angle[t]
        return noisy + turn * _velocity(denoise_at(denoiser, noisy, t), schedule, t)

    return run_sampler(step, schedule.timesteps(num_steps), start, callback)


def sample_heun(
    denoiser: Denoiser,
    schedule: NoiseSchedule,
    start: Float[Tensor, "batch *shape"],
    *,
    num_steps: int,
    generator: torch.Generator | None = None,
    callback: StepCallback | None = None,
) -> Float[Tensor, "batch *shape"]:
    """x_s = x_t + (θ_s - θ_t) [v(x_t) + v(x̃_s)]/2, x̃_s being Euler's: two questions a step, but one in the last,
    which goes to x̂_0 itself.

    Args:
        denoiser: Predicts x̂_0 and ε̂ from x_t (batch, ...) and t (batch,), as `quoin.prob.make_denoiser` makes it.
        start: The noise x_T, as `sample_initial_noise` gives it.
        num_steps: How many steps are taken, evenly spaced in the schedule; at most as many as it has.
        generator: Not used, for no noise is added.
        callback: Called with each timestep and the samples there, `start` first and the result last.

    Notes: D0-T.
    """

    def step(noisy: Tensor, t: int, earlier: int) -> Tensor:
        prediction = denoise_at(denoiser, noisy, t)
        if earlier == 0:  # no denoiser is trained at time 0
            return prediction.clean
        turn = schedule.angle[earlier] - schedule.angle[t]
        here = _velocity(prediction, schedule, t)
        there = _velocity(denoise_at(denoiser, noisy + turn * here, earlier), schedule, earlier)
        return noisy + turn * (here + there) / 2

    return run_sampler(step, schedule.timesteps(num_steps), start, callback)


def sample_dpm_solver_2(
    denoiser: Denoiser,
    schedule: NoiseSchedule,
    start: Float[Tensor, "batch *shape"],
    *,
    num_steps: int,
    generator: torch.Generator | None = None,
    callback: StepCallback | None = None,
) -> Float[Tensor, "batch *shape"]:
    """The flow in λ = ln(signal/noise), its linear part solved exactly: from t over a middle time m to s, h = λ_s -
    λ_t, r = (λ_m - λ_t)/h,

    x_s = (a_s/a_t) x_t - n_s (e^h - 1) [ε̂_t + (ε̂_m - ε̂_t)/(2r)],   a and n signal and noise.

    The middle is a time of the schedule too, so that `num_steps` is the number of questions: one at each of its times,
    two for each such step. Of the first order, as in `sample_ddim`, are the last step, whose h is infinite, and the
    first, or first two of an odd number: out of nearly pure noise e^h is so large that it would blow up what ε̂_m and
    ε̂_t differ by.

    Args:
        denoiser: Predicts x̂_0 and ε̂ from x_t (batch, ...) and t (batch,), as `quoin.prob.make_denoiser` makes it.
        start: The noise x_T, as `sample_initial_noise` gives it.
        generator: Not used, for no noise is added.
        callback: Called with each timestep that a step begins or ends at, and the samples there.

    Notes: D0-T.
    """
    times = schedule.timesteps(num_steps)
    second = 1 + num_steps % 2  # the first step of the second order
    middles = dict(zip(times[second:-2:2], times[second + 1 : -1 : 2]))  # from where, over where
    stops = [t for t in times if t not in middles.values()]

    def step(noisy: Tensor, t: int, earlier: int) -> Tensor:
        prediction = denoise_at(denoiser, noisy, t)
        if t not in middles:
            return _rotated(prediction, schedule, earlier)
        middle = middles[t]
        lambdas = schedule.half_log_snr
        h, part = lambdas[earlier] - lambdas[t], lambdas[middle] - lambdas[t]
        there = denoise_at(denoiser, _rotated(prediction, schedule, middle), middle)
        slope = prediction.noise + (there.noise - prediction.noise) * (h / (2 * part))
        return schedule.signal[earlier] / schedule.signal[t] * noisy - schedule.noise[earlier] * torch.expm1(h) * slope

    return run_sampler(step, stops, start, callback)


def _velocity(prediction: Denoised, schedule: NoiseSchedule, t: int) -> Tensor:
    return schedule.signal[t] * prediction.noise - schedule.noise[t] * prediction.clean


def _rotated(prediction: Denoised, schedule: NoiseSchedule, t: int) -> Tensor:
    """Where x is at time t if x̂_0 and ε̂ stay what they are."""
    return schedule.signal[t] * prediction.clean + schedule.noise[t] * prediction.noise
