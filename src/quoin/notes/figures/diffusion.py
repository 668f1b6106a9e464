"""Data going under in noise, and the ways back: forward strip, schedules, and paths of two samplers with an exact
denoiser."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import keyed_generator, make_moons
from quoin.generate import sample_ddim, sample_ddpm, sample_initial_noise
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, FAINT, house_style, new_figure
from quoin.prob import (
    Denoised,
    Denoiser,
    NoiseSchedule,
    SamplePrediction,
    add_noise,
    cosine_beta_schedule,
    linear_beta_schedule,
    sigmoid_beta_schedule,
)

FRACTIONS = (0.0, 0.2, 0.4, 0.7, 1.0)  # of the right angle between data and noise
STD = 0.1  # of the clouds around each point, so that the distribution has a density


def smoothed_denoiser(points: Float[Tensor, "n d"], schedule: NoiseSchedule) -> Denoiser:
    """The exact denoiser of clouds N(point, WIDTH²) chosen evenly: each cloud's own prediction, weighted by its
    probability given x_t."""

    def denoise(noisy: Tensor, t: Tensor) -> Denoised:
        level = schedule.level(t, noisy)
        variance = (level.signal * STD) ** 2 + level.noise**2  # (b, 1)
        away = noisy.unsqueeze(1) - level.signal.unsqueeze(1) * points  # (b, n, d)
        posterior = torch.softmax(-away.square().sum(dim=-1) / (2 * variance), dim=-1)
        predictions = points + (level.signal * STD**2 / variance).unsqueeze(-1) * away
        return SamplePrediction().denoised((posterior.unsqueeze(-1) * predictions).sum(dim=1), noisy, level)

    return denoise


@figure(
    "D0-T",
    "Diffusion. Top: two moons on their way to noise, evenly by the angle arctan(noise/signal). Middle: signal "
    "over noise as "
    "three schedules have it. Bottom: from the same noise back to data by the exact denoiser, without new noise "
    "and, for four, with it.",
    {"num_points": (2, 2000), "num_steps": (1, 1000)},
)
def forth_and_back(num_points: int = 400, num_steps: int = 100) -> Plot:
    generator = keyed_generator("diffusion figure", 0)
    points = make_moons(num_points, noise=0.0, generator=generator).features.double()
    points = (points - points.mean(dim=0)) / points.std()
    schedule = cosine_beta_schedule(1000)
    with house_style():
        sheet = new_figure(height=8.6)
        rows: Any = sheet.subfigures(3, 1, height_ratios=(1.0, 1.35, 1.9))
        _forward(rows[0], points, schedule, generator)
        _schedules(rows[1])
        _paths(rows[2], points, schedule, num_steps)
        return Plot(sheet, "diffusion, forth and back")


def _forward(panel, points: Tensor, schedule: NoiseSchedule, generator: torch.Generator) -> None:
    noise = torch.randn(points.shape, generator=generator, dtype=points.dtype)
    for axes, fraction in zip(panel.subplots(1, len(FRACTIONS)), FRACTIONS):
        t = int((schedule.angle - fraction * schedule.angle[-1]).abs().argmin())
        shown = add_noise(schedule, points, t, noise)
        axes.scatter(shown[:, 0], shown[:, 1], s=3, color=COLORS[0], alpha=0.6, linewidths=0)
        axes.set_title(f"t = {t}", fontsize=9, fontweight="normal", loc="center", pad=3)
        _square(axes)


def _schedules(panel) -> None:
    axes = panel.subplots()
    for color, (name, make) in zip(
        COLORS, (("linear", linear_beta_schedule), ("cosine", cosine_beta_schedule), ("sigmoid", sigmoid_beta_schedule))
    ):
        axes.plot(torch.arange(1, 1001), make(1000).half_log_snr[1:], color=color, label=name)
    axes.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
    axes.set_xlabel("time t")
    axes.set_ylabel("ln(signal / noise)")
    axes.legend(fontsize=8)


def _paths(panel, points: Tensor, schedule: NoiseSchedule, num_steps: int) -> None:
    denoiser = smoothed_denoiser(points, schedule)
    start = sample_initial_noise((40, 2), generator=keyed_generator("diffusion start", 2), dtype=torch.float64)
    ways = (("DDIM: no new noise", sample_ddim, 40), ("DDPM: new noise at every step", sample_ddpm, 4))
    for axes, (title, sampler, num_shown) in zip(panel.subplots(1, 2), ways):
        seen: dict[int, Tensor] = {}
        sampler(
            denoiser,
            schedule,
            start,
            num_steps=num_steps,
            generator=keyed_generator("diffusion way", 0),
            callback=seen.__setitem__,
        )
        path = torch.stack([*seen.values()])  # (num_steps + 1, 40, 2)
        axes.scatter(points[:, 0], points[:, 1], s=2, color=FAINT, linewidths=0)
        axes.plot(path[:, :num_shown, 0], path[:, :num_shown, 1], color=COLORS[0], linewidth=0.6, alpha=0.6)
        axes.scatter(path[0, :, 0], path[0, :, 1], s=8, color=COLORS[1], linewidths=0, label="noise", zorder=3)
        axes.scatter(path[-1, :, 0], path[-1, :, 1], s=8, color=COLORS[2], linewidths=0, label="samples", zorder=3)
        axes.set_title(title, fontsize=9, fontweight="normal", loc="center", pad=3)
        axes.legend(fontsize=7, loc="upper right")
        _square(axes)


def _square(axes) -> None:
    axes.set_xlim(-2.8, 2.8)
    axes.set_ylim(-2.8, 2.8)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
