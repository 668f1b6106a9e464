"""Kernel regression plotted: four kernels, the curves they fit and the weights they give, and how the error falls with
the points."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import keyed_generator
from quoin.layers import nadaraya_watson, nadaraya_watson_definition
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, FAINT, INK, amount_map, house_style, new_figure
from quoin.tensor import BoxcarKernel, EpanechnikovKernel, GaussianKernel, SmoothingKernel, TriangularKernel

KERNELS: dict[str, SmoothingKernel] = {
    "Gaussian": GaussianKernel(),
    "boxcar": BoxcarKernel(),
    "triangular": TriangularKernel(),
    "Epanechnikov": EpanechnikovKernel(),
}


def truth(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    return 2 * torch.sin(x) + x


def noisy(num_points: int, *key: str | int) -> tuple[Float[Tensor, "n 1"], Float[Tensor, "n 1"]]:
    """Places on [0, 5] in order and values about the truth."""
    generator = keyed_generator("figure Z11.10", *key)
    x = 5 * torch.rand(num_points, 1, generator=generator, dtype=torch.float64)
    x = x.sort(dim=0).values
    return x, truth(x) + 0.5 * torch.randn(num_points, 1, generator=generator, dtype=torch.float64)


@figure(
    ("Z11.10", "Z11.8", "ZE22"),
    "Four kernels K(u); what each fits to the same 40 noisy values (dashed: the truth); and the weight of every "
    "key (across) for every "
    "query (down). The boxcar's fit has steps and the triangular one's breakpoints; (1 − |u|)₊ is triangular, (1 − "
    "u²)₊ Epanechnikov's.",
    {"num_points": (5, 500), "bandwidth": (0.05, 3)},
)
def four_kernels(num_points: int = 40, bandwidth: float = 0.3) -> Plot:
    x, y = noisy(num_points)
    line = torch.linspace(0, 5, 301, dtype=torch.float64).unsqueeze(-1)
    u = torch.linspace(-2.5, 2.5, 401, dtype=torch.float64).unsqueeze(-1)
    with house_style():
        sheet = new_figure(height=5.6)
        rows = sheet.subplots(3, 4, height_ratios=(0.8, 1.2, 1.2), sharey="row")
        for column, (name, kernel) in enumerate(KERNELS.items()):
            width = bandwidth if kernel.radius == math.inf else 2.5 * bandwidth  # about as much reach
            found = nadaraya_watson_definition(line, x, y, kernel, width)
            shape, fit, weights = rows[:, column]
            shape.plot(u, kernel(u), color=COLORS[column], linewidth=1.5)
            shape.set_title(name, fontsize=10)
            shape.set_xlabel("u", fontsize=8, labelpad=1)
            fit.scatter(x, y, s=7, color=FAINT)
            fit.plot(line, truth(line), color=INK, linewidth=1, linestyle=(0, (4, 3)))
            fit.plot(line, found.output, color=COLORS[column], linewidth=1.5)
            fit.set_xlabel(f"x, bandwidth {width:g}", fontsize=8, labelpad=1)
            weights.imshow(
                found.weights[::3].numpy(),
                cmap=amount_map(),
                vmin=0,
                vmax=0.4,
                aspect="auto",
                interpolation="none",
                extent=(0, num_points, 5, 0),
            )
            weights.set_xlabel("keys in order", fontsize=8, labelpad=1)
            for axes in (shape, fit, weights):
                axes.tick_params(labelsize=7)
        for axes, label in zip(rows[:, 0], ("K(u)", "y", "query x")):
            axes.set_ylabel(label, fontsize=9)
        return Plot(sheet, "four kernels")


@figure(
    ("Z11.9", "Z11.11"),
    "Left: one kernel at three widths. Right: root mean squared error by number of points, in the mean over 20 "
    "samples: with h ∝ n^(−1/5) "
    "it falls along n^(−2/5), with a fixed h it stops at its bias.",
    {"bandwidths": (0.03, 5), "fixed": (0.05, 5), "num_samples": (1, 200)},
)
def widths(
    bandwidths: tuple[float, float, float] = (0.05, 0.3, 1.5), fixed: float = 0.6, num_samples: int = 20
) -> Plot:
    x, y = noisy(40)
    line = torch.linspace(0, 5, 301, dtype=torch.float64).unsqueeze(-1)
    inner = torch.linspace(0.5, 4.5, 81, dtype=torch.float64).unsqueeze(-1)
    counts = [30, 100, 300, 1000, 3000, 10_000]
    shrinking, kept = [], []
    for count in counts:
        samples = [noisy(count, "errors", count, k) for k in range(num_samples)]
        for errors, bandwidth in ((shrinking, count ** (-1 / 5)), (kept, fixed)):
            misses = [nadaraya_watson(inner, *sample, GaussianKernel(), bandwidth) - truth(inner) for sample in samples]
            errors.append(float(torch.stack(misses).square().mean().sqrt()))
    with house_style():
        sheet = new_figure(height=3.2)
        left, right = sheet.subplots(1, 2)
        left.scatter(x, y, s=8, color=FAINT)
        left.plot(line, truth(line), color=INK, linewidth=1, linestyle=(0, (4, 3)))
        for color, bandwidth in zip(COLORS, bandwidths):
            left.plot(
                line,
                nadaraya_watson(line, x, y, GaussianKernel(), bandwidth),
                color=color,
                linewidth=1.3,
                label=f"h = {bandwidth:g}",
            )
        left.set_xlabel("x")
        left.set_ylabel("y")
        left.legend(fontsize=8)
        right.plot(counts, shrinking, "o-", color=COLORS[0], markersize=4, linewidth=1.3, label="h = n^(−1/5)")
        right.plot(counts, kept, "o-", color=COLORS[1], markersize=4, linewidth=1.3, label=f"h = {fixed:g}")
        reference = [shrinking[-1] * (count / counts[-1]) ** -0.4 for count in counts]
        right.plot(counts, reference, color=INK, linewidth=1, linestyle=(0, (4, 3)), label="∝ n^(−2/5)")
        right.set_xscale("log")
        right.set_yscale("log")
        right.set_xlabel("number of points n")
        right.set_ylabel("error")
        right.grid(True)
        right.legend(fontsize=8)
        return Plot(sheet, "widths")
