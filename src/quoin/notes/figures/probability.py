"""Distributions plotted: an image measure, Bayes' rule as areas, slices of a joint density, and likelihoods that
sharpen."""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch import distributions as families

from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.palette import cell_text
from quoin.plot.plots import COLORS, FAINT, INK, amount_map, house_style, new_figure
from quoin.prob import (
    Density,
    ProbabilitySpace,
    RandomVariable,
    bayes_rule,
    condition_density,
    distribution_of,
    expectation,
    log_likelihood,
    mle,
    normal_density_1d,
)

LINE = (-math.inf, -1.5, 0.0, 1.5, math.inf)


@figure(
    "D5-2",
    "Two dice: the 36 outcomes coloured by their sum, and the distribution of the sum, which gathers each colour's "
    "probability.",
    {"num_sides": (2, 12)},
)
def distribution_of_the_sum(num_sides: int = 6) -> Plot:
    dice = ProbabilitySpace.uniform([(i, j) for i in range(1, num_sides + 1) for j in range(1, num_sides + 1)])
    total = RandomVariable(dice, sum)
    image = distribution_of(total)
    with house_style():
        sheet = new_figure(height=3.1)
        left, right = sheet.subplots(1, 2, width_ratios=[1, 1.5])
        from matplotlib.colors import to_hex

        color = amount_map().resampled(2 * num_sides - 1)
        table = torch.tensor([[total((i, j)) for j in range(1, num_sides + 1)] for i in range(1, num_sides + 1)])
        left.imshow(table.numpy(), cmap=color, origin="lower", extent=(0.5, num_sides + 0.5, 0.5, num_sides + 0.5))
        for i, j in dice.outcomes:
            left.text(
                j,
                i,
                str(total((i, j))),
                ha="center",
                va="center",
                color=cell_text(to_hex(color(total((i, j)) - 2))),
                fontsize=8,
            )
        left.set(
            title="outcomes and X",
            xlabel="second die",
            ylabel="first die",
            xticks=range(1, num_sides + 1),
            yticks=range(1, num_sides + 1),
        )
        right.bar(image.outcomes, image.probabilities.tolist(), color=[color(value - 2) for value in image.outcomes])
        right.axvline(float(expectation(total)), color=INK, linewidth=1, linestyle=(0, (4, 3)))
        right.set(
            title="distribution of X, with its mean", xlabel="x", ylabel="P[X = x]", xticks=range(2, 2 * num_sides + 1)
        )
        return Plot(sheet, "two dice and the distribution of their sum")


@figure(
    "Z2.8",
    "A test that finds 99% of the ill and 5% of the well: what a positive result means, by how common the illness is.",
    {"sensitivity": (0.001, 1), "false_positive_rate": (0.001, 1)},
)
def what_a_test_says(sensitivity: float = 0.99, false_positive_rate: float = 0.05) -> Plot:
    commonness = torch.logspace(-4, 0, 200, dtype=torch.float64).clamp(max=1)
    prior = torch.stack([commonness, 1 - commonness], dim=-1)
    with house_style():
        sheet = new_figure(height=3.2)
        axes = sheet.add_subplot(
            xscale="log", xlabel="prior: fraction of people who are ill", ylabel="P(ill | positive)"
        )
        for alarm, color in ((false_positive_rate, COLORS[0]), (false_positive_rate / 10, COLORS[2])):
            posterior = bayes_rule(prior, torch.tensor([sensitivity, alarm], dtype=torch.float64).expand(200, 2))[:, 0]
            axes.plot(
                commonness, posterior, color=color, label=f"finds {sensitivity:.0%} of the ill, {alarm:.1%} of the well"
            )
        axes.plot(
            commonness, commonness, color=INK, linewidth=1, linestyle=(0, (4, 3)), label="no test: the prior itself"
        )
        one = bayes_rule(torch.tensor([0.01, 0.99]), torch.tensor([sensitivity, false_positive_rate]))[0]
        axes.plot([0.01], [float(one)], "o", color=COLORS[0])
        said = "one in six" if (sensitivity, false_positive_rate) == (0.99, 0.05) else f"{float(one):.0%}"
        axes.annotate(said, (0.01, float(one)), xytext=(8, -3), textcoords="offset points")
        axes.set_title("Bayes' rule")
        axes.grid(True)
        axes.legend(loc="upper left")
        return Plot(sheet, "posterior by prior for two tests")


def two_hills(x: Float[Tensor, "*#batch"], y: Float[Tensor, "*#batch"]) -> Float[Tensor, "*#batch"]:
    ridge = 0.6 * normal_density_1d(x, -1.0, 0.6) * normal_density_1d(y, -0.5 - 0.8 * (x + 1), 0.6)
    return ridge + 0.4 * normal_density_1d(x, 1.2, 0.5) * normal_density_1d(y, 0.9, 0.7)


@figure(
    ["D5-12", "D5-6"],
    "A joint density cut at three heights y, and each cut divided by its mass: the conditional densities of X.",
    {"heights": (-2.5, 2.5)},
)
def slices_of_a_density(heights: tuple[float, float, float] = (1.2, 0.0, -1.0)) -> Plot:
    joint = Density(two_hills, LINE, LINE)
    x, y = torch.linspace(-3.2, 3.2, 161, dtype=torch.float64), torch.linspace(-3, 3.2, 156, dtype=torch.float64)
    with house_style():
        sheet = new_figure(height=3.4)
        left, right = sheet.subplots(1, 2, width_ratios=[1.15, 1])
        left.contourf(x, y, joint(x[None, :], y[:, None]), levels=12, cmap=amount_map())
        for height, color in zip(heights, COLORS):
            left.axhline(height, color=color, linewidth=1.5)
            right.plot(
                x,
                condition_density(joint, {1: height})(x),
                color=color,
                label=f"given y = {height:g}".replace("-", "−"),
            )
        right.plot(x, joint.marginal(0)(x), color=INK, linewidth=1, linestyle=(0, (4, 3)), label="marginal")
        left.set(title="p(x, y)", xlabel="x", ylabel="y")
        right.set(title="densities of X", xlabel="x")
        right.set_ylim(0, 1.1)
        right.legend(loc="upper left", fontsize=8, ncols=2)
        return Plot(sheet, "a joint density and three conditional densities")


@figure(
    "D5-8",
    "Mass on shrinking squares along the diagonal: all that the window holds for (X, X), ever less for an "
    "independent pair.",
    {"counts": (1, 256)},
)
def mass_on_the_diagonal(counts: tuple[int, int, int] = (4, 16, 64)) -> Plot:
    normal = Density(lambda x: normal_density_1d(x), LINE)
    with house_style():
        sheet = new_figure(height=2.7)
        for axes, steps in zip(sheet.subplots(1, 3), counts):
            h = 6 / steps
            sides = [(-3 + h * index, -3 + h * (index + 1)) for index in range(steps)]
            cells = torch.stack([normal.probability(side) for side in sides])
            for low, _ in sides:
                axes.add_patch(_square(low, h))
            copied, independent = float(cells.sum()), float((cells**2).sum())
            message = f"area {steps * h**2:.2g}\n(X, X): {copied:.1%}\nindependent: {independent:.1%}"
            axes.set_title(message, fontsize=9, fontweight="normal")
            axes.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal", xticks=(-3, 0, 3), yticks=(-3, 0, 3))
        return Plot(sheet, "squares along the diagonal, ever smaller")


def _square(low: float, side: float):
    from matplotlib.patches import Rectangle

    return Rectangle((low, low), side, side, facecolor=COLORS[0], edgecolor=FAINT, linewidth=0.3)


@figure(
    "Z13.5",
    "The likelihood of a coin's θ after n throws, 30% of them heads, each curve over its own largest value at n_H / n.",
    {"num_throws": (1, 10000), "heads": (0.05, 0.95)},
)
def likelihoods_sharpen(num_throws: tuple[int, int, int] = (10, 40, 160), heads: float = 0.3) -> Plot:
    theta = torch.linspace(0.001, 0.999, 400, dtype=torch.float64)
    with house_style():
        sheet = new_figure(height=3.0)
        axes = sheet.add_subplot(
            title="Maximum likelihood", xlabel="θ, the probability of heads", ylabel="likelihood / its maximum"
        )
        for color, throws in zip(COLORS, num_throws):
            data = (torch.arange(throws) < heads * throws).double()
            best = mle(families.Bernoulli, data)
            curve = log_likelihood(families.Bernoulli(theta), data[:, None].expand(-1, len(theta))) - log_likelihood(
                best, data
            )
            axes.plot(theta, curve.exp(), color=color, label=f"{int(data.sum())} of {throws} heads")
            axes.axvline(float(best.mean), color=INK, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_xlim(0, 1)
        axes.legend(loc="upper right")
        return Plot(sheet, "likelihood of a coin for three sample sizes")
