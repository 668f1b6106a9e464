"""Convexity drawn: chords above and below a curve, sets of points below a level, and a run of descent beside what theory promises."""

import math

import torch
from torch import Tensor

from quoin.losses import l2_penalty, log_loss
from quoin.notes.figures.figure import figure
from quoin.optim import (
    GradientDescent,
    below_set,
    between,
    chord_gap,
    convex_bound,
    descend,
    double_well,
    fit,
    is_convex,
    is_convex_set,
    logistic_constants,
    strongly_convex_bound,
)
from quoin.plot import Drawing, curves
from quoin.plot.drawing import COLOURS, FAINT, INK, house_style, new_figure


@figure("Z12.5F", "Chords of ½x², cos(πx) and e^{x/2}: a convex curve lies below every chord, cos(πx) is partly above one of its own.")
def chords() -> Drawing:
    examples = {
        "½x²": (lambda x: x**2 / 2, (-1.5, 1.0)),
        "cos(πx)": (lambda x: (math.pi * x).cos(), (-1.5, 1.0)),
        r"$\mathbf{e^{x/2}}$": (lambda x: (x / 2).exp(), (-1.5, 1.0)),
    }
    x = torch.linspace(-2, 2, 201, dtype=torch.float64)
    with house_style():
        drawn = new_figure(height=3.0)
        for axes, (name, (f, ends)) in zip(drawn.subplots(1, 3), examples.items()):
            a, b = torch.tensor(ends, dtype=torch.float64)
            shares = torch.linspace(0, 1, 101, dtype=torch.float64)
            inner = torch.stack([between(a, b, share) for share in shares])
            height = torch.stack([f(point) + chord_gap(f, a, b, share) for point, share in zip(inner, shares)])
            axes.fill_between(inner, f(inner), height, where=height >= f(inner), color=COLOURS[0], alpha=0.18, linewidth=0)
            axes.fill_between(inner, f(inner), height, where=height <= f(inner), color=COLOURS[1], alpha=0.3, linewidth=0)
            axes.plot(x, f(x), color=COLOURS[0], label="f")
            axes.plot(ends, (f(a), f(b)), "o-", color=COLOURS[1], markersize=4, label="chord λf(a) + (1−λ)f(b)")
            verdict = "convex" if is_convex(f, x, generator=torch.Generator().manual_seed(0)) else "not convex"
            axes.set_title(f"{name}: {verdict}", fontsize=10)
            axes.set_xticks(ends, ["a", "b"])
            axes.set_yticks([])
        handles, labels = drawn.axes[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=2)
        return Drawing(drawn, "Chords of three functions")


def _bowl(x: Tensor) -> Tensor:  # (..., 2) -> (...)
    return (1.5 * x[..., 0] + x[..., 1]).cosh() - 1 + 2 * x[..., 1] ** 2


@figure("Z12.9", "Sets {x : f(x) ≤ b} at three levels b: of a convex f all are convex, of one with two hollows none is.")
def below_sets() -> Drawing:
    line = torch.linspace(-1.8, 1.8, 181, dtype=torch.float64)
    points = torch.stack(torch.meshgrid(line, line, indexing="xy"), dim=-1)
    coarse = points[::12, ::12].reshape(-1, 2)
    with house_style():
        drawn = new_figure(height=3.7)
        for axes, f, name in zip(drawn.subplots(1, 2), (_bowl, double_well), ("cosh(1.5x + y) − 1 + 2y²", "(x² − 1)² + y²")):
            levels = (0.4, 1.2, 2.0)
            axes.contourf(line, line, f(points), levels=(-1, *levels), cmap="Blues_r", vmin=-4.0, vmax=2.6)
            edges = axes.contour(line, line, f(points), levels=levels, colors=COLOURS[0], linewidths=1)
            axes.clabel(edges, fmt="b = %g", colors=INK, fontsize=8)
            for level in levels:
                found = is_convex_set(below_set(f, level), coarse, generator=torch.Generator().manual_seed(0), cases=2000).counterexample
                if found is not None:
                    ends = torch.stack([found.a, found.b])
                    axes.plot(ends[:, 0], ends[:, 1], "o-", color=COLOURS[1], markersize=4, linewidth=1.4)
                    outside = between(found.a, found.b, found.share)
                    axes.plot(*outside, "x", color=INK, markersize=7, markeredgewidth=1.8)
            axes.set_title(name, fontsize=10)
            axes.set_aspect("equal")
            axes.set_xticks([])
            axes.set_yticks([])
            for side in axes.spines.values():
                side.set_color(FAINT)
        drawn.supxlabel("× leaves the set between two of its points", fontsize=9)
        return Drawing(drawn, "Below sets of two functions")


@figure("D1.5-5", "Logistic regression with l2: how far gradient descent with η = 1/L is above the minimum, and what two theorems promise.")
def bound_beside_the_run() -> Drawing:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(60, 4, generator=generator, dtype=torch.float64) * torch.tensor([1.0, 0.7, 0.5, 0.35])
    y = (X[:, 0] + X[:, 1] + 0.7 * torch.randn(60, generator=generator, dtype=torch.float64)).sign()
    constants = logistic_constants(X, l2=0.01)

    def cost(w: Tensor) -> Tensor:
        return log_loss(y * (X @ w)).mean() + l2_penalty(w, 0.01)

    star = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    fit([star], lambda: cost(star), tolerance=1e-12)
    rate, steps, start = 1 / constants.smoothness, 150, torch.tensor([-2.0, -1.0, 2.0, -1.0], dtype=torch.float64)
    run = descend(cost, start, GradientDescent(rate), steps)
    sublinear = convex_bound(start, star, steps, learning_rate=rate, smoothness=constants.smoothness)
    linear = strongly_convex_bound(start, star, steps, learning_rate=rate, constants=constants)
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
