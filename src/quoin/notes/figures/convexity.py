"""Convexity plotted: chords above and below a curve, sublevel sets, and a run of descent beside its theoretical
bounds."""

import math

import torch
from torch import Tensor

from quoin.losses import l2_penalty, logistic_loss
from quoin.notes.figures.figure import figure
from quoin.optim import (
    GradientDescent,
    chord_gap,
    convex_bound,
    convex_combination,
    descend,
    double_well,
    is_convex,
    is_convex_set,
    logistic_constants,
    minimize_lbfgs,
    strongly_convex_bound,
    sublevel_set,
)
from quoin.plot import Plot, curves
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure


@figure(
    "Z12.5F",
    "Chords of ½x², cos(πx) and e^{x/2}: a convex curve lies below every chord, cos(πx) is partly above one of its "
    "own.",
    {"a": (-2, 2), "b": (-2, 2)},
)
def chords(a: float = -1.5, b: float = 1.0) -> Plot:
    examples = {
        "½x²": (lambda x: x**2 / 2, (a, b)),
        "cos(πx)": (lambda x: (math.pi * x).cos(), (a, b)),
        r"$\mathbf{e^{x/2}}$": (lambda x: (x / 2).exp(), (a, b)),
    }
    x = torch.linspace(-2, 2, 201, dtype=torch.float64)
    with house_style():
        sheet = new_figure(height=3.0)
        for axes, (name, (f, ends)) in zip(sheet.subplots(1, 3), examples.items()):
            left, right = torch.tensor(ends, dtype=torch.float64)
            weights = torch.linspace(0, 1, 101, dtype=torch.float64)
            inner = torch.stack([convex_combination(left, right, weight) for weight in weights])
            height = torch.stack(
                [f(point) + chord_gap(f, left, right, weight) for point, weight in zip(inner, weights)]
            )
            axes.fill_between(
                inner, f(inner), height, where=height >= f(inner), color=COLORS[0], alpha=0.18, linewidth=0
            )
            axes.fill_between(
                inner, f(inner), height, where=height <= f(inner), color=COLORS[1], alpha=0.3, linewidth=0
            )
            axes.plot(x, f(x), color=COLORS[0], label="f")
            axes.plot(ends, (f(left), f(right)), "o-", color=COLORS[1], markersize=4, label="chord λf(a) + (1−λ)f(b)")
            verdict = "convex" if is_convex(f, x, generator=torch.Generator().manual_seed(0)) else "not convex"
            axes.set_title(f"{name}: {verdict}", fontsize=10)
            axes.set_xticks(ends, ["a", "b"])
            axes.set_yticks([])
        handles, labels = sheet.axes[0].get_legend_handles_labels()
        sheet.legend(handles, labels, loc="outside lower center", ncols=2)
        return Plot(sheet, "Chords of three functions")


def _bowl(x: Tensor) -> Tensor:  # (..., 2) -> (...)
    return (1.5 * x[..., 0] + x[..., 1]).cosh() - 1 + 2 * x[..., 1] ** 2


@figure(
    "Z12.9",
    "Sets {x : f(x) ≤ b} at three levels b: of a convex f all are convex, of one with two hollows none is.",
    {"levels": (0.05, 2.5)},
)
def below_sets(levels: tuple[float, float, float] = (0.4, 1.2, 2.0)) -> Plot:
    heights = sorted(levels)
    line = torch.linspace(-1.8, 1.8, 181, dtype=torch.float64)
    points = torch.stack(torch.meshgrid(line, line, indexing="xy"), dim=-1)
    coarse = points[::12, ::12].reshape(-1, 2)
    with house_style():
        sheet = new_figure(height=3.7)
        for axes, f, name in zip(
            sheet.subplots(1, 2), (_bowl, double_well), ("cosh(1.5x + y) − 1 + 2y²", "(x² − 1)² + y²")
        ):
            axes.contourf(line, line, f(points), levels=(-1, *heights), cmap="Blues_r", vmin=-4.0, vmax=2.6)
            edges = axes.contour(line, line, f(points), levels=heights, colors=COLORS[0], linewidths=1)
            axes.clabel(edges, fmt="b = %g", colors=INK, fontsize=8)
            for level in heights:
                found = is_convex_set(
                    sublevel_set(f, level), coarse, generator=torch.Generator().manual_seed(0), num_cases=2000
                ).counterexample
                if found is not None:
                    ends = torch.stack([found.a, found.b])
                    axes.plot(ends[:, 0], ends[:, 1], "o-", color=COLORS[1], markersize=4, linewidth=1.4)
                    outside = convex_combination(found.a, found.b, found.weight)
                    axes.plot(*outside, "x", color=INK, markersize=7, markeredgewidth=1.8)
            axes.set_title(name, fontsize=10)
            axes.set_aspect("equal")
            axes.set_xticks([])
            axes.set_yticks([])
            for side in axes.spines.values():
                side.set_color(FAINT)
        sheet.supxlabel("× leaves the set between two of its points", fontsize=9)
        return Plot(sheet, "Sublevel sets of two functions")


@figure(
    "D1.5-5",
    "Logistic regression with l2: how far gradient descent with η = 1/L is above the minimum, and the bounds of "
    "two theorems.",
    {"num_steps": (2, 10000), "l2": (0.0001, 10)},
)
def bound_beside_the_run(num_steps: int = 150, l2: float = 0.01) -> Plot:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(60, 4, generator=generator, dtype=torch.float64) * torch.tensor([1.0, 0.7, 0.5, 0.35])
    y = (X[:, 0] + X[:, 1] + 0.7 * torch.randn(60, generator=generator, dtype=torch.float64)).sign()
    constants = logistic_constants(X, l2=l2)

    def cost(w: Tensor) -> Tensor:
        return logistic_loss(y * (X @ w)).mean() + l2_penalty(w, l2)

    star = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    minimize_lbfgs([star], lambda: cost(star), tol=1e-12)
    lr, steps, start = 1 / constants.smoothness, num_steps, torch.tensor([-2.0, -1.0, 2.0, -1.0], dtype=torch.float64)
    run = descend(cost, start, GradientDescent(lr), steps)
    sublinear = convex_bound(start, star, steps, lr=lr, smoothness=constants.smoothness)
    linear = strongly_convex_bound(start, star, steps, lr=lr, constants=constants)
    t = torch.arange(1, steps + 1)
    return curves(
        {
            "the run": (t, (run.values - cost(star).detach())[1:]),
            "|θ₀ − θ*|² / (2ηt)": (t, sublinear[1:]),
            "(L/2) (1 − ημ)²ᵗ |θ₀ − θ*|²": (t, linear[1:]),
        },
        title="The bound beside the run",
        x_label="step t",
        y_label="C(θₜ) − min C",
        log_x=True,
        log_y=True,
    )
