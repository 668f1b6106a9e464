"""A mixture that EM has found, and how EM arrived there; and when two modes merge into one."""

import torch

from quoin.data import keyed_generator
from quoin.models import em, em_step, init_mixture
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.ellipses import put_ellipses
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure
from quoin.prob import FullNormals, GaussianMixtureDistribution, SphericalNormals, modes_1d


@figure(
    ("D6-9", "D6-10"),
    "A mixture of three normal distributions found by EM: its initialisation, the responsibilities and ellipses of one "
    "and two standard deviations after one "
    "step and at the end, and the likelihood, which never falls. Points are mixed from the colours of their "
    "components.",
    {"num_points": (20, 5000)},
)
def fitted_mixture(num_points: int = 600) -> Plot:
    generator = keyed_generator("fitted mixture", 0)
    true = GaussianMixtureDistribution(
        torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64),
        FullNormals(
            torch.tensor([[0.0, 0.0], [3.0, 1.0], [0.5, 3.2]], dtype=torch.float64),
            torch.tensor(
                [[[1.2, 0.7], [0.7, 0.8]], [[0.4, -0.3], [-0.3, 0.9]], [[1.5, 0.0], [0.0, 0.15]]], dtype=torch.float64
            ),
        ),
    )
    x = true.sample((num_points,), generator=generator)
    begin = init_mixture(x, 3, generator=keyed_generator("start of the mixture", 5))
    middle, fitted = em_step(begin, x).output, em(begin, x)
    with house_style():
        sheet = new_figure(height=6.6)
        grid = sheet.subplots(2, 2).flatten()
        for axes, distribution, title in zip(
            grid, (begin, middle, fitted.output), ("initialisation", "after one step", "at the end")
        ):
            _responsibilities(axes, distribution, x, title)
        steps = range(len(fitted.log_likelihoods))
        grid[3].plot(steps, [each / len(x) for each in fitted.log_likelihoods], color=COLORS[0])
        level = float(true.log_prob(x).mean())
        grid[3].axhline(level, color=INK, linewidth=1, linestyle=(0, (4, 3)), label="the distribution of the points")
        grid[3].set_title("mean of ln p(x)", fontsize=10)
        grid[3].set_xlabel("step")
        grid[3].legend(fontsize=8)
        return Plot(sheet, "a mixture of three normal distributions found by EM")


@figure(
    "D6-9c",
    "Two normal distributions of equal weight and standard deviation σ: one mode as long as the means are at most 2σ "
    "apart, two beyond. Dots are the modes.",
    {"distances": (0, 8)},
)
def one_hill_or_two(distances: tuple[float, float, float] = (1.5, 2.0, 3.0)) -> Plot:
    with house_style():
        sheet = new_figure(height=2.8)
        for axes, apart in zip(sheet.subplots(1, 3), distances):
            means = torch.tensor([[-apart / 2], [apart / 2]], dtype=torch.float64)
            distribution = GaussianMixtureDistribution(
                torch.tensor([0.5, 0.5], dtype=torch.float64),
                SphericalNormals(means, torch.ones(2, dtype=torch.float64)),
            )
            x = torch.linspace(-5, 5, 400, dtype=torch.float64).unsqueeze(-1)
            for densities in (0.5 * distribution.log_likelihoods(x).exp()).mT:
                axes.plot(x[:, 0], densities, color=FAINT, linewidth=1)
            axes.plot(x[:, 0], distribution.log_prob(x).exp(), color=COLORS[0])
            peaks = modes_1d(distribution)
            axes.plot(peaks, distribution.log_prob(peaks.unsqueeze(-1)).exp(), "o", color=COLORS[1], markersize=5)
            axes.set_title(f"{apart:g}σ apart", fontsize=10)
            axes.set_yticks([])
            axes.set_xlabel("x / σ")
        return Plot(sheet, "two bells as one hill or two")


def _responsibilities(axes, distribution: GaussianMixtureDistribution, x: torch.Tensor, title: str) -> None:
    from matplotlib.colors import to_rgb

    palette = torch.tensor([to_rgb(color) for color in COLORS[:3]], dtype=x.dtype)
    mixed = (distribution.responsibilities(x) @ palette).clamp(0, 1)
    axes.scatter(*x.mT, s=6, c=mixed.numpy(), alpha=0.6, linewidths=0)
    put_ellipses(axes, distribution.components.means, distribution.components.covariance_matrices)
    axes.set_aspect("equal")
    axes.set_title(title, fontsize=10)
