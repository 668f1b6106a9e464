"""Momentum on a quadratic at every pair of rate and momentum of a grid: measured rates of convergence beside the spectral radius."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from quoin.data import Batches, keyed_generator
from quoin.optim import BestMomentum, Momentum, best_momentum, momentum_rate
from quoin.plot import Drawing, Panel
from quoin.plot.drawing import COLOURS, INK, house_style, new_figure
from quoin.tasks.study import Study
from quoin.train import Metrics

__all__ = ["MomentumPhase", "Quadratic", "random_quadratic"]

MOST = 4.0  # times 1/L: no momentum below 1 is stable beyond


class Quadratic(NamedTuple):
    """½ xᵀQx for Q = Σ λ_i a_i a_iᵀ, the a_i being orthonormal."""

    curvatures: Tensor  # (dim,): λ_i
    axes: Tensor  # (dim, dim): a_i in columns


def random_quadratic(dim: int, condition: float, seed: int) -> Quadratic:
    """Curvatures log-uniform from 1/condition to 1, with both ends among them, along axes turned at random."""
    generator = keyed_generator("quadratic", seed)
    places = torch.rand(dim, generator=generator, dtype=torch.float64)
    places[0] = 1.0
    places[-1] = 0.0  # the largest curvature L is one
    return Quadratic(condition**-places, torch.linalg.qr(torch.randn(dim, dim, generator=generator, dtype=torch.float64))[0])


class MomentumPhase(Study):
    """Each update moves every pair, in float64 and on the CPU. A batch is an update, for there are no data.

    The model has the `points` and `velocities` of all pairs, (momenta, rates, dim).
    """

    saved_attributes = ("length", "sums", "count")

    def __init__(self, model: nn.Module, quadratic: Quadratic, options) -> None:
        super().__init__(model, Batches(options.steps, 1, seed=options.seed, shuffle=False))
        self.curvatures, axes = quadratic
        self.Q = axes * self.curvatures @ axes.mT
        self.cells = options.cells
        # In the middle of each cell, so that none is on the edge of what is stable, where a rate of one says nothing.
        middles = torch.arange(self.cells, dtype=torch.float64) + 0.5
        self.rates, self.momenta = middles * MOST / self.cells, middles / self.cells
        self.momenta[0] = 0.0  # but plain gradient descent belongs in the picture
        self.rules = [Momentum(1.0, float(m)) for m in self.momenta]
        # (momenta, rates): the slowest direction
        self.predicted = momentum_rate(self.rates[:, None], self.momenta[:, None, None], self.curvatures).amax(-1)
        self.length = torch.zeros(self.cells, self.cells, dtype=torch.float64)  # ln of how much longer each error is than at first
        self.sums = torch.zeros(2, self.cells, self.cells, dtype=torch.float64)  # of the lengths s_t, and of t s_t
        self.count = 0

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        points, velocities = self.model["points"], self.model["velocities"]
        slopes = self.rates[:, None] * (points @ self.Q)  # with the rate in the cost, one rule steps at all rates: ηC at rate 1 is C at η
        for k, rule in enumerate(self.rules):
            points[k], velocities[k] = rule.step(points[k], slopes[k], velocities[k])
        # An update of a quadratic is linear, so that errors may be brought back to length one: they would soon be 0 or infinite.
        grown = (points.square().sum(-1) + velocities.square().sum(-1)).sqrt()
        for each in (points, velocities):
            each /= grown[..., None]
        self.length += grown.log()
        self.count += 1
        self.sums += torch.stack([self.length, self.count * self.length])
        return {"loss": self.off().max()}

    def measured(self) -> Tensor:
        """e^slope of the straight line that fits the lengths s_1, ..., s_T best: oscillations cancel in it."""
        T = self.count
        if T < 2:
            return self.length.exp()
        mean = (T + 1) / 2
        return ((self.sums[1] - mean * self.sums[0]) / (T * (T * T - 1) / 12)).exp()

    def off(self) -> Tensor:
        return (self.measured() - self.predicted).abs()

    def evaluate(self, part: str) -> Metrics:
        if part != "validation":
            return {}  # there are no data, and so no parts of them
        found = self.measured()
        return {
            "rate_off": float(self.off().max()),
            "best_rate": float(found.min()),
            "best_rate_without_momentum": float(found[0].min()),
            "stable_share": float((found < 1).double().mean()),
        }

    def panels(self) -> list[Panel]:
        found = self.measured()
        least = best_momentum(float(self.curvatures.min()), float(self.curvatures.max()))
        told = (
            f"By this factor an update shrinks the error, measured over {self.count} of them. Grey diverges: beyond ηL = 2(1 + m), "
            f"dashed. In theory the best pair, the dot, is η = {least.learning_rate:.3g}/L with m = {least.momentum:.3g} and comes to "
            f"{least.rate:.3g}; the best of the grid came to {float(found.min()):.3g}, without momentum {float(found[0].min()):.3g}."
        )
        close = f"Dots are runs, lines the spectral radius. The largest difference on the whole grid is {float(self.off().max()):.2g}."
        return [
            Panel("Rate of convergence by learning rate and momentum", lambda: self.plot_rates(found, least), told),
            Panel("Measured and predicted", lambda: self.plot_predictions(found), close),
        ]

    def plot_rates(self, found: Tensor, least: BestMomentum) -> Drawing:
        with house_style():
            figure = new_figure(height=4.2)
            axes = figure.add_subplot(xlabel="ηL", ylabel="m", xlim=(0, MOST), ylim=(0, 1))
            x, y = (torch.linspace(0, end, self.cells + 1, dtype=torch.float64) for end in (MOST, 1.0))
            mesh = axes.pcolormesh(x.numpy(), y.numpy(), found.numpy(), cmap="viridis", vmin=min(float(found.min()), 0.99), vmax=1.0)
            mesh.set_cmap(mesh.get_cmap().with_extremes(over="#d9d9d9"))
            axes.plot([2, 4], [0, 1], "--", color=INK, linewidth=1)
            axes.plot([least.learning_rate], [least.momentum], "o", color="white", markeredgecolor=INK)
            figure.colorbar(mesh, ax=axes, extend="max", label="rate")
            return Drawing(figure, "rate of convergence by learning rate and momentum")

    def plot_predictions(self, found: Tensor) -> Drawing:
        fine = torch.linspace(0.005, MOST, 800, dtype=torch.float64)
        with house_style():
            figure = new_figure(height=3.8)
            axes = figure.add_subplot(xlabel="ηL", ylabel="rate", xlim=(0, MOST), ylim=(0, 1.5))
            axes.grid(True)
            axes.axhline(1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)))
            for colour, k in zip(COLOURS, sorted({0, self.cells // 3, 2 * self.cells // 3, self.cells - 1})):
                predicted = momentum_rate(fine[:, None], self.momenta[k], self.curvatures).amax(-1)
                axes.plot(fine, predicted, color=colour, linewidth=1)
                axes.plot(self.rates, found[k], "o", color=colour, markersize=4, label=f"m = {float(self.momenta[k]):.3g}")
            figure.legend(loc="outside lower center", ncols=4)
            return Drawing(figure, "measured and predicted rates by learning rate")
