"""Descent plotted: paths on landscapes, learning rates too small and too large, momentum by its two numbers."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from quoin.notes.figures.figure import figure
from quoin.optim import (
    Adam,
    GradientDescent,
    Momentum,
    Nesterov,
    Newton,
    RMSProp,
    best_momentum,
    descend,
    double_well,
    momentum_convergence_rate,
    ravine,
    rosenbrock,
    saddle,
    wavy,
)
from quoin.plot import Plot
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Window = tuple[float, float, float, float]  # of x, then of y


def contours(axes: "Axes", f: Callable[[Tensor], Tensor], window: Window, *, logarithmic: bool = False) -> None:
    """Lines of equal height, the lower the further from paper."""
    left, right, bottom, top = window
    x, y = (torch.linspace(*ends, 121, dtype=torch.float64) for ends in ((left, right), (bottom, top)))
    heights = f(torch.stack(torch.meshgrid(x, y, indexing="xy"), -1))
    axes.contourf(x, y, torch.log1p(heights) if logarithmic else heights, levels=14, cmap="Greys_r", alpha=0.45)
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.tick_params(labelsize=7)


@figure(
    "Z12.1",
    "Rules on four landscapes from one start each (black), 60 steps; a star is a minimiser. Plain descent runs "
    "into the saddle before it "
    "falls off, oscillates in the ravine, and does not get round the bend of Rosenbrock's valley, where Newton's "
    "rule arrives in seven steps.",
    {"num_steps": (1, 1000), "momentum": (0, 0.99)},
)
def paths_on_landscapes(num_steps: int = 60, momentum: float = 0.8) -> Plot:
    landscapes: dict[
        str, tuple[Callable[[Tensor], Tensor], Window, tuple[float, float], list[tuple[float, float]], float]
    ] = {
        "saddle, x² − y²": (saddle, (-1.6, 1.6, -1.6, 1.6), (-1.4, 0.01), [], 0.05),
        "ravine, (x² + 20y²)/2": (ravine, (-4.4, 2.2, -1.3, 1.3), (-4.0, 0.9), [(0.0, 0.0)], 0.094),
        "two wells, (x² − 1)² + y²": (double_well, (-1.9, 1.9, -1.5, 1.5), (0.1, 1.3), [(-1.0, 0.0), (1.0, 0.0)], 0.05),
        "Rosenbrock's valley": (rosenbrock, (-1.8, 1.8, -3.5, 2.4), (-1.2, 1.0), [(1.0, 1.0)], 0.0008),
    }
    with house_style():
        sheet = new_figure(height=6.4)
        for axes, (name, (f, window, start, lowest, lr)) in zip(sheet.subplots(2, 2).flatten(), landscapes.items()):
            contours(axes, f, window, logarithmic=f is rosenbrock)
            rules = {
                "gradient descent": GradientDescent(lr),
                "momentum": Momentum(lr / 2, momentum),
                "Nesterov": Nesterov(lr / 2, momentum),
                "RMSProp": RMSProp(0.05, 0.9),
                "Adam": Adam(0.1),
            }
            for color, (label, rule) in zip(COLORS, rules.items()):
                points = descend(f, torch.tensor(start, dtype=torch.float64), rule, num_steps).points
                axes.plot(points[:, 0], points[:, 1], "-o", color=color, markersize=2, linewidth=1.1, label=label)
            if f is rosenbrock:
                points = descend(f, torch.tensor(start, dtype=torch.float64), Newton(f), 7).points
                axes.plot(points[:, 0], points[:, 1], "--s", color=INK, markersize=3, linewidth=0.9, label="Newton")
            axes.plot(*start, "o", color=INK, markersize=5, zorder=4)
            for point in lowest:
                axes.plot(*point, "*", color="#ffffff", markeredgecolor=INK, markersize=11, zorder=3)
            axes.set_title(name, fontsize=10)
        handles, labels = sheet.axes[-1].get_legend_handles_labels()
        sheet.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
        return Plot(sheet, "paths of five rules on four landscapes")


@figure(
    "Z12.11",
    "Gradient descent on ½x² from 2.4: η small creeps, η = 1.9 swings from side to side, η = 2.05 bursts; and on x "
    "cos πx it "
    "ends in the valley it started in.",
    {"lrs": (0.001, 2.5), "start": (-3, 3)},
)
def learning_rates(
    lrs: tuple[float, float, float, float, float] = (0.05, 0.5, 1.0, 1.9, 2.05), start: float = 2.4
) -> Plot:
    with house_style():
        sheet = new_figure(height=4.6)
        grid = sheet.subplots(2, 3).flatten()
        line = torch.linspace(-3.2, 3.2, 201, dtype=torch.float64)
        for axes, (lr, steps) in zip(grid, zip(lrs, (15, 15, 2, 12, 7))):
            path = descend(lambda x: x**2 / 2, torch.tensor(start, dtype=torch.float64), GradientDescent(lr), steps)
            axes.plot(line, line**2 / 2, color=FAINT)
            axes.plot(path.points, path.values, "-o", color=COLORS[1], markersize=3.5, linewidth=1)
            axes.plot(path.points[0], path.values[0], "o", color=INK, markersize=5)
            axes.set_title(f"η = {lr:g}", fontsize=10)
        axes, line = grid[-1], torch.linspace(-1, 2, 301, dtype=torch.float64)
        axes.plot(line, wavy(line), color=FAINT)
        for color, begin in zip(COLORS, (-0.95, 1.9)):
            path = descend(wavy, torch.tensor(begin, dtype=torch.float64), GradientDescent(0.04), 25)
            axes.plot(path.points, path.values, "-o", color=color, markersize=3.5, linewidth=1)
            axes.plot(path.points[0], path.values[0], "o", color=INK, markersize=5)
        axes.set_title("x cos πx, η = 0.04", fontsize=10)
        for axes in grid:
            axes.tick_params(labelsize=7)
        return Plot(sheet, "gradient descent by its learning rate")


@figure(
    "D1.5F",
    "60 steps of momentum in the ravine (x² + 20y²)/2 by m and γL; ρ is the factor by which the error shrinks a "
    "step in the end, "
    "above 1 in orange. Momentum carries along the floor, and allows learning rates up to γL = 2(1 + m).",
    {"num_steps": (1, 1000), "momenta": (0, 0.99), "products": (0.01, 4)},
)
def momentum_paths(
    num_steps: int = 60,
    momenta: tuple[float, float, float] = (0.0, 0.5, 0.85),
    products: tuple[float, float, float, float] = (0.2, 1.0, 1.9, 2.5),
) -> Plot:
    largest = 20.0
    start = torch.tensor([-4.0, 0.9], dtype=torch.float64)
    window = (-4.6, 3.6, -1.4, 1.4)
    curvatures = torch.tensor([1.0, largest], dtype=torch.float64)
    with house_style():
        sheet = new_figure(height=4.9)
        panels = sheet.subplots(3, 4, sharex=True, sharey=True)
        for row, momentum in zip(panels, momenta):
            for axes, product in zip(row, products):
                lr = product / largest
                contours(axes, ravine, window)
                points = descend(ravine, start, Momentum(lr, momentum), num_steps).points
                worst = float(momentum_convergence_rate(torch.tensor(lr), torch.tensor(momentum), curvatures).max())
                color = COLORS[1] if worst > 1 else COLORS[0]
                axes.plot(points[:, 0], points[:, 1], "-o", color=color, markersize=1.8, linewidth=0.9)
                axes.plot(*start, "o", color=INK, markersize=4)
                axes.plot(0, 0, "*", color="#ffffff", markeredgecolor=INK, markersize=8, zorder=3)
                axes.set_title(f"ρ = {worst:.3f}", fontsize=9, color=color, pad=3)
            row[0].set_ylabel(f"m = {momentum:g}")
        for axes, product in zip(panels[-1], products):
            axes.set_xlabel(f"γL = {product:g}")
        return Plot(sheet, "momentum on a quadratic by its two numbers")


@figure(
    ("D1.5-9", "DE19"),
    "The factor ρ by which momentum's error shrinks each step, by γL and m, for one curvature (left) and over all "
    "from L/20 to L (right). "
    "White beyond γL = 2(1 + m), where it bursts; the star is the best choice, the dot the best without momentum.",
    {"condition": (1.01, 10000)},
)
def momentum_phase(condition: float = 20.0) -> Plot:
    products = torch.linspace(0.01, 4.4, 220, dtype=torch.float64)
    momenta = torch.linspace(0, 1, 201, dtype=torch.float64)[:-1]
    with house_style():
        sheet = new_figure(height=3.7)
        panels = sheet.subplots(1, 2, sharey=True)
        titles = ("one curvature, L", f"curvatures from L/{condition:g} to L")
        for axes, curvatures, title in zip(panels, ((1.0,), (1 / condition, 1.0)), titles):
            each = [
                momentum_convergence_rate(products, momenta[:, None], torch.tensor(curvature, dtype=torch.float64))
                for curvature in curvatures
            ]
            lr = torch.stack(each).amax(0)  # ρ is largest at an end of the range of curvatures
            shown = torch.where(lr < 1, lr, torch.nan)
            axes.pcolormesh(
                products.numpy(),
                momenta.numpy(),
                shown.numpy(),
                cmap="viridis",
                vmin=0,
                vmax=1,
                shading="nearest",
                rasterized=True,
            )
            lines = axes.contour(
                products.numpy(),
                momenta.numpy(),
                lr.numpy(),
                levels=[0.5, 0.7, 0.8, 0.9, 0.95],
                colors="white",
                linewidths=0.7,
            )
            axes.clabel(lines, fontsize=7)
            axes.plot(2 * (1 + momenta), momenta, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
            best = best_momentum(curvatures[0], 1.0)
            axes.plot(
                best.lr,
                best.momentum,
                "*",
                color="#ffffff",
                markeredgecolor=INK,
                markersize=12,
                clip_on=False,
                zorder=4,
            )
            axes.plot(
                2 / (curvatures[0] + 1),
                0,
                "o",
                color="#ffffff",
                markeredgecolor=INK,
                markersize=6,
                clip_on=False,
                zorder=3,
            )
            axes.set_xlabel("γL")
            axes.set_title(title, fontsize=10)
            axes.text(
                2.95,
                0.3,
                "γL = 2(1 + m)",
                rotation=math.degrees(math.atan2(1, 2)),
                transform_rotates_text=True,
                rotation_mode="anchor",
                fontsize=8,
            )
        panels[0].set_ylabel("momentum m")
        sheet.colorbar(panels[0].collections[0], ax=panels, label="ρ, error's factor a step", shrink=0.9)
        return Plot(sheet, "how fast momentum converges")
