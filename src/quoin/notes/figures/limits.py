"""Limits plotted: the typewriter, running means with and without a mean, sums becoming normal, and how fast."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import keyed_generator
from quoin.notes.figures.figure import figure
from quoin.plot import Plot, curves
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure
from quoin.prob import (
    iid_sample,
    iid_sum_distribution,
    kolmogorov_distance,
    running_means,
    scaled_sums,
    typewriter_interval,
)

DISTRIBUTIONS = {
    "a coin": torch.tensor([0.5, 0.5], dtype=torch.float64),
    "a die": torch.full((6,), 1 / 6, dtype=torch.float64),
    "a rare event": torch.tensor([0.9, 0.1], dtype=torch.float64),
}


def centered_sums(
    distribution: Float[Tensor, "k"], count: int
) -> tuple[Float[Tensor, "values"], Float[Tensor, "values"], float]:
    """The values of (X_1 + ... + X_n) / (σ √n) for centred X_i, their exact distribution, and how far apart they
    are."""
    x = torch.arange(len(distribution), dtype=torch.float64)
    mean = float(distribution @ x)
    deviation = math.sqrt(float(distribution @ (x - mean).square()) * count)
    exact = iid_sum_distribution(distribution, count)
    return (
        (torch.arange(len(exact), dtype=torch.float64) - count * mean) / deviation,
        exact / exact.sum(),
        1 / deviation,
    )


@figure(
    ("D5-31", "DE48"),
    "The typewriter: where Xₙ is 1, for n = 1 to 44. The strokes shrink, so that P[Xₙ = 1] → 0, yet each block "
    "strikes every ω.",
    {"num_variables": (1, 500), "omega": (0, 0.999)},
)
def typewriter_strokes(num_variables: int = 44, omega: float = 0.31) -> Plot:
    n = torch.arange(1, num_variables + 1)
    parts, index = typewriter_interval(n)
    low, width = index / parts, 1 / parts
    with house_style():
        sheet = new_figure(height=4.4)
        axes, below = sheet.subplots(2, 1, sharex=True, height_ratios=(2.4, 1))
        struck = (low <= omega) & (omega < low + width)
        colors = [COLORS[1] if hit else COLORS[0] for hit in struck.tolist()]
        axes.bar(n.numpy(), width.numpy(), bottom=low.numpy(), color=colors, width=0.85)
        axes.plot([0, num_variables + 0.6], [omega, omega], color=INK, linewidth=1, linestyle=(0, (4, 3)))
        axes.text(num_variables + 1, omega, f"ω = {omega}", va="center", fontsize=9)
        for start in n[index == 0].tolist():
            for each in (axes, below):
                each.axvline(start - 0.5, color=FAINT, linewidth=0.7, zorder=0)
        axes.set_ylim(0, 1)
        axes.set_ylabel("ω with Xₙ(ω) = 1")
        below.bar(n.numpy(), width.numpy(), color=COLORS[0], width=0.85)
        below.plot(n[struck], torch.zeros_like(n[struck]), "^", color=COLORS[1], markersize=5, clip_on=False, zorder=3)
        below.set_ylabel("P[Xₙ = 1]")
        below.set_xlabel("n")
        below.set_xlim(0, num_variables + 4.5)
        return Plot(sheet, "the typewriter")


@figure(
    "D5-33",
    "Ten paths of running means for each of four distributions: with a mean (dashed) they settle; Cauchy ones jump "
    "for ever.",
    {"num_paths": (1, 100), "num_variables": (2, 100000)},
)
def means(num_paths: int = 10, num_variables: int = 10_000) -> Plot:
    generator = keyed_generator("figure D5-33")
    times, paths = num_variables, num_paths
    n = torch.arange(1, times + 1)
    shown = torch.logspace(0, math.log10(times), 600).long().unique() - 1
    families = {
        "uniform on [0, 1]": (lambda u: u, 0.5, (0, 1)),
        "exponential": (lambda u: -torch.log1p(-u), 1.0, (0, 2)),
        "Pareto 1.5, of infinite variance": (lambda u: (1 - u) ** (-1 / 1.5), 3.0, (0, 6)),
        "Cauchy, without a mean": (torch.distributions.Cauchy(0.0, 1.0).icdf, None, (-10, 10)),
    }
    with house_style():
        sheet = new_figure(height=4.6)
        for axes, (name, (quantile, mean, reach)) in zip(sheet.subplots(2, 2, sharex=True).flatten(), families.items()):
            for path, index in zip(
                running_means(iid_sample(quantile, paths, times, generator=generator)), range(paths)
            ):
                axes.plot(n[shown], path[shown], color=COLORS[index % len(COLORS)], linewidth=0.9)
            if mean is not None:
                axes.axhline(mean, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
            axes.set_xscale("log")
            axes.set_ylim(*reach)
            axes.set_title(name, fontsize=10)
            axes.grid(True)
        sheet.supxlabel("number of variables n", fontsize=10)
        return Plot(sheet, "running means")


@figure(
    "D5-34",
    "The exact distribution of (X₁ + … + Xₙ)/(σ√n), as a density over its lattice, beside the normal one; "
    "sums of Cauchy variables only widen.",
    {"counts": (1, 500)},
)
def sums_become_normal(counts: tuple[int, int, int, int, int] = (1, 2, 8, 32, 128)) -> Plot:
    line = torch.linspace(-4, 4, 401, dtype=torch.float64)
    bell = torch.exp(-line.square() / 2) / math.sqrt(2 * math.pi)
    cauchy = torch.distributions.Cauchy(0.0, 1.0).icdf
    samples = scaled_sums(iid_sample(cauchy, 20_000, max(counts), generator=keyed_generator("figure D5-34")))
    with house_style():
        sheet = new_figure(height=5.6)
        grid = sheet.subplots(len(DISTRIBUTIONS) + 1, len(counts), sharex=True)
        for column, count in enumerate(counts):
            for row, (name, distribution) in enumerate(DISTRIBUTIONS.items()):
                values, exact, spacing = centered_sums(distribution, count)
                grid[row][column].bar(
                    values.numpy(), (exact / spacing).numpy(), width=spacing, color=COLORS[row], alpha=0.75, linewidth=0
                )
                grid[row][0].set_ylabel(name)
            edges = torch.linspace(-4, 4, 41).numpy()
            density = torch.histc(samples[:, count - 1], bins=40, min=-4, max=4) / (len(samples) * 0.2)
            grid[-1][column].bar((edges[:-1] + edges[1:]) / 2, density.numpy(), width=0.2, color=COLORS[3], linewidth=0)
            grid[-1][0].set_ylabel("Cauchy")
            for row in range(len(DISTRIBUTIONS) + 1):
                axes = grid[row][column]
                axes.plot(line, bell, color=INK, linewidth=1)
                axes.set_xlim(-4, 4)
                axes.set_ylim(0, 0.6)
                axes.set_yticks([])
                axes.tick_params(labelsize=7)
            grid[0][column].set_title(f"n = {count}", fontsize=10)
        return Plot(sheet, "the central limit theorem")


@figure(
    "D5-26",
    "The exact Kolmogorov distance of centred sums of n variables to the normal distribution falls as 1/√n; that "
    "of Cauchy sums grows.",
    {"max_power": (1, 12)},
)
def distance_by_count(max_power: int = 10) -> Plot:
    counts = [2**power for power in range(max_power + 1)]
    series = {}
    for name, distribution in DISTRIBUTIONS.items():
        found = []
        for count in counts:
            values, exact, _ = centered_sums(distribution, count)
            found.append(float(kolmogorov_distance(values, exact, torch.special.ndtr)))
        series[name] = (counts, found)
    line = torch.linspace(0, 400, 40_001, dtype=torch.float64)
    # A sum of n Cauchy variables over √n is √n times one.
    series["Cauchy"] = (
        counts,
        [
            float((torch.special.ndtr(line) - 0.5 - torch.atan(line / math.sqrt(count)) / math.pi).abs().max())
            for count in counts
        ],
    )
    series["1 / √n"] = (counts, [1 / math.sqrt(count) for count in counts])
    title = "How far sums are from normal"
    return curves(
        series, title=title, x_label="number of variables n", y_label="Kolmogorov distance", log_x=True, log_y=True
    )
