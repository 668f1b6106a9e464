"""Nadaraya-Watson regression with several kernels: nothing is trained, and leave-one-out chooses the bandwidth of
each."""

import math
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import BatchSampler, keyed_generator
from quoin.layers import NadarayaWatson, nadaraya_watson, nadaraya_watson_weights
from quoin.plot import Panel, Plot
from quoin.plot.plots import COLORS, FAINT, INK, amount_map, house_style, new_figure
from quoin.tasks.study import Study
from quoin.train import Metrics

__all__ = ["NARROWEST", "WIDEST", "KernelRegression", "KernelRegressionOptions"]

WIDEST, NARROWEST = 5.0, 0.02  # points lie on [0, 5]
NUM_POINTS = 200  # unless asked for others


class KernelRegressionOptions(Protocol):
    """What the study reads of its recipe's options."""

    @property
    def seed(self) -> int: ...

    @property
    def num_points(self) -> int | None: ...

    @property
    def noise(self) -> float: ...

    @property
    def num_bandwidths(self) -> int: ...


class KernelRegression(Study):
    """Epoch k tries the k-th bandwidth on every kernel, and keeps it where it predicts best so far. On the CPU: the
    model is a few numbers."""

    saved_attributes = ("errors",)

    def __init__(self, model: nn.Module, options: KernelRegressionOptions) -> None:
        num_points = options.num_points or NUM_POINTS
        super().__init__(model, BatchSampler(num_points, num_points, seed=options.seed, shuffle=False))
        self.noise = options.noise
        self.bandwidths = torch.logspace(
            math.log10(WIDEST), math.log10(NARROWEST), options.num_bandwidths, dtype=torch.float64
        )
        generator = keyed_generator("nadaraya-watson", options.seed)
        self.x = (5 * torch.rand(num_points, 1, generator=generator, dtype=torch.float64)).sort(dim=0).values
        self.y = _truth(self.x) + options.noise * torch.randn(num_points, 1, generator=generator, dtype=torch.float64)
        self.line = torch.linspace(0, 5, 501, dtype=torch.float64).unsqueeze(-1)
        self.errors = torch.zeros(0, len(self.model), dtype=torch.float64)  # by bandwidth and kernel

    def left_out(self, pool: NadarayaWatson, bandwidth: Float[Tensor, ""]) -> float:
        """The mean squared error of each value as predicted from all others."""
        others = ~torch.eye(len(self.x), dtype=torch.bool)
        return float(
            (nadaraya_watson(self.x, self.x, self.y, pool.kernel, bandwidth, mask=others) - self.y).square().mean()
        )

    def fitted(self, pool: NadarayaWatson) -> Float[Tensor, "points 1"]:
        return nadaraya_watson(self.line, self.x, self.y, pool.kernel, pool.bandwidth)

    def rmse(self, found: Float[Tensor, "..."]) -> float:
        return float((found - _truth(self.line)).square().mean().sqrt())

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        bandwidth = self.bandwidths[self.batches.epoch]
        errors = torch.tensor([self.left_out(pool, bandwidth) for pool in self.model.values()], dtype=torch.float64)
        for which, pool in enumerate(self.model.values()):
            if not len(self.errors) or errors[which] < self.errors[:, which].min():
                pool.bandwidth.copy_(bandwidth)
        self.errors = torch.cat([self.errors, errors.unsqueeze(0)])
        return {"loss": self.errors.min() * len(rows)}

    def evaluate(self, split: str) -> Metrics:
        if split != "test":
            return {}
        # Judged against the truth without noise; nothing chosen has seen it.
        found = {f"{name}_rmse": self.rmse(self.fitted(pool)) for name, pool in self.model.items()}
        best = list(self.model)[int(self.errors.amin(dim=0).argmin())] if len(self.errors) else "gaussian"
        return {"rmse": found[f"{best}_rmse"], "mean_baseline_rmse": self.rmse(self.y.mean()), **found}

    def panels(self) -> list[Panel]:
        tried = self.bandwidths[: len(self.errors)]
        lines = {name: (tried, errors.sqrt()) for name, errors in zip(self.model, self.errors.unbind(dim=1))}
        noise = {"noise": self.noise} if self.noise else {}
        chosen = ", ".join(f"{name} {float(pool.bandwidth):.3g}" for name, pool in self.model.items())
        return [
            Panel(
                "Fits",
                self.plot_fits,
                "Dots are the values, dashed is the truth. Ends are pulled towards the middle: neighbours lie there.",
            ),
            Panel(
                "Error by bandwidth",
                lambda: plot.curves(
                    lines, x_label="bandwidth", y_label="leave-one-out rmse", log_x=True, reference_lines=noise
                ),
                f"Chosen: {chosen}. To the right curves are too flat, to the left too rough.",
            ),
            Panel(
                "Weights",
                self.plot_weights,
                "How much each value (across, in order) counts for each query (down, in order).",
            ),
        ]

    def plot_weights(self) -> Plot:
        with house_style():
            figure = new_figure(height=2.3)
            for axes, (name, pool) in zip(figure.subplots(1, len(self.model), sharey=True), self.model.items()):
                weights = nadaraya_watson_weights(self.line[::5], self.x, pool.kernel, pool.bandwidth)
                axes.imshow(
                    weights.numpy(),
                    cmap=amount_map(),
                    vmin=0,
                    aspect="auto",
                    interpolation="none",
                    extent=(0, len(self.x), 5, 0),
                )
                axes.set_title(name, fontsize=9)
            return Plot(figure, "weights of four kernels")

    def plot_fits(self) -> Plot:
        with house_style():
            figure = new_figure(height=3.8)
            axes = figure.add_subplot(xlabel="x", ylabel="y")
            axes.grid(True)
            axes.scatter(self.x, self.y, s=10, color=FAINT)
            axes.plot(self.line, _truth(self.line), color=INK, linewidth=1, linestyle=(0, (4, 3)), label="2 sin x + x")
            for color, (name, pool) in zip(COLORS, self.model.items()):
                axes.plot(
                    self.line,
                    self.fitted(pool),
                    color=color,
                    linewidth=1.2,
                    label=f"{name}, bandwidth {float(pool.bandwidth):.2g}",
                )
            axes.legend(fontsize=8)
            return Plot(figure, "fits of four kernels")


def _truth(x: Tensor) -> Tensor:
    return 2 * x.sin() + x
