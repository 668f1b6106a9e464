"""Gradient descent on logistic regression at several learning rates, beside two bounds on its gap to the minimum."""

import operator
from typing import Any

import torch
from torch import Tensor

from quoin import plot
from quoin.autodiff import vjp
from quoin.data import Batches, Prepared
from quoin.losses import cross_entropy, log_loss
from quoin.metrics import accuracy
from quoin.models import LinearScore
from quoin.optim import GradientDescent, convex_bound, descend, fit_scores, logistic_constants, strongly_convex_bound
from quoin.plot import Drawing, Panel
from quoin.plot.drawing import COLOURS, house_style, new_figure
from quoin.tasks.study import Study
from quoin.train import Metrics

__all__ = ["GradientDescentBounds", "huber_loss", "logistic_minimizer"]

ROUNDING = 1e-14  # of the first cost: a smaller gap is no longer known in float64


class GradientDescentBounds(Study):
    """One descent for each learning rate, from the same start; a batch is an update, for each sees all the data.

    In float64 and on the CPU: it is the last digits that are watched. The bias is the weight of a column of ones, and decays too.
    """

    kind = "classification"
    saved_attributes = ("points", "gaps", "distances")

    def __init__(self, model: LinearScore, data: Prepared, options) -> None:
        super().__init__(model, Batches(options.steps, 1, seed=options.seed, shuffle=False))
        self.data, self.facts, self.l2 = data, data.facts, options.l2
        features = data.train.features.cpu().double().flatten(1)
        self.X = torch.cat([features, torch.ones(len(features), 1, dtype=torch.float64)], dim=1)
        self.signs = 2.0 * data.train.targets.cpu().double() - 1
        self.constants = logistic_constants(self.X, l2=self.l2)
        self.shares = sorted(set(options.shares))
        self.rules = [GradientDescent(share / self.constants.smoothness) for share in self.shares]
        self.start = torch.zeros(self.X.shape[1], dtype=torch.float64)
        self.minimizer = logistic_minimizer(self.X, self.signs, self.l2)
        self.minimum, self.rounding = float(self.cost(self.minimizer)), ROUNDING * float(self.cost(self.start))
        self.points = [self.start.clone() for _ in self.shares]
        self.gaps = [[float(self.cost(self.start)) - self.minimum] for _ in self.shares]  # at θ_0, θ_1, ...
        self.distances = [[float((self.start - self.minimizer).norm())] for _ in self.shares]

    def cost(self, theta: Tensor) -> Tensor:
        return log_loss(self.signs * (self.X @ theta)).mean() + self.l2 / 2 * theta.square().sum()

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        for k, rule in enumerate(self.rules):
            slope = vjp(self.cost, self.points[k]).product
            self.points[k], _ = rule.step(self.points[k], slope, None)
            self.gaps[k].append(float(self.cost(self.points[k])) - self.minimum)
            self.distances[k].append(float((self.points[k] - self.minimizer).norm()))
        return {"loss": self.cost(self.points[-1])}

    def bounds(self, k: int) -> tuple[Tensor, Tensor]:
        """Both bounds on the gaps of run k; the second is below the first once the curvature of the penalty has told."""
        ends, steps, rate = (self.start, self.minimizer), len(self.gaps[k]) - 1, self.rules[k].learning_rate
        convex = convex_bound(*ends, steps, learning_rate=rate, smoothness=self.constants.smoothness)
        return convex, strongly_convex_bound(*ends, steps, learning_rate=rate, constants=self.constants)

    def ratios(self) -> list[Tensor]:
        """For each run the gap over the smaller bound, at every step."""
        return [torch.tensor(gaps) / torch.minimum(*self.bounds(k)).clamp(min=self.rounding) for k, gaps in enumerate(self.gaps)]

    def slowest(self) -> Tensor:
        """The same ratio, to the first bound alone, on the cost that descends slowest in as many updates at 1/L from as far."""
        steps, distance, L = len(self.gaps[0]) - 1, self.distances[0][0], self.constants.smoothness
        far, near = torch.tensor([distance], dtype=torch.float64), distance / (2 * steps + 1)
        run = descend(lambda x: huber_loss(x, near, L), far, GradientDescent(1 / L), steps)
        return run.values / convex_bound(far, 0 * far, steps, learning_rate=1 / L, smoothness=L)

    def fitted(self) -> LinearScore:
        """The model with the weights of the largest rate: of its logits (-s, s) the margin is 2 y s."""
        with torch.no_grad():
            self.model.linear.weight.copy_(self.points[-1][None, :-1] / 2)
            self.model.linear.bias.copy_(self.points[-1][-1:] / 2)
        return self.model

    @torch.no_grad()
    def evaluate(self, part: str) -> Metrics:
        rows = getattr(self.data, part)
        if rows.num_rows == 0:
            return {}
        outputs, targets = self.fitted()(rows.features.cpu()), rows.targets.cpu()
        found = {"accuracy": accuracy(outputs.argmax(-1), targets), "loss": float(cross_entropy(outputs, targets).mean())}
        if part == "train":
            found |= {"gap": self.gaps[-1][-1], "gap_over_bound": max(float(run.max()) for run in self.ratios())}
            found["step_away"] = max(max(map(operator.sub, run[1:], run), default=0.0) for run in self.distances)
            found["slowest_over_bound"] = float(self.slowest()[-1])
        return found

    def model_state(self) -> dict[str, Any]:
        return {"weights": self.fitted().state_dict(), "scales": self.data.scale_state()}

    def panels(self) -> list[Panel]:
        steps = range(len(self.gaps[0]))
        if len(steps) == 1:
            return []  # no update yet
        ratios = {f"η = {share:g}/L": (steps[1:], run[1:]) for share, run in zip(self.shares, self.ratios())}
        away = {f"η = {share:g}/L": (steps, run) for share, run in zip(self.shares, self.distances)}
        L, mu = self.constants.smoothness, self.constants.strong_convexity
        told = (
            f"L = {L:.4g} and μ = {mu:g}, computed from the {len(self.X)} rows and the penalty. "
            "Bounds hold for every cost with these constants; on this one descent is faster than it must be."
        )
        ratios["slowest cost, η = 1/L"] = (steps[1:], self.slowest()[1:])
        worst = (
            "The gap over the smaller bound; above 1 a theorem would be false. The slowest cost has the same L and as far to go, down "
            "a slope so gentle that it ends with the updates. It comes to half of the first bound: none for all costs can be less."
        )
        nearer = "To the minimiser, which another solver found: no step leads away from it."
        return [
            Panel("The gap and its two bounds", self.plot_bounds, told),
            Panel(
                "How close the bounds come",
                lambda: plot.curves(ratios, x_label="updates", y_label="gap / bound", log_x=True, log_y=True),
                worst,
            ),
            Panel("Distance to the minimiser", lambda: plot.curves(away, x_label="updates", y_label="|θ - θ*|"), nearer),
        ]

    def plot_bounds(self) -> Drawing:
        columns = min(3, len(self.shares))
        rows = -(-len(self.shares) // columns)
        with house_style():
            figure = new_figure(height=0.9 + 2.4 * rows)
            first = None
            for k, share in enumerate(self.shares):
                axes = figure.add_subplot(rows, columns, k + 1, sharex=first, sharey=first, title=f"η = {share:g}/L", xlabel="updates")
                first = first or axes
                axes.grid(True)
                axes.set(xscale="log", yscale="log", ylabel="gap" if k % columns == 0 else "")
                convex, strong = self.bounds(k)
                for values, dash, colour, name in (
                    (convex, "--", COLOURS[1], "|θ₀ - θ*|² / 2ηt"),
                    (strong, ":", COLOURS[2], "(L/2) (1 - ημ)²ᵗ |θ₀ - θ*|²"),
                    (torch.tensor(self.gaps[k]), "-", COLOURS[0], "C(θ) - min C"),
                ):
                    axes.plot(range(1, len(values)), values[1:].clamp(min=self.rounding), dash, color=colour, label=name)
            figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
            return Drawing(figure, "gap to the minimum and two bounds on it, by learning rate")


def huber_loss(x: Tensor, near: float, curvature: float) -> Tensor:
    """A parabola of this curvature where |x| <= near, and beyond it straight lines that go on as it ends."""
    size = x.abs().sum()
    return curvature * torch.where(size <= near, size * size / 2, near * size - near * near / 2)


def logistic_minimizer(X: Tensor, signs: Tensor, l2: float) -> Tensor:
    """The minimiser of (1/n) Σ ln(1 + e^{-y x θ}) + (l2/2) |θ|², by another way than gradient descent."""

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        margins = signs * scores[:, 0]
        return log_loss(margins), (-signs * torch.sigmoid(-margins))[:, None]

    weights = torch.full((len(X),), 1 / len(X), dtype=X.dtype)
    return fit_scores(X, loss, 1, curvature=0.25, weights=weights, l2=l2, bias=False, tolerance=1e-12).weight[:, 0]
