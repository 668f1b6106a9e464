"""Momentum on a quadratic, run at every pair of rate and momentum of a grid: the measured rates beside those of two eigenvalues."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from quoin.options import option
from quoin.recipes.running.options import RunOptions
from quoin.recipes.running.target import Target

if TYPE_CHECKING:
    from torch import Tensor

NOTES = ("D1.5F", "D1.5-7", "D1.5-9")
# The largest difference on the grid between the factor by which an update shrinks (or stretches) the error, as measured, and the spectral
# radius that predicts it. Where the two roots meet errors fall as t ρᵗ, and a line through ln t over T updates rises by 3/2T: 0.00075.
TARGET = Target("validation_rate_off", at_most=0.001)
GOAL = None  # the longest look is the best

MOST = 4.0  # times 1/L: no momentum below 1 is stable beyond


@dataclass(frozen=True)
class Options(RunOptions):
    """Options of the recipe `momentum-phase`."""

    dim: int = option(6, "variables of the quadratic, turned at random", at_least=1, at_most=200)
    condition: float = option(10.0, "its largest curvature over its least", at_least=1.0, at_most=1e6)
    cells: int = option(24, "learning rates, and as many momenta, to run at", at_least=2, at_most=200)
    epochs: int = option(20, "looks at the rates", at_least=1, at_most=10**6)
    steps: int = option(100, "updates between two looks", at_least=1, at_most=10**6)


def model(options, facts):
    """Where every pair stands: its point and its velocity, of length one together, at first at rest and as far along every axis."""
    import torch
    from torch import nn

    axes = quadratic(options).axes
    points = axes.mean(dim=1).mul(options.dim**0.5).repeat(options.cells, options.cells, 1)  # (momenta, rates, dim)
    both = {"points": points, "velocities": torch.zeros_like(points)}
    return nn.ParameterDict({name: nn.Parameter(each, requires_grad=False) for name, each in both.items()})


def build(options, place):
    import torch

    from quoin import draw
    from quoin.data import Batches
    from quoin.draw import Panel
    from quoin.optim import Momentum, best_momentum, momentum_rate
    from quoin.train import load_strictly

    curvatures, axes = quadratic(options)
    Q = axes * curvatures @ axes.mT
    cells = options.cells
    # In the middle of each cell, so that none is on the edge of what is stable, where a rate of one says nothing.
    rates = (torch.arange(cells, dtype=torch.float64) + 0.5) * MOST / cells
    momenta = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
    momenta[0] = 0.0  # but plain gradient descent belongs in the picture
    predicted = momentum_rate(rates[:, None], momenta[:, None, None], curvatures).amax(-1)  # (momenta, rates): the slowest direction
    rules = [Momentum(1.0, float(m)) for m in momenta]
    at = model(options, None)  # in float64 and on the CPU: a few thousand numbers

    class Phase:
        """Each update moves every pair. A batch is an update, for there are no data."""

        def __init__(self):
            self.facts = None
            self.batches = Batches(options.steps, 1, seed=options.seed, shuffle=False)
            self.length = torch.zeros(cells, cells, dtype=torch.float64)  # ln of how much longer each error is than at first
            self.sums = torch.zeros(2, cells, cells, dtype=torch.float64)  # of the lengths s_t, and of t s_t
            self.count = 0

        def step(self, rows):
            slopes = rates[:, None] * (at["points"] @ Q)  # with the rate in the cost, one rule steps at all rates: ηC at rate 1 is C at η
            for k, rule in enumerate(rules):
                at["points"][k], at["velocities"][k] = rule.step(at["points"][k], slopes[k], at["velocities"][k])
            # An update of a quadratic is linear, so that errors may be brought back to length one: they would soon be 0 or infinite.
            grown = (at["points"].square().sum(-1) + at["velocities"].square().sum(-1)).sqrt()
            for each in at.values():
                each /= grown[..., None]
            self.length += grown.log()
            self.count += 1
            self.sums += torch.stack([self.length, self.count * self.length])
            return {"loss": self.off().max()}

        def measured(self):
            """e^slope of the straight line that fits the lengths s_1, ..., s_T best: oscillations cancel in it."""
            T = self.count
            if T < 2:
                return self.length.exp()
            mean = (T + 1) / 2
            return ((self.sums[1] - mean * self.sums[0]) / (T * (T * T - 1) / 12)).exp()

        def off(self):
            return (self.measured() - predicted).abs()

        def evaluate(self, part):
            if part != "validation":
                return {}  # there are no data, and so no parts of them
            found = self.measured()
            return {
                "rate_off": float(self.off().max()),
                "best_rate": float(found.min()),
                "best_rate_without_momentum": float(found[0].min()),
                "stable_share": float((found < 1).double().mean()),
            }

        def state(self):
            seen = {"length": self.length, "sums": self.sums, "count": self.count}
            return {"model": {"weights": at.state_dict()}, "seen": seen, "batches": self.batches.state()}

        def load(self, state):
            load_strictly(at, state["model"]["weights"])
            self.length, self.sums, self.count = (state["seen"][name] for name in ("length", "sums", "count"))
            self.batches.load(state["batches"])

        def panels(self):
            found = self.measured()
            least = best_momentum(float(curvatures.min()), float(curvatures.max()))
            told = (
                f"By this factor an update shrinks the error, measured over {self.count} of them. Grey diverges: beyond ηL = 2(1 + m), "
                f"dashed. In theory the best pair, the dot, is η = {least.learning_rate:.3g}/L with m = {least.momentum:.3g} and comes to "
                f"{least.rate:.3g}; the best of the grid came to {float(found.min()):.3g}, without momentum {float(found[0].min()):.3g}."
            )
            close = f"Dots are runs, lines the spectral radius. The largest difference on the whole grid is {float(self.off().max()):.2g}."
            return [
                Panel("Rate of convergence by learning rate and momentum", lambda: phase(found, least), told),
                Panel("Measured and predicted", lambda: dots_on_lines(found), close),
            ]

    def phase(found, least):
        from quoin.draw.drawing import INK, house_style, new_figure

        with house_style():
            figure = new_figure(height=4.2)
            axes = figure.add_subplot(xlabel="ηL", ylabel="m", xlim=(0, MOST), ylim=(0, 1))
            x, y = (torch.linspace(0, end, cells + 1, dtype=torch.float64) for end in (MOST, 1.0))
            mesh = axes.pcolormesh(x.numpy(), y.numpy(), found.numpy(), cmap="viridis", vmin=min(float(found.min()), 0.99), vmax=1.0)
            mesh.set_cmap(mesh.get_cmap().with_extremes(over="#d9d9d9"))
            axes.plot([2, 4], [0, 1], "--", color=INK, linewidth=1)
            axes.plot([least.learning_rate], [least.momentum], "o", color="white", markeredgecolor=INK)
            figure.colorbar(mesh, ax=axes, extend="max", label="rate")
            return draw.Drawing(figure, "rate of convergence by learning rate and momentum")

    def dots_on_lines(found):
        from quoin.draw.drawing import COLOURS, INK, house_style, new_figure

        fine = torch.linspace(0.005, MOST, 800, dtype=torch.float64)
        with house_style():
            figure = new_figure(height=3.8)
            axes = figure.add_subplot(xlabel="ηL", ylabel="rate", xlim=(0, MOST), ylim=(0, 1.5))
            axes.grid(True)
            axes.axhline(1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)))
            for colour, k in zip(COLOURS, sorted({0, cells // 3, 2 * cells // 3, cells - 1})):
                axes.plot(fine, momentum_rate(fine[:, None], momenta[k], curvatures).amax(-1), color=colour, linewidth=1)
                axes.plot(rates, found[k], "o", color=colour, markersize=4, label=f"m = {float(momenta[k]):.3g}")
            figure.legend(loc="outside lower center", ncols=4)
            return draw.Drawing(figure, "measured and predicted rates by learning rate")

    return Phase()


class Quadratic(NamedTuple):
    """½ xᵀQx for Q = Σ λ_i a_i a_iᵀ, the a_i being orthonormal."""

    curvatures: "Tensor"  # (dim,): λ_i
    axes: "Tensor"  # (dim, dim): a_i in columns


def quadratic(options):
    """Curvatures log-uniform from 1/condition to 1, with both ends among them, along axes turned at random."""
    import torch

    from quoin.data import keyed_generator

    generator = keyed_generator("quadratic", options.seed)
    places = torch.rand(options.dim, generator=generator, dtype=torch.float64)
    places[0] = 1.0
    places[-1] = 0.0  # the largest curvature L is one
    axes = torch.linalg.qr(torch.randn(options.dim, options.dim, generator=generator, dtype=torch.float64))[0]
    return Quadratic(options.condition**-places, axes)
