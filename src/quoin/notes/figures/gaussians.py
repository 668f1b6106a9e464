"""Normal distributions on the plane: ellipses of equal density, and the slice that conditioning cuts."""

import torch

from quoin.data import keyed_generator
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure
from quoin.prob import MultivariateNormal


@figure(
    "D5-13",
    "Four normal distributions: 300 samples each, and the ellipses that hold 50 and 95 of 100; without variance "
    "across, a line is left.",
    {"num_samples": (1, 10000), "correlation": (-1, 1)},
)
def ellipses_of_equal_density(num_samples: int = 300, correlation: float = 0.9) -> Plot:
    distributions = {
        "standard, Σ = I": [[1.0, 0.0], [0.0, 1.0]],
        "uncorrelated, σ² = 2 and ¼": [[2.0, 0.0], [0.0, 0.25]],
        f"correlation {correlation:g}".replace("-", "−"): [[1.0, correlation], [correlation, 1.0]],
        "singular, rank 1": [[1.2, 0.6], [0.6, 0.3]],
    }
    generator = keyed_generator("D5-13")
    circle = torch.linspace(0, 2 * torch.pi, 181, dtype=torch.float64)
    circle = torch.stack([circle.cos(), circle.sin()], dim=-1)
    ends = torch.tensor([[-1.0, -1.0], [1.0, 1.0]], dtype=torch.float64)
    with house_style():
        sheet = new_figure(height=6.6)
        for axes, (name, covariance) in zip(sheet.subplots(2, 2, sharex=True, sharey=True).flat, distributions.items()):
            distribution = MultivariateNormal(
                torch.zeros(2, dtype=torch.float64), torch.tensor(covariance, dtype=torch.float64)
            )
            x, y = distribution.sample((num_samples,), generator=generator).unbind(dim=-1)
            axes.scatter(x, y, s=7, color=COLORS[0], alpha=0.35, linewidths=0)
            held = distribution.support()
            for mass, dash in ((0.5, "-"), (0.95, "--")):
                # |z|² is χ² with as many degrees as the rank: P(|z| <= r) = 1 - e^(-r²/2) for two, and for one |z| is a
                # normal's.
                part = torch.tensor(mass, dtype=torch.float64)
                line = int(held.rank()) == 1
                radius = torch.special.ndtri((1 + part) / 2) if line else (-2 * torch.log1p(-part)).sqrt()
                ring = radius * (ends if line else circle) @ held.root(distribution.covariance).mT
                width = 3.0 if line and dash == "-" else 1.4
                axes.plot(*ring.unbind(dim=-1), dash, color=INK, linewidth=width, label=f"{100 * mass:.0f} of 100")
            axes.set_title(name, fontsize=10)
            axes.set_aspect("equal")
            axes.grid(True)
            axes.set_xlim(-4, 4)
            axes.set_ylim(-4, 4)
        sheet.legend(*sheet.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return Plot(sheet, "Ellipses of four normal distributions")


@figure(
    "D5-24",
    "Conditioning on y cuts a slice: the mean of X given y moves along a line, and its standard "
    "deviation is the same for every y, below X's own.",
    {"correlation": (-0.95, 0.95), "known": (-3, 3)},
)
def conditioning_is_a_slice(correlation: float = 0.8, known: tuple[float, float, float] = (-1.5, 0.0, 1.5)) -> Plot:
    distribution = MultivariateNormal(
        torch.zeros(2, dtype=torch.float64), torch.tensor([[1.0, correlation], [correlation, 1.0]], dtype=torch.float64)
    )
    line = torch.linspace(-3.5, 3.5, 281, dtype=torch.float64)
    heights = torch.tensor(known, dtype=torch.float64).unsqueeze(-1)
    with house_style():
        sheet = new_figure(height=5.4, width=5.6)
        upper, lower = sheet.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        x, y = torch.meshgrid(line, line, indexing="xy")
        density = distribution.log_prob(torch.stack([x, y], dim=-1)).exp()
        upper.contour(line, line, density, levels=[0.01, 0.03, 0.07, 0.13, 0.2], colors=FAINT, linewidths=1)
        given = distribution.condition([1], line.unsqueeze(-1))
        upper.plot(given.mean[:, 0], line, color=INK, linewidth=1.4, label="mean of X given y")
        lower.plot(
            line,
            distribution.marginal([0]).log_prob(line[:, None]).exp(),
            "--",
            color=INK,
            linewidth=1.4,
            label="X alone",
        )
        for value, color in zip(heights, COLORS):
            slice_of = distribution.condition([1], value)
            upper.axhline(float(value), color=color)
            lower.plot(
                line,
                slice_of.log_prob(line[:, None]).exp(),
                color=color,
                label=f"y = {float(value):g}".replace("-", "−"),
            )
            lower.axvline(float(slice_of.mean), color=color, linewidth=0.8, linestyle=":")
            upper.plot(float(slice_of.mean), float(value), "o", color=color, markersize=5)
        upper.set(title=f"Correlation {correlation:g}: the joint density, cut at three y", ylabel="y", ylim=(-3, 3))
        lower.set(title="The density of X given each y", xlabel="x", ylabel="density", ylim=(0, 0.75))
        upper.legend(loc="upper left")
        lower.legend(loc="upper left", fontsize=8)
        return Plot(sheet, "Conditioning a normal distribution")
