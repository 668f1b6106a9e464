"""How much noise when: the one object that knows the times of a diffusion, in training and in sampling.

Time 0 is the data and time T nearly pure noise. Everything follows from ln ᾱ_t, kept in float64: where hardly any noise
has come in, 1 - ᾱ_t taken from a rounded ᾱ_t would be all rounding. What is done with the levels is in diffusion.py,
the samplers are in quoin.generate.

    T steps
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Integer, Shaped
from torch import Tensor

from quoin.display import line_chart, shown
from quoin.errors import UserError, format_value
from quoin.tensor import check_floating
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["Level", "NoiseSchedule", "cosine_beta_schedule", "linear_beta_schedule", "sigmoid_beta_schedule"]

MOST_NOISE = 0.999  # a step that kept nothing of its past could not be undone


@shown
class Level(NamedTuple):
    """What is left of the data at a time, and how much noise there is: x_t = signal x_0 + noise ε with
    signal² + noise² = 1. One number, or one for each example with axes of size 1 behind it.
    """

    signal: Float[Tensor, "*shape"]
    noise: Float[Tensor, "*shape"]


@shown
class NoiseSchedule:
    """β_1 ... β_T, each in (0, 1), with ᾱ_t = Π_{s<=t} (1 - β_s): the chain x_t = √(1 - β_t) x_{t-1} + √β_t ε_t.

    Tables have T + 1 entries, so that they are read at t itself: entry 0 is the data, without noise.

    >>> schedule = NoiseSchedule(torch.tensor([0.36, 0.75]))
    >>> schedule.signal
    tensor([1.0000, 0.8000, 0.4000], dtype=torch.float64)
    >>> schedule.timesteps(1), schedule.timesteps(2)
    ((2, 0), (2, 1, 0))

    Notes: D0-T.
    """

    def __init__(self, betas: Float[Tensor, "T"] | ArrayLike):
        betas = float_tensor(betas, "betas")
        if betas.ndim != 1 or len(betas) == 0:
            raise UserError(
                f"expected one noise variance for each step, (T,), got shape {tuple(betas.shape)}; give at least one"
            )
        betas = betas.detach().to("cpu", torch.float64)
        if not bool(((betas > 0) & (betas < 1)).all()):
            raise UserError(
                "expected noise variances above 0 and below 1, got others; a step must add noise and keep some signal"
            )
        self.betas = torch.cat([betas.new_zeros(1), betas])  # (T + 1,), as all tables below
        self.log_alpha_bar = torch.log1p(-self.betas).cumsum(dim=0)
        self.signal = torch.exp(self.log_alpha_bar / 2)
        self.noise = torch.sqrt(-torch.expm1(self.log_alpha_bar))
        self._tables: dict[tuple[torch.dtype, torch.device], tuple[Tensor, Tensor]] = {}

    def __repr__(self) -> str:
        return f"NoiseSchedule({self.num_steps} steps, signal falls to {float(self.signal[-1]):.3g})"

    def _repr_html_(self) -> str:
        return line_chart(range(len(self.signal)), self.signal.tolist(), title=f"signal by step of {self!r}")

    @property
    def num_steps(self) -> int:
        """T."""
        return len(self.betas) - 1

    @property
    def alpha_bar(self) -> Float[Tensor, "{self.num_steps+1}"]:
        """ᾱ_t, the fraction of the variance that is still the data's."""
        return torch.exp(self.log_alpha_bar)

    @property
    def angle(self) -> Float[Tensor, "{self.num_steps+1}"]:
        """arctan(noise / signal), from 0 at the data to nearly π/2: the time in which the flow of a diffusion
        is a rotation.
        """
        return torch.atan2(self.noise, self.signal)

    @property
    def half_log_snr(self) -> Float[Tensor, "{self.num_steps+1}"]:
        """λ_t = ln(signal / noise), infinite at the data."""
        return torch.log(self.signal) - torch.log(self.noise)

    def timesteps(self, num_steps: int) -> tuple[int, ...]:
        """T = t_0 > t_1 > ... > t_steps = 0, as evenly as whole numbers can: the only place where a stride is chosen.

        >>> linear_beta_schedule(10).timesteps(4)
        (10, 7, 5, 2, 0)
        """
        if not isinstance(num_steps, int) or not 1 <= num_steps <= self.num_steps:
            raise UserError(
                f"expected 1 to {self.num_steps} steps, as many as the schedule has, got "
                f"{format_value(num_steps)}; choose within"
            )
        return tuple(self.num_steps * left // num_steps for left in range(num_steps, -1, -1))

    def level(self, t: int | Integer[Tensor, "batch"], like: Float[Tensor, "batch ..."]) -> Level:
        """Signal and noise at one time, or at a time for each example of `like`, shaped to multiply it.

        Notes: D0-T.
        """
        check_floating(like, "examples")  # among whole numbers every level would be 0 or 1
        if isinstance(t, int):
            self._check(t, t)
            return Level(self.signal[t], self.noise[t])
        self.check_timesteps(t, like)
        t = t.long()  # as uint8 or bool it would be a mask
        signal, noise = self.tables(like)
        shape = (-1, *[1] * (like.ndim - 1))
        return Level(signal[t].reshape(shape), noise[t].reshape(shape))

    def tables(self, like: Shaped[Tensor, "..."]) -> tuple[Float[Tensor, "times"], Float[Tensor, "times"]]:
        """Signal and noise at all times in the dtype and on the device of `like`, kept: training reads them at every
        step. Called before a step is compiled, it spares a second compilation."""
        key = (like.dtype, like.device)
        if key not in self._tables:
            self._tables[key] = (self.signal.to(like), self.noise.to(like))
        return self._tables[key]

    def check_timesteps(self, t: Integer[Tensor, "batch"], like: Shaped[Tensor, "batch ..."]) -> None:
        """Whole times 0 ... T, one for each example."""
        if t.shape != like.shape[:1] or t.is_floating_point() or t.dtype == torch.bool:
            got = f"{tuple(t.shape)} of {t.dtype} for examples {tuple(like.shape)}"
            raise UserError(f"expected a whole time for each example, (b,), got {got}; give as many integers")
        # elsewhere reading the values would wait for the device
        if t.device.type == "cpu" and t.numel() and not torch.compiler.is_compiling():
            self._check(int(t.min()), int(t.max()))

    def sample_timesteps(self, num_samples: int, *, generator: torch.Generator) -> Int[Tensor, "{num_samples}"]:
        """Times for training, each of 1 ... T alike."""
        return torch.randint(1, self.num_steps + 1, (num_samples,), generator=generator, device=generator.device)

    def _check(self, least: int, most: int) -> None:
        if least < 0 or most > self.num_steps:
            raise UserError(
                f"expected times 0 to {self.num_steps}, got {least if least < 0 else most}; choose times of this "
                "schedule"
            )


def linear_beta_schedule(num_steps: int, *, first: float = 0.1, last: float = 20.0) -> NoiseSchedule:
    """β_t rising linearly from first/T to last/T: for T = 1000 the 0.0001 ... 0.02 of the first diffusion models.

    Args:
        num_steps: T.

    Notes: D0-T.
    """
    _check_count(num_steps)
    return NoiseSchedule(
        (torch.linspace(first, last, num_steps, dtype=torch.float64) / num_steps).clamp(max=MOST_NOISE)
    )


def cosine_beta_schedule(num_steps: int, *, offset: float = 0.008) -> NoiseSchedule:
    """ᾱ(u) = cos²(π/2 (u + s)/(1 + s)) at u = t/T, over its value at 0: the signal goes evenly, not mostly
    at the start.

    Args:
        num_steps: T.
        offset: s, which keeps β_1 from being next to nothing.

    Notes: D0-T.
    """
    return _from_curve(num_steps, lambda u: torch.cos((u + offset) / (1 + offset) * math.pi / 2).square())


def sigmoid_beta_schedule(num_steps: int, *, start: float = -3.0, end: float = 3.0) -> NoiseSchedule:
    """ᾱ(u) = (σ(-(start + (end - start) u)) - σ(-end)) / (σ(-start) - σ(-end)): gentle at both ends, steep
    in the middle.

    Args:
        num_steps: T.
        start: Where on the sigmoid u = 0 lies.
        end: Where u = 1 does, above `start`.

    Notes: D0-T.
    """
    if not start < end:
        raise UserError(f"expected a sigmoid that falls from start to end, got {start} and {end}; give start below end")
    return _from_curve(num_steps, lambda u: torch.sigmoid(-(start + (end - start) * u)) - 1 / (1 + math.exp(end)))


def _from_curve(num_steps: int, curve: Callable[[Tensor], Tensor]) -> NoiseSchedule:
    """β_t = 1 - ᾱ(t/T)/ᾱ((t-1)/T), held below one where the curve ends at nothing."""
    _check_count(num_steps)
    alpha_bar = curve(torch.linspace(0, 1, num_steps + 1, dtype=torch.float64))
    return NoiseSchedule((1 - alpha_bar[1:] / alpha_bar[:-1]).clamp(max=MOST_NOISE))


def _check_count(num_steps: int) -> None:
    if num_steps < 1:
        raise UserError(
            f"expected at least 1 step of diffusion, got {format_value(num_steps)}; the usual number is 1000"
        )
