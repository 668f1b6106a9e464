"""Heavy-ball momentum on a quadratic at a grid of learning rates and momenta: measured convergence rates beside the
spectral radius."""

from typing import NamedTuple, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.data import BatchSampler, keyed_generator
from quoin.optim import BestMomentum, Momentum, best_momentum, momentum_convergence_rate
from quoin.plot import Panel, Plot
from quoin.plot.palette import LIGHT
from quoin.plot.plots import COLORS, INK, house_style, new_figure
from quoin.tasks.study import StepOptions, Study
from quoin.train import Metrics

__all__ = ["MomentumPhase", "MomentumPhaseOptions", "Quadratic", "random_quadratic"]

MOST = 4.0  # times 1/L: no momentum below 1 is stable beyond


class Quadratic(NamedTuple):
    """½ xᵀQx for Q = Σ λ_i a_i a_iᵀ, the a_i being orthonormal."""

    curvatures: Float[Tensor, "dim"]  # λ_i
    axes: Float[Tensor, "dim dim"]  # a_i in columns


def random_quadratic(dim: int, condition: float, seed: int) -> Quadratic:
    """Curvatures log-uniform from 1/condition to 1, with both ends among them, along random orthogonal axes."""
    generator = keyed_generator("quadratic", seed)
    exponents = torch.rand(dim, generator=generator, dtype=torch.float64)
    exponents[0] = 1.0
    exponents[-1] = 0.0  # the largest curvature L is one
    return Quadratic(
        condition**-exponents, torch.linalg.qr(torch.randn(dim, dim, generator=generator, dtype=torch.float64))[0]
    )


class MomentumPhaseOptions(StepOptions, Protocol):
    """What the study reads of its recipe's options."""

    @property
    def grid_size(self) -> int: ...


class MomentumPhase(Study):
    """Each step moves every pair, in float64 and on the CPU. A batch is a step, for there are no data.

    The model has the `points` and `velocities` of all pairs, (momenta, lrs, dim).
    """

    saved_attributes = ("length", "sums", "count")

    def __init__(self, model: nn.Module, quadratic: Quadratic, options: MomentumPhaseOptions) -> None:
        super().__init__(model, BatchSampler(options.steps_per_epoch, 1, seed=options.seed, shuffle=False))
        self.curvatures, axes = quadratic
        self.Q = axes * self.curvatures @ axes.mT
        self.cells = options.grid_size
        # In the middle of each cell, so that none is on the edge of what is stable, where the convergence rate is one.
        middles = torch.arange(self.cells, dtype=torch.float64) + 0.5
        self.lrs, self.momenta = middles * MOST / self.cells, middles / self.cells
        self.momenta[0] = 0.0  # but plain gradient descent belongs in the plot
        self.rules = [Momentum(1.0, float(m)) for m in self.momenta]
        # (momenta, lrs): the slowest direction
        self.predicted = momentum_convergence_rate(
            self.lrs[:, None], self.momenta[:, None, None], self.curvatures
        ).amax(-1)
        self.length = torch.zeros(
            self.cells, self.cells, dtype=torch.float64
        )  # ln of how much longer each error is than at first
        self.sums = torch.zeros(2, self.cells, self.cells, dtype=torch.float64)  # of the lengths s_t, and of t s_t
        self.count = 0

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        points, velocities = self.model["points"], self.model["velocities"]
        gradients = self.lrs[:, None] * (
            points @ self.Q
        )  # with η in the cost, one rule steps at all learning rates: ηC at 1 is C at η
        for k, rule in enumerate(self.rules):
            points[k], velocities[k] = rule.step(points[k], gradients[k], velocities[k])
        # A step on a quadratic is linear, so that errors may be rescaled to norm one: they would soon be 0 or infinite.
        grown = (points.square().sum(-1) + velocities.square().sum(-1)).sqrt()
        for each in (points, velocities):
            each /= grown[..., None]
        self.length += grown.log()
        self.count += 1
        self.sums += torch.stack([self.length, self.count * self.length])
        return {"loss": self.convergence_rate_error().max()}

    def measured(self) -> Float[Tensor, "momenta lrs"]:
        """e^slope of the straight line that fits the lengths s_1, ..., s_T best: oscillations cancel in it."""
        T = self.count
        if T < 2:
            return self.length.exp()
        mean = (T + 1) / 2
        return ((self.sums[1] - mean * self.sums[0]) / (T * (T * T - 1) / 12)).exp()

    def convergence_rate_error(self) -> Float[Tensor, "momenta lrs"]:
        return (self.measured() - self.predicted).abs()

    def evaluate(self, split: str) -> Metrics:
        if split != "validation":
            return {}  # there are no data, and so no splits
        found = self.measured()
        return {
            "convergence_rate_error": float(self.convergence_rate_error().max()),
            "best_convergence_rate": float(found.min()),
            "best_convergence_rate_no_momentum": float(found[0].min()),
            "stable_fraction": float((found < 1).double().mean()),
        }

    def panels(self) -> list[Panel]:
        found = self.measured()
        least = best_momentum(float(self.curvatures.min()), float(self.curvatures.max()))
        caption = (
            f"The factor by which a step shrinks the error, measured over {self.count} steps. Grey diverges: "
            "beyond ηL = 2(1 + m), "
            f"dashed. In theory the best pair, the dot, is η = {least.lr:.3g}/L with m = {least.momentum:.3g} and "
            "comes to "
            f"{least.convergence_rate:.3g}; the best of the grid is {float(found.min()):.3g}, without momentum "
            f"{float(found[0].min()):.3g}."
        )
        error = float(self.convergence_rate_error().max())
        close = f"Dots are runs, lines the spectral radius. The largest difference on the whole grid is {error:.2g}."
        return [
            Panel("Convergence rate by learning rate and momentum", lambda: self.plot_rates(found, least), caption),
            Panel("Measured and predicted", lambda: self.plot_predictions(found), close),
        ]

    def plot_rates(self, found: Float[Tensor, "momenta lrs"], least: BestMomentum) -> Plot:
        with house_style():
            figure = new_figure(height=4.2)
            axes = figure.add_subplot(xlabel="ηL", ylabel="m", xlim=(0, MOST), ylim=(0, 1))
            x, y = (torch.linspace(0, end, self.cells + 1, dtype=torch.float64) for end in (MOST, 1.0))
            mesh = axes.pcolormesh(
                x.numpy(), y.numpy(), found.numpy(), cmap="viridis", vmin=min(float(found.min()), 0.99), vmax=1.0
            )
            mesh.set_cmap(mesh.get_cmap().with_extremes(over=LIGHT.grid))
            axes.plot([2, 4], [0, 1], "--", color=INK, linewidth=1)
            axes.plot([least.lr], [least.momentum], "o", color="white", markeredgecolor=INK)
            figure.colorbar(mesh, ax=axes, extend="max", label="convergence rate")
            return Plot(figure, "convergence rate by learning rate and momentum")

    def plot_predictions(self, found: Float[Tensor, "momenta lrs"]) -> Plot:
        fine = torch.linspace(0.005, MOST, 800, dtype=torch.float64)
        with house_style():
            figure = new_figure(height=3.8)
            axes = figure.add_subplot(xlabel="ηL", ylabel="convergence rate", xlim=(0, MOST), ylim=(0, 1.5))
            axes.grid(True)
            axes.axhline(1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)))
            for color, k in zip(COLORS, sorted({0, self.cells // 3, 2 * self.cells // 3, self.cells - 1})):
                predicted = momentum_convergence_rate(fine[:, None], self.momenta[k], self.curvatures).amax(-1)
                axes.plot(fine, predicted, color=color, linewidth=1)
                axes.plot(self.lrs, found[k], "o", color=color, markersize=4, label=f"m = {float(self.momenta[k]):.3g}")
            figure.legend(loc="outside lower center", ncols=4)
            return Plot(figure, "measured and predicted convergence rates by learning rate")
