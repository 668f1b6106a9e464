"""Gradient descent on logistic regression at several learning rates, beside two bounds on its suboptimality."""

import operator
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin import plot
from quoin.autodiff import vjp
from quoin.data import BatchSampler, PreparedData
from quoin.display import format_number
from quoin.losses import cross_entropy, logistic_loss
from quoin.metrics import accuracy
from quoin.models import LinearScore
from quoin.optim import (
    GradientDescent,
    convex_bound,
    descend,
    fit_linear_scores,
    logistic_constants,
    strongly_convex_bound,
)
from quoin.plot import Panel, Plot
from quoin.plot.plots import COLORS, house_style, new_figure
from quoin.tasks.study import StepOptions, Study
from quoin.train import Metrics

__all__ = ["DescentBoundsOptions", "GradientDescentBounds", "huber_loss", "logistic_minimizer"]

ROUNDING = 1e-14  # of the first cost: a smaller suboptimality is not known in float64


class DescentBoundsOptions(StepOptions, Protocol):
    """What the study reads of its recipe's options."""

    @property
    def l2(self) -> float: ...

    @property
    def lr_factors(self) -> tuple[float, ...]: ...


class GradientDescentBounds(Study):
    """One descent for each learning rate, from the same initial weights; a batch is a step, for each sees all the data.

    In float64 and on the CPU: the last digits are what is measured. The bias is the weight of a column of ones, and
    decays too.
    """

    kind = "classification"
    saved_attributes = ("points", "suboptimality", "distances")

    def __init__(self, model: LinearScore, data: PreparedData, options: DescentBoundsOptions) -> None:
        super().__init__(model, BatchSampler(options.steps_per_epoch, 1, seed=options.seed, shuffle=False))
        self.data, self.data_info, self.l2 = data, data.data_info, options.l2
        features = data.train.features.cpu().double().flatten(1)
        self.X = torch.cat([features, torch.ones(len(features), 1, dtype=torch.float64)], dim=1)
        self.signs = 2.0 * data.train.targets.cpu().double() - 1
        self.constants = logistic_constants(self.X, l2=self.l2)
        self.lr_factors = sorted(set(options.lr_factors))
        self.rules = [GradientDescent(lr_factor / self.constants.smoothness) for lr_factor in self.lr_factors]
        self.initial = torch.zeros(self.X.shape[1], dtype=torch.float64)
        self.minimizer = logistic_minimizer(self.X, self.signs, self.l2)
        self.minimum, self.rounding = float(self.cost(self.minimizer)), ROUNDING * float(self.cost(self.initial))
        self.points = [self.initial.clone() for _ in self.lr_factors]
        self.suboptimality = [
            [float(self.cost(self.initial)) - self.minimum] for _ in self.lr_factors
        ]  # at θ_0, θ_1, ...
        self.distances = [[float((self.initial - self.minimizer).norm())] for _ in self.lr_factors]

    def cost(self, theta: Float[Tensor, "features"]) -> Float[Tensor, ""]:
        return logistic_loss(self.signs * (self.X @ theta)).mean() + self.l2 / 2 * theta.square().sum()

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        for k, rule in enumerate(self.rules):
            gradient = vjp(self.cost, self.points[k]).product
            self.points[k], _ = rule.step(self.points[k], gradient, None)
            self.suboptimality[k].append(float(self.cost(self.points[k])) - self.minimum)
            self.distances[k].append(float((self.points[k] - self.minimizer).norm()))
        return {"loss": self.cost(self.points[-1])}

    def bounds(self, k: int) -> tuple[Float[Tensor, "steps"], Float[Tensor, "steps"]]:
        """Both bounds on the suboptimality of run k; the second is below the first once the strong convexity of the
        penalty shows."""
        ends, steps, lr = (self.initial, self.minimizer), len(self.suboptimality[k]) - 1, self.rules[k].lr
        convex = convex_bound(*ends, steps, lr=lr, smoothness=self.constants.smoothness)
        return convex, strongly_convex_bound(*ends, steps, lr=lr, constants=self.constants)

    def ratios(self) -> list[Float[Tensor, "steps"]]:
        """For each run the suboptimality over the smaller bound, at every step."""
        return [
            torch.tensor(values) / torch.minimum(*self.bounds(k)).clamp(min=self.rounding)
            for k, values in enumerate(self.suboptimality)
        ]

    def slowest(self) -> Float[Tensor, "steps"]:
        """The same ratio, to the first bound alone, on the cost that descends slowest in as many steps at 1/L from as
        far."""
        steps, distance, L = len(self.suboptimality[0]) - 1, self.distances[0][0], self.constants.smoothness
        far, near = torch.tensor([distance], dtype=torch.float64), distance / (2 * steps + 1)
        run = descend(lambda x: huber_loss(x, near, L), far, GradientDescent(1 / L), steps)
        return run.values / convex_bound(far, 0 * far, steps, lr=1 / L, smoothness=L)

    def fitted(self) -> LinearScore:
        """The model with the weights of the largest learning rate: of its logits (-s, s) the margin is 2 y s."""
        with torch.no_grad():
            self.model.linear.weight.copy_(self.points[-1][None, :-1] / 2)
            self.model.linear.bias.copy_(self.points[-1][-1:] / 2)
        return self.model

    @torch.no_grad()
    def evaluate(self, split: str) -> Metrics:
        rows = getattr(self.data, split)
        if rows.num_rows == 0:
            return {}
        outputs, targets = self.fitted()(rows.features.cpu()), rows.targets.cpu()
        found = {
            "accuracy": accuracy(outputs.argmax(-1), targets),
            "loss": float(cross_entropy(outputs, targets).mean()),
        }
        if split == "train":
            found |= {
                "suboptimality": self.suboptimality[-1][-1],
                "suboptimality_bound_ratio": max(float(run.max()) for run in self.ratios()),
            }
            found["step_away"] = max(max(map(operator.sub, run[1:], run), default=0.0) for run in self.distances)
            found["slowest_over_bound"] = float(self.slowest()[-1])
        return found

    def model_state(self) -> dict[str, Any]:
        return {"weights": self.fitted().state_dict(), "scales": self.data.scale_state()}

    def panels(self) -> list[Panel]:
        steps = range(len(self.suboptimality[0]))
        if len(steps) == 1:
            return []  # no step yet
        ratios = {
            f"η = {lr_factor:g}/L": (steps[1:], run[1:]) for lr_factor, run in zip(self.lr_factors, self.ratios())
        }
        away = {f"η = {lr_factor:g}/L": (steps, run) for lr_factor, run in zip(self.lr_factors, self.distances)}
        L, mu = self.constants.smoothness, self.constants.strong_convexity
        caption = (
            f"L = {format_number(float(L))} and μ = {mu:g}, computed from the {len(self.X)} examples and the penalty. "
            "Bounds hold for every cost with these constants; on this one convergence is faster."
        )
        ratios["worst-case cost, η = 1/L"] = (steps[1:], self.slowest()[1:])
        worst = (
            "Suboptimality over the smaller bound; above 1 a theorem would be false. The worst-case cost has the same "
            "L and "
            "initial distance, and a gradient so small that the steps just reach its minimum. It has half of the first "
            "bound: no bound for all costs is below that."
        )
        nearer = "To the minimiser, which another solver found: no step leads away from it."
        return [
            Panel("Suboptimality and its two bounds", self.plot_bounds, caption),
            Panel(
                "Tightness of the bounds",
                lambda: plot.curves(ratios, x_label="steps", y_label="suboptimality / bound", log_x=True, log_y=True),
                worst,
            ),
            Panel("Distance to the minimiser", lambda: plot.curves(away, x_label="steps", y_label="|θ - θ*|"), nearer),
        ]

    def plot_bounds(self) -> Plot:
        columns = min(3, len(self.lr_factors))
        rows = -(-len(self.lr_factors) // columns)
        with house_style():
            figure = new_figure(height=0.9 + 2.4 * rows)
            first = None
            for k, lr_factor in enumerate(self.lr_factors):
                axes = figure.add_subplot(
                    rows, columns, k + 1, sharex=first, sharey=first, title=f"η = {lr_factor:g}/L", xlabel="steps"
                )
                first = first or axes
                axes.grid(True)
                axes.set(xscale="log", yscale="log", ylabel="suboptimality" if k % columns == 0 else "")
                convex, strong = self.bounds(k)
                for values, dash, color, name in (
                    (convex, "--", COLORS[1], "|θ₀ - θ*|² / 2ηt"),
                    (strong, ":", COLORS[2], "(L/2) (1 - ημ)²ᵗ |θ₀ - θ*|²"),
                    (torch.tensor(self.suboptimality[k]), "-", COLORS[0], "C(θ) - min C"),
                ):
                    axes.plot(range(1, len(values)), values[1:].clamp(min=self.rounding), dash, color=color, label=name)
            figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
            return Plot(figure, "suboptimality and two bounds on it, by learning rate")


def huber_loss(x: Float[Tensor, "..."], near: float, curvature: float) -> Float[Tensor, ""]:
    """A parabola of this curvature where |x| <= near, and beyond it straight lines that go on as it ends."""
    size = x.abs().sum()
    return curvature * torch.where(size <= near, size * size / 2, near * size - near * near / 2)


def logistic_minimizer(
    X: Float[Tensor, "samples features"], signs: Float[Tensor, "samples"], l2: float
) -> Float[Tensor, "features"]:
    """The minimiser of (1/n) Σ ln(1 + e^{-y x θ}) + (l2/2) |θ|², by another way than gradient descent."""

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        margins = signs * scores[:, 0]
        return logistic_loss(margins), (-signs * torch.sigmoid(-margins))[:, None]

    weights = torch.full((len(X),), 1 / len(X), dtype=X.dtype)
    return fit_linear_scores(X, loss, 1, curvature=0.25, weights=weights, l2=l2, bias=False, tol=1e-12).weight[:, 0]
