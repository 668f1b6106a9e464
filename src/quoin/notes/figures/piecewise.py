"""Piecewise linear functions plotted: the graph with its breakpoints, the network it is, and g within a certified error
bound."""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch

from quoin.expressivity import PiecewiseLinear, affine_layers, approximate_1d, to_relu_network
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure

SLOPES = (0.5, -1.0, 1.6, -0.8, 0.4)


def example(slopes: Sequence[float] = SLOPES, offset: float = 2.0) -> PiecewiseLinear:
    t = torch.tensor([-2.0, -0.75, 0.5, 2.25], dtype=torch.float64)
    return PiecewiseLinear(t, torch.tensor(slopes, dtype=torch.float64), torch.tensor(offset, dtype=torch.float64))


LABELS = (
    (-3.55, 0.85),
    (-1.85, 0.95),
    (-1.35, 0.55),
    (1.5, 1.13),
    (2.1, 0.85),
)  # where the pieces' names stand clear of the lines


@figure(
    "D1.1F2",
    "A continuous piecewise linear function: four breakpoints t₀ < … < t₃, and on each of the five pieces an "
    "affine map.",
    {"slopes": (-5, 5), "offset": (-5, 5)},
)
def graph_with_breakpoints(slopes: tuple[float, float, float, float, float] = SLOPES, offset: float = 2.0) -> Plot:
    f = example(slopes, offset)
    ends = torch.cat([torch.tensor([-3.6]), f.breakpoints, torch.tensor([4.2])])
    with house_style():
        sheet = new_figure(height=3.4)
        axes = sheet.add_subplot(xlabel="x", ylabel="f(x)")
        axes.set_ylim(-0.75, 2.0)
        axes.set_xlim(-3.6, 4.2)
        for piece, (left, right) in enumerate(pairwise(ends)):
            x = torch.stack([left, right])
            axes.plot(x, f(x), color=COLORS[piece % len(COLORS)], linewidth=2.2)
            name = f"$L_{piece}$: slope {float(f.slopes[piece]):g}".replace("-", "−")
            axes.text(*LABELS[piece], name, fontsize=8.5, color=INK)
        for index, (t, value) in enumerate(zip(f.breakpoints.tolist(), f.values.tolist())):
            axes.plot([t, t], [-0.75, value], color=FAINT, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
            axes.plot([t], [value], "o", color=INK, markersize=5)
            axes.annotate(
                f"$t_{index}$",
                (t, -0.73),
                ha="left",
                va="bottom",
                fontsize=9,
                xytext=(3, 0),
                textcoords="offset points",
            )
        return Plot(sheet, "a piecewise linear graph")


@figure(
    "D1.1-3",
    "The same function as a network of p + 2 = 5 hidden ReLU units: each unit's fraction of the sum, and the sum "
    "with b².",
    {"slopes": (-5, 5), "offset": (-5, 5)},
)
def graph_with_network(slopes: tuple[float, float, float, float, float] = SLOPES, offset: float = 2.0) -> Plot:
    f = example(slopes, offset)
    (inner, biases), (outer, last) = affine_layers(to_relu_network(f))
    x = torch.linspace(-3.6, 4.2, 400, dtype=torch.float64)
    with house_style():
        sheet = new_figure(height=4.0)
        left, right = sheet.subplots(1, 2, width_ratios=(1, 1.25))
        heights = [float(len(biases) - 1 - 2 * unit) / 2 for unit in range(len(biases))]
        for unit, height in enumerate(heights):
            color = COLORS[unit % len(COLORS)]
            left.plot([0, 1], [0, height], color=color, linewidth=1.2)
            left.plot([1, 2], [height, 0], color=color, linewidth=1.2)
            left.text(
                1,
                height,
                "ReLU",
                ha="center",
                va="center",
                fontsize=8,
                bbox={"boxstyle": "circle", "fc": "white", "ec": color},
            )
            entering, leaving = (
                f"{'x' if inner[unit, 0] > 0 else '−x'} {float(biases[unit]):+.2f}",
                f"{float(outer[0, unit]):+.1f}",
            )
            for at, height_fraction, number in ((0.52, 0.52, entering), (1.5, 0.5, leaving)):
                blank = {"fc": "white", "ec": "none", "pad": 1}
                left.text(
                    at,
                    height_fraction * height,
                    number.replace("-", "−"),
                    ha="center",
                    va="center",
                    fontsize=8,
                    bbox=blank,
                )
            ramp = outer[0, unit] * (inner[unit, 0] * x + biases[unit]).relu()
            right.plot(x, ramp, color=color, linewidth=1.2)
        for at, name in ((0, "x"), (2, f"+{float(last):.2f}\nf(x)")):
            left.text(
                at, 0, name, ha="center", va="center", fontsize=9, bbox={"boxstyle": "circle", "fc": "white", "ec": INK}
            )
        left.set_xlim(-0.25, 2.3)
        left.set_axis_off()
        right.plot(x, f(x), color=INK, linewidth=2.4, label="f, the sum of all and b²")
        right.set_ylim(-5.5, 5)
        right.set_xlabel("x")
        right.grid(True)
        right.legend(loc="lower left")
        return Plot(sheet, "a piecewise linear function and its network")


@figure(
    ("D1.1-8", "D1.1-6"),
    "√x within eps, by as many points as its modulus √δ asks for: the network, and the certified band around √x.",
    {"eps": (0.02, 2)},
)
def certificate(eps: tuple[float, float, float] = (0.5, 0.3, 0.2)) -> Plot:
    x = torch.linspace(0, 1, 2001, dtype=torch.float64)
    with house_style():
        sheet = new_figure(height=3.4)
        panels = sheet.subplots(1, 3, sharey=True)
        for axes, bound in zip(panels, eps):
            built = approximate_1d(torch.sqrt, bound, (0.0, 1.0), modulus=math.sqrt)
            axes.fill_between(
                x,
                x.sqrt() - built.error,
                x.sqrt() + built.error,
                color=FAINT,
                alpha=0.5,
                linewidth=0,
                label="certified",
            )
            axes.plot(x, x.sqrt(), color=INK, linewidth=1.2, label="√x")
            axes.plot(x, built.function(x), color=COLORS[1], linewidth=1.6, label="network")
            axes.plot(built.function.breakpoints, built.function.values, "o", color=COLORS[1], markersize=3)
            axes.set_title(f"eps {bound}: {built.num_units} units,\nmeasured {built.measured:.3f}", fontsize=9)
            axes.set_xlabel("x")
        panels[-1].legend(loc="lower right")
        return Plot(sheet, "a certified approximation")
