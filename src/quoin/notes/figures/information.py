"""Information plotted: the entropy of a coin, Jensen's chord, and one Gaussian fitted to two modes by KL in either
order."""

import math

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Categorical, MixtureSameFamily, Normal

from quoin.info import entropy, kl_divergence
from quoin.notes.figures.figure import figure
from quoin.plot import Plot, curves
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure


@figure(
    "Z13.7",
    "The entropy of a coin in bits: none when the outcome is certain, one bit at most, for a fair coin.",
    {"base": (1.1, 1000)},
)
def entropy_of_a_coin(base: float = 2.0) -> Plot:
    p = torch.linspace(0, 1, 201, dtype=torch.float64)
    unit = "H(p) in bits" if base == 2 else f"H(p), base {base:g}"
    series = {unit: (p, entropy(Bernoulli(p), base=base)), "H(p) in nats": (p, entropy(Bernoulli(p)))}
    return curves(
        series,
        title="Entropy of a coin",
        x_label="probability p of heads",
        y_label="entropy",
        reference_lines={"ln 2": math.log(2)},
    )


@figure(
    "M25F",
    "Jensen: over an upward-curving f the chord lies above the curve, so the mean of f is at least f of the mean.",
    {"weight": (0, 1), "left": (-1.4, 2.2), "right": (-1.4, 2.2)},
)
def jensen(weight: float = 0.45, left: float = -1.0, right: float = 2.0) -> Plot:
    def f(x: Tensor) -> Tensor:
        return torch.exp(0.8 * x) - 0.6 * x

    x = torch.linspace(-1.4, 2.2, 200, dtype=torch.float64)
    ends, weights = (
        torch.tensor([left, right], dtype=torch.float64),
        torch.tensor([weight, 1 - weight], dtype=torch.float64),
    )
    mean, mean_of_f = float(weights @ ends), float(weights @ f(ends))
    at_mean = float(f(torch.tensor(mean)))
    with house_style():
        sheet = new_figure(height=3.8)
        axes = sheet.add_subplot(title="The chord lies above the curve", xlabel="x")
        axes.plot(x, f(x), color=COLORS[0], label="f(x), curving upwards")
        axes.plot(ends, f(ends), color=COLORS[1], marker="o", markersize=5, label="chord between two values of x")
        axes.plot([mean, mean], [0, at_mean], color=FAINT, linewidth=1)
        axes.plot([mean, mean], [at_mean, mean_of_f], color=INK, linewidth=2.2, label="E f(x) − f(E x) ≥ 0")
        axes.plot([mean, mean], [at_mean, mean_of_f], "o", color=INK, markersize=4)
        axes.annotate("E f(x)", (mean, mean_of_f), xytext=(-8, 4), textcoords="offset points", ha="right")
        axes.annotate("f(E x)", (mean, at_mean), xytext=(8, -12), textcoords="offset points")
        axes.set_xticks([*ends.tolist(), mean], ["x₁", "x₂", "E x"])
        axes.set_yticks([])
        axes.set_ylim(0, 1.05 * float(f(x).max()))
        axes.legend(loc="upper left")
        return Plot(sheet, "A chord above a convex curve")


@figure(
    "M24",
    "One Gaussian for two modes: KL(P, Q) always covers both, KL(Q, P) keeps to one once they are far enough apart.",
    {"distances": (0.1, 5), "std": (0.2, 2)},
)
def kl_both_ways(distances: tuple[float, float, float] = (1.5, 2.5, 4.0), std: float = 0.9) -> Plot:
    with house_style():
        sheet = new_figure(height=4.4)
        rows = sheet.subplots(2, 3, sharex=True, sharey=True)
        for column, distance in enumerate(distances):
            modes = torch.tensor([-distance, distance], dtype=torch.float64)
            p = MixtureSameFamily(
                Categorical(torch.ones(2, dtype=torch.float64) / 2), Normal(modes, torch.full_like(modes, std))
            )
            covering = Normal(p.mean, p.stddev)
            for axes, distribution, way in zip(
                rows[:, column], (covering, _least_reverse_kl(p, distance, std)), ("KL(P, Q)", "KL(Q, P)")
            ):
                found = kl_divergence(p, distribution) if way == "KL(P, Q)" else kl_divergence(distribution, p)
                x = torch.linspace(-7, 7, 400, dtype=torch.float64)
                axes.fill_between(x, p.log_prob(x).exp(), color=FAINT, alpha=0.5, linewidth=0, label="P")
                color = COLORS[0] if way == "KL(P, Q)" else COLORS[1]
                axes.plot(x, distribution.log_prob(x).exp(), color=color, label=f"Q of least {way}")
                axes.set_title(f"{way} = {float(found):.2f}", fontsize=9, fontweight="normal", pad=4)
                axes.set_yticks([])
        handles = [*rows[0, 0].get_legend_handles_labels()[0], rows[1, 0].get_legend_handles_labels()[0][1]]
        sheet.legend(handles, ["P", "Q of least KL(P, Q)", "Q of least KL(Q, P)"], loc="outside lower center", ncols=3)
        return Plot(sheet, "KL both ways")


def _least_reverse_kl(p: MixtureSameFamily, distance: float, width: float) -> Normal:
    """The better of two descents on KL(Q, P), from the middle and from the right-hand mode: both may end in a
    minimum."""
    ends = [_descended(p, mean, std) for mean, std in ((0.0, distance), (distance, width))]
    return min(ends, key=lambda distribution: float(kl_divergence(distribution, p)))


def _descended(p: MixtureSameFamily, mean: float, std: float) -> Normal:
    parameters = torch.tensor([mean, math.log(std)], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([parameters], max_iter=10, line_search_fn="strong_wolfe")

    def divergence() -> Tensor:
        optimizer.zero_grad()
        found = kl_divergence(Normal(parameters[0], parameters[1].exp()), p)
        found.backward()
        return found

    optimizer.step(divergence)
    return Normal(parameters[0].detach(), parameters[1].detach().exp())
