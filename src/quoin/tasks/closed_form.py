"""Regression in closed form, one fit after another: polynomials of every degree, and ever more random features of a kernel."""

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor

from quoin import plot
from quoin.data import Batches, Dataset, Prepared, Standardiser, keyed_generator
from quoin.errors import Mistake
from quoin.layers import gaussian_directions
from quoin.losses import squared_loss
from quoin.metrics import root_mean_squared_error
from quoin.models import FourierRegression, PolynomialRegression, fit_polynomial, kernel_ridge, polynomial_features
from quoin.plot import Panel
from quoin.tasks.supervised import in_squared_unit
from quoin.tensor import squared_exponential
from quoin.train import Metrics, load_strictly

__all__ = ["PolynomialDegrees", "RandomFeatures", "single_feature"]

PARTS = ("train", "validation", "test")


class ClosedFormTask:
    """A model that is fitted anew in every step, without a gradient, to data whose targets are numbers."""

    kind = "regression"

    def __init__(self, model: Any, data: Prepared, batches: Batches) -> None:
        assert data.target_scale is not None
        self.model, self.data, self.facts, self.batches = model, data, data.facts, batches
        self.target_scale, self.unit = data.target_scale, float(data.target_scale.std)

    def errors(self, outputs: Tensor, targets: Tensor) -> Metrics:
        loss = float(in_squared_unit(squared_loss(outputs, targets).mean(), self.unit))
        return {"loss": loss, "rmse": root_mean_squared_error(outputs, targets) * self.unit}

    def state(self) -> dict[str, Any]:
        return {"model": {"weights": self.model.state_dict(), "scales": self.data.scale_state()}, "batches": self.batches.state()}

    def load(self, state: dict[str, Any]) -> None:
        load_strictly(self.model, state["model"]["weights"])
        self.batches.load(state["batches"])


class PolynomialDegrees(ClosedFormTask):
    """Epoch k fits the polynomial of degree k to all its rows at once."""

    def __init__(self, model: PolynomialRegression, data: Prepared, *, seed: int) -> None:
        super().__init__(model, data, Batches(data.train.num_rows, data.train.num_rows, seed=seed, shuffle=False))

    @torch.no_grad()
    def step(self, rows: Tensor) -> dict[str, Tensor]:
        weights, train = self._fit(self.batches.epoch), self.data.train
        self.model.weight.zero_()[: len(weights)] = weights.to(self.model.weight)
        return {"loss": in_squared_unit(squared_loss(self.model(train.features), train.targets).sum(), self.unit)}

    @torch.no_grad()
    def evaluate(self, part: str) -> Metrics:
        rows = getattr(self.data, part)
        found = self.errors(self.model(rows.features), rows.targets)
        if part == "train":
            found["degree"] = float(self.degree)
        if part == "test":
            found |= {f"rmse_of_degree_{k}": self._rmse(k, "test") for k in sorted({1, self.model.degree} - {0})}
        return found

    @property
    def degree(self) -> int:
        """Of the polynomial whose weights the model has."""
        used = self.model.weight.detach().nonzero()
        return int(used.max()) if len(used) else 0

    def _fit(self, degree: int) -> Tensor:  # in float64: high powers are close to dependent
        train = self.data.train
        return fit_polynomial(train.features[:, 0].cpu().double(), train.targets.cpu().double(), degree)

    def _curve(self, x: Tensor, degree: int) -> Tensor:
        return polynomial_features(x.cpu().double(), degree) @ self._fit(degree)

    def _rmse(self, degree: int, part: str) -> float:
        rows = getattr(self.data, part)
        return root_mean_squared_error(self._curve(rows.features[:, 0], degree), rows.targets.cpu().double()) * self.unit

    def panels(self) -> list[Panel]:
        degrees = list(range(self.model.degree + 1))
        errors = {part: (degrees, [self._rmse(k, part) for k in degrees]) for part in PARTS}
        told = f"Closed-form fits to {self.data.train.num_rows} rows; validation chose degree {self.degree}."
        dots = "Dark dots were fitted, light ones are the test's; what overfits leaves the picture between or beyond them."
        return [
            Panel("Error by degree", lambda: plot.curves(errors, x_label="degree", y_label="rmse", log_y=True), told),
            Panel("Fits by degree", self._fits, dots),
        ]

    def _fits(self) -> plot.Drawing:
        from quoin.plot.drawing import COLOURS, FAINT, INK, house_style, new_figure

        shown = [self.data.test, self.data.train]
        x, y = torch.cat([part.features for part in shown]).cpu(), torch.cat([part.targets for part in shown]).cpu()
        dots = [INK if row >= self.data.test.num_rows else FAINT for row in range(len(x))]
        line = torch.linspace(float(x.min()), float(x.max()), 400, dtype=torch.float64)
        y, places = self.target_scale.invert(y), self.data.feature_scale.invert(line[:, None])
        with house_style():
            figure = new_figure(height=3.8)
            axes = figure.add_subplot(xlabel=self.facts.feature_names[0], ylabel=self.facts.target_name)
            axes.grid(True)
            axes.scatter(self.data.feature_scale.invert(x), y, s=12, color=dots)
            for colour, (k, dash) in zip(COLOURS, {1: "--", self.degree: "-", self.model.degree: ":"}.items()):
                if k <= self.model.degree:
                    axes.plot(places, self.target_scale.invert(self._curve(line, k)), dash, color=colour, label=f"degree {k}")
            margin = 0.3 * float(y.max() - y.min()) or 1.0
            axes.set_ylim(float(y.min()) - margin, float(y.max()) + margin)
            axes.legend()
            return plot.Drawing(figure, "fits by degree")


def single_feature(data: Prepared, num_rows: int | None) -> Prepared:
    """The data with the one feature x, at most `num_rows` rows to fit to (None: all) and what is left beside the validation rows."""
    generated = data.facts.source == "polynomial"  # its columns are powers of one x
    if data.facts.num_features != 1 and not generated:
        raise Mistake(f"expected data with one feature to bend a curve over, came {data.facts.num_features}; leave one column")
    column, name = (1, "x") if generated else (0, data.facts.feature_names[0])
    rows = torch.arange(data.train.num_rows, device=data.train.features.device)
    fitted, left = data.train.take(rows[:num_rows]), data.train.take(rows[len(rows[:num_rows]) :])
    return dataclasses.replace(
        data,
        facts=dataclasses.replace(data.facts, feature_names=(name,), feature_shape=(1,)),
        train=_one_column(column, name, fitted),
        validation=_one_column(column, name, data.validation, left),
        test=_one_column(column, name, data.test),
        feature_scale=Standardiser(*(each.flatten()[column : column + 1] for each in data.feature_scale)),
    )


def _one_column(column: int, name: str, *pieces: Dataset) -> Dataset:
    features = torch.cat([piece.features.flatten(1)[:, column : column + 1] for piece in pieces])
    return dataclasses.replace(pieces[0], features=features, targets=torch.cat([each.targets for each in pieces]), feature_names=(name,))


class RandomFeatures(ClosedFormTask):
    """Each step draws random features anew and fits them; an epoch is one number of features, `first` in the first, then ever twice it."""

    def __init__(
        self, model: FourierRegression, data: Prepared, *, first: int, draws: int, gamma: float, decay: float, rows: int, seed: int
    ) -> None:
        super().__init__(model, data, Batches(draws, 1, seed=seed, shuffle=False))
        self.first, self.draws, self.decay = first, draws, decay
        # In float64 and on the CPU: closed forms of a few hundred rows.
        self.inputs = {part: getattr(data, part).features.flatten(1).cpu().double() for part in PARTS}
        self.targets = {part: getattr(data, part).targets.cpu().double() for part in PARTS}
        self.X, self.y = self.inputs["train"][:rows], self.targets["train"][:rows]
        exact = kernel_ridge(lambda a, b: squared_exponential(a, b, gamma), self.X, self.y, decay)
        self.kernel_outputs = {part: exact.predict(inputs) for part, inputs in self.inputs.items()}
        self.spread = float(self.kernel_outputs["train"].std()) or 1.0
        self.gaps: dict[str, list[float]] = {part: [] for part in PARTS}  # of each draw so far, squared

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        at = self.batches
        count = self.first * 2**at.epoch
        generator = keyed_generator("features", at.seed, at.epoch, at.position)
        directions = gaussian_directions(count, self.X.shape[1], generator=generator)
        phases = 2 * math.pi * torch.rand(count, generator=generator, dtype=torch.float64)
        self.model.fit(self.X, self.y, self.decay, directions=directions, phases=phases)
        for part, x in self.inputs.items():
            if len(x):
                self.gaps[part].append(float((self.model(x.float()) - self.kernel_outputs[part]).square().mean()) / self.spread**2)
        return {"loss": in_squared_unit(squared_loss(self.model(self.X.float()), self.y.float()).mean(), self.unit)}

    def counts_and_gaps(self, part: str) -> tuple[list[int], list[float]]:
        """The numbers of features for which there is a draw, and for each the gap to the kernel over its draws."""
        draws = [self.gaps[part][start : start + self.draws] for start in range(0, len(self.gaps[part]), self.draws)]
        return [self.first * 2**epoch for epoch in range(len(draws))], [math.sqrt(sum(each) / len(each)) for each in draws]

    def evaluate(self, part: str) -> Metrics:
        if not len(self.inputs[part]):
            return {}
        found = self.errors(self.model(self.inputs[part].float()).double(), self.targets[part])
        found["kernel_rmse"] = root_mean_squared_error(self.kernel_outputs[part], self.targets[part]) * self.unit
        counts, gaps = self.counts_and_gaps(part)
        if counts:
            found["gap"] = gaps[-1]
        if len(counts) > 1:
            x, logs = torch.tensor(counts).log(), torch.tensor(gaps).log()
            found["gap_exponent"] = float(((x - x.mean()) * (logs - logs.mean())).sum() / (x - x.mean()).square().sum())
        return found

    def state(self) -> dict[str, Any]:
        return {**super().state(), "gaps": self.gaps}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self.gaps = state["gaps"]

    def panels(self) -> list[Panel]:
        if not self.gaps["train"]:
            return []
        gaps = {part: self.counts_and_gaps(part) for part in PARTS if len(self.inputs[part])}
        counts, (start, *_) = gaps["train"]
        gaps["1/√D"] = (counts, [start * math.sqrt(counts[0] / count) for count in counts])
        told = f"{self.draws} draws for each number, {len(self.X)} rows fitted; in parts of the spread of the kernel's own predictions."
        one = "Each row of the test part, predicted by the last draw and by the kernel."
        panels = [
            Panel(
                "The gap to the kernel",
                lambda: plot.curves(gaps, x_label="random features D", y_label="gap", log_x=True, log_y=True),
                told,
            )
        ]
        if len(self.inputs["test"]):
            outputs, used = self.model(self.inputs["test"].float()).detach(), f"{int(self.model.in_use)} random features"
            panels.append(
                Panel(
                    "Prediction by prediction",
                    lambda: plot.scatter(self.kernel_outputs["test"], outputs, x_label="kernel ridge", y_label=used),
                    one,
                )
            )
        return panels
