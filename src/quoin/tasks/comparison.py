"""Supervised tasks beside which others learn, so that one run compares them: dropout, weight decay and an MLP, with and without."""

import dataclasses
from typing import Any

import torch
from torch import Tensor

from quoin import plot
from quoin.data import Dataset, Prepared, keyed_generator, linear, prepare, split
from quoin.metrics import root_mean_squared_error
from quoin.models import least_squares, linear_regression_definition, ridge
from quoin.models.closed_form import LinearFit
from quoin.plot import Panel
from quoin.tasks.supervised import Classification, Regression, SupervisedTask
from quoin.train import Metrics, Place

__all__ = ["ComparisonTask", "DropoutComparison", "LeastSquaresComparison", "WeightDecayComparison", "add_label_noise", "few_linear_rows"]


class ComparisonTask(SupervisedTask):
    """A supervised task and `others` that learn beside it; what the run keeps to predict with is its own model."""

    others: dict[Any, SupervisedTask]

    def state(self) -> dict[str, Any]:
        return {**super().state(), "others": [each.state() for each in self.others.values()]}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        for each, saved in zip(self.others.values(), state["others"], strict=True):
            each.load(saved)


class DropoutComparison(ComparisonTask, Classification):
    """A classifier and, as "plain" among the others, one that takes the same steps from the same weights without dropout."""

    label_noise: float

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        return {**super().step(rows), "plain_loss": self.others["plain"].step(rows)["loss"]}

    def evaluate(self, part: str) -> Metrics:
        found = super().evaluate(part) | {f"plain_{name}": value for name, value in self.others["plain"].evaluate(part).items()}
        if part == "test" and found:
            train = self.evaluate("train")
            found |= {f"{kind}gap": train[f"{kind}accuracy"] - found[f"{kind}accuracy"] for kind in ("", "plain_")}
            found["gap_closed"] = found["plain_gap"] - found["gap"]
        return found

    def panels(self) -> list[Panel]:
        train, test = self.evaluate("train"), self.evaluate("test")
        bars = {
            "with dropout, training rows": train["accuracy"],
            "with dropout, test rows": test["accuracy"],
            "without, training rows": train["plain_accuracy"],
            "without, test rows": test["plain_accuracy"],
        }
        caption = (
            f"The gap between training and test accuracy is {test['gap']:.3f} with dropout and {test['plain_gap']:.3f} without. "
            f"{self.label_noise:.0%} of the training labels are random: who gets them right has learned them by heart."
        )
        return [
            Panel("Training and test accuracy, with and without dropout", lambda: plot.bars(bars, x_label="accuracy"), caption),
            *super().panels(),
        ]


class WeightDecayComparison(ComparisonTask, Regression):
    """Linear regression with weight decay and, as "plain" among the others, without, from the same weights on the same batches."""

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        self.others["plain"].step(rows)
        return super().step(rows)

    def evaluate(self, part: str) -> Metrics:
        found = super().evaluate(part)
        if not found:
            return found
        plain = self.others["plain"].evaluate(part)["rmse"]
        return {**found, "rmse_without_decay": plain, "rmse_ratio": found["rmse"] / max(plain, 1e-30)}

    def panels(self) -> list[Panel]:
        X, y = _in_double(self.data.train)
        decays = torch.logspace(-3, 3, 25, dtype=torch.float64)
        fits = [ridge(X, y, float(decay)) for decay in decays]
        errors = {part: (decays, [self._rmse_of(fit, part) for fit in fits]) for part in ("train", "test")}
        levels = {"test, SGD without decay": self.evaluate("test")["rmse_without_decay"]}
        levels["test, shortest least-squares weights"] = self._rmse_of(least_squares(X, y), "test")
        caption = (
            "Ridge in closed form for each decay. What decay takes away is mostly the random start, which no row corrects in "
            f"the directions that the {len(y)} rows leave open: from a start at zero, SGD finds the shortest weights by itself."
        )
        return [
            Panel(
                "Error by weight decay",
                lambda: plot.curves(errors, x_label="weight decay", y_label="rmse", log_x=True, levels=levels),
                caption,
            ),
            *super().panels(),
        ]

    def _rmse_of(self, fit: LinearFit, part: str) -> float:
        x, y = _in_double(getattr(self.data, part))
        return root_mean_squared_error(fit.predict(x), y) * self.unit


class LeastSquaresComparison(Regression):
    """Regression that also reports what least squares, fitted to the same rows, would have made of each part."""

    fit: LinearFit | None = None  # of the training rows, once asked for

    def evaluate(self, part: str) -> Metrics:
        found = super().evaluate(part)
        if not found or part == "validation":  # asked for after every epoch, when the line has not moved
            return found
        if self.fit is None:
            self.fit = least_squares(*_in_double(self.data.train))
        x, y = _in_double(getattr(self.data, part))
        error = root_mean_squared_error(linear_regression_definition(x, *self.fit), y) * self.unit
        # Data that lie on a line leave least squares with nothing but rounding to be a share of.
        return {**found, "linear_rmse": error, "share_of_linear": found["rmse"] / max(error, 1e-12 * self.unit)}

    def panels(self) -> list[Panel]:
        bars = {}
        for part in ("train", "test"):
            found = self.evaluate(part)
            bars |= {f"perceptron, {part} rows": found["rmse"], f"linear regression, {part} rows": found["linear_rmse"]}
        caption = "Root mean squared errors in the target's unit; what is lower in training and not at test is overfitting."
        return [Panel("Perceptron and linear regression", lambda: plot.bars(bars, x_label="error"), caption), *super().panels()]


def _in_double(rows: Dataset) -> tuple[Tensor, Tensor]:  # (n, d), (n,)
    """Features and targets for a closed form: in float64, on the CPU."""
    return rows.features.flatten(1).cpu().double(), rows.targets.cpu().double()


def add_label_noise(data: Prepared, noise: float, seed: int) -> Prepared:
    """The data with this fraction of the training labels replaced by random classes; what judges stays as it is."""
    rows, generator = data.train, keyed_generator("label noise", seed)
    chosen = torch.rand(rows.num_rows, generator=generator) < noise
    random = torch.randint(data.facts.num_classes, (rows.num_rows,), generator=generator)
    targets = torch.where(chosen.to(rows.targets.device), random.to(rows.targets.device), rows.targets)
    return dataclasses.replace(data, train=dataclasses.replace(rows, targets=targets))


def few_linear_rows(num_rows: int, weights: list[float], bias: float, *, noise: float, seed: int, place: Place) -> Prepared:
    """A few rows of a linear model to learn from, 100 to watch and 1000 to judge by, so that the judgement does not waver."""
    generator = keyed_generator("ridge", seed)
    dataset = dataclasses.replace(linear(num_rows + 1100, weights, bias, noise=noise, generator=generator), test_from=num_rows + 100)
    return prepare(dataset, split(dataset, seed, validation=100 / (num_rows + 100)), place.device)
