"""Learn one function by least squares, beside a ReLU network that is constructed for it with a certified error."""

import math
from collections.abc import Callable
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import BatchSampler, keyed_generator
from quoin.expressivity import Approximation, approximate_1d, from_relu_network
from quoin.optim import cosine
from quoin.plot import Panel
from quoin.tasks.optimizer import OptimizerChoice, make_optimizer
from quoin.tasks.study import StepOptions
from quoin.train import DeviceContext, GradientTask, Metrics

__all__ = ["FUNCTIONS", "ApproximationOptions", "FunctionApproximation", "construct"]

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "bell": lambda x: 1 / (1 + 25 * x.square()),
    "wave": lambda x: torch.sin(2 * math.pi * x),
    "root": lambda x: torch.sqrt(x.abs()),
}


def construct(function: str, eps: float) -> Approximation:
    """The network by construction. The bell is steepest at 1/√75, the wave at 0; the root has no Lipschitz constant but
    a modulus of continuity."""
    lipschitz = {"bell": 15 * math.sqrt(3) / 8, "wave": 2 * math.pi}
    modulus = math.sqrt if function == "root" else None
    return approximate_1d(FUNCTIONS[function], eps, (-1.0, 1.0), lipschitz=lipschitz.get(function), modulus=modulus)


class ApproximationOptions(StepOptions, OptimizerChoice, Protocol):
    """What the study reads of its recipe's options."""

    @property
    def epochs(self) -> int: ...

    @property
    def batch_size(self) -> int: ...

    @property
    def function(self) -> str: ...

    @property
    def eps(self) -> float: ...


class FunctionApproximation(GradientTask):
    """Least squares on points sampled anew for every step; the metric is the sup error on a fine grid."""

    kind = "study"
    is_data_parallel = False

    def __init__(self, model: nn.Module, options: ApproximationOptions) -> None:
        batches = BatchSampler(
            options.steps_per_epoch * options.batch_size, options.batch_size, seed=options.seed, shuffle=False
        )
        optimizer = make_optimizer(model.parameters(), options)
        # A few dozen units: a GPU would only be slower.
        super().__init__(model, optimizer, batches, DeviceContext(), epochs=options.epochs, schedule=cosine)
        self.seed, self.function = options.seed, FUNCTIONS[options.function]
        self.construction = construct(options.function, options.eps)
        self.grid = torch.linspace(-1, 1, 4001, dtype=torch.float64)

    def pieces(self, rows: Int[Tensor, "batch"]) -> list[tuple]:
        generator = keyed_generator("points", self.seed, self.batches.epoch, self.batches.position)
        return [(2 * torch.rand(len(rows), generator=generator) - 1,)]

    def losses_of(self, x: Float[Tensor, "points"]) -> Float[Tensor, "points"]:
        return (self.model(x[:, None])[:, 0] - self.function(x)).square()

    def predict(self, x: Float[Tensor, "points"]) -> Float[Tensor, "points"]:
        return self.model(x.float()[:, None])[:, 0].double()

    @torch.no_grad()
    def evaluate(self, split: str) -> Metrics:
        if split != "validation":
            return {}  # there are no data, and so no splits
        largest, built = float((self.predict(self.grid) - self.function(self.grid)).abs().max()), self.construction
        return {
            "sup_error": largest,
            "error_bound_ratio": largest / built.error,
            "constructed_sup_error": built.measured,
        }

    @torch.no_grad()
    def panels(self) -> list[Panel]:
        built, pieces, x = self.construction, from_relu_network(self.model), self.grid
        inside = int(((pieces.breakpoints > -1) & (pieces.breakpoints < 1)).sum())
        values = {"g": self.function(x), "constructed": built.function(x), "trained": self.predict(x)}
        graphs = {name: (x[::10], y[::10]) for name, y in values.items()}
        misses = {name: (x, values[name] - values["g"]) for name in ("constructed", "trained")}
        errors = {
            "constructed, certified bound": built.error,
            "constructed, measured": built.measured,
            "trained, measured": self.evaluate("validation")["sup_error"],
        }
        return [
            Panel(
                "The function and its two networks",
                lambda: plot.curves(graphs, x_label="x", y_label="y"),
                f"Constructed: {built}. Trained, with as many units: {inside} breakpoints.",
            ),
            Panel(
                "Maximum errors",
                lambda: plot.bars(errors, x_label="error"),
                "The certified bound also holds between the points that were sampled.",
            ),
            Panel(
                "Errors",
                lambda: plot.curves(misses, x_label="x", y_label="network − g"),
                "The constructed network is exact at its nodes.",
            ),
        ]
