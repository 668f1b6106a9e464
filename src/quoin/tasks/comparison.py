"""Supervised tasks with others trained beside them, so that one run compares them: dropout, weight decay and an MLP,
with and without."""

import copy
import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin import plot
from quoin.data import Dataset, PreparedData, keyed_generator, make_linear, prepare, split
from quoin.losses import squared_loss
from quoin.metrics import root_mean_squared_error
from quoin.models import LinearRegression, least_squares, linear_regression_definition, ridge
from quoin.models.closed_form import LinearFit
from quoin.plot import Panel
from quoin.tasks.optimizer import make_optimizer, weight_decay_groups
from quoin.tasks.supervised import Classification, Regression, SupervisedTask
from quoin.tasks.supervised_data import supervised_task
from quoin.train import DeviceContext, Metrics

__all__ = [
    "ComparisonTask",
    "DropoutComparison",
    "LeastSquaresComparison",
    "WeightDecayComparison",
    "add_label_noise",
    "best_weight_decay",
    "few_linear_rows",
    "weight_decay_comparison",
]


class ComparisonTask(SupervisedTask):
    """A supervised task and `others` trained beside it; the run keeps its own model."""

    others: dict[Any, SupervisedTask]

    @contextmanager
    def whole_weights(self) -> Iterator[None]:
        with ExitStack() as stack:
            for updater in (self.updater, *(each.updater for each in self.others.values())):
                stack.enter_context(updater.whole_weights())
            yield

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "others": [each.state_dict() for each in self.others.values()]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        for each, saved in zip(self.others.values(), state["others"], strict=True):
            each.load_state_dict(saved)


class DropoutComparison(ComparisonTask, Classification):
    """A classifier and, as "baseline" among the others, one that takes the same steps from the same weights without
    dropout."""

    label_noise: float

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        return {**super().step(rows), "baseline_loss": self.others["baseline"].step(rows)["loss"]}

    def evaluate(self, split: str) -> Metrics:
        found = super().evaluate(split) | {
            f"baseline_{name}": value for name, value in self.others["baseline"].evaluate(split).items()
        }
        if split == "test" and found:
            train = self.evaluate("train")
            found |= {
                f"{kind}generalization_gap": train[f"{kind}accuracy"] - found[f"{kind}accuracy"]
                for kind in ("", "baseline_")
            }
            found["generalization_gap_reduction"] = found["baseline_generalization_gap"] - found["generalization_gap"]
        return found

    def panels(self) -> list[Panel]:
        train, test = self.evaluate("train"), self.evaluate("test")
        bars = {
            "with dropout, training": train["accuracy"],
            "with dropout, test": test["accuracy"],
            "without, training": train["baseline_accuracy"],
            "without, test": test["baseline_accuracy"],
        }
        caption = (
            f"The generalization gap is {test['generalization_gap']:.3f} with dropout and "
            f"{test['baseline_generalization_gap']:.3f} without. "
            f"{self.label_noise:.0%} of the training labels are random: a model that predicts them has memorized them."
        )
        return [
            Panel(
                "Training and test accuracy, with and without dropout",
                lambda: plot.bars(bars, x_label="accuracy"),
                caption,
            ),
            *super().panels(),
        ]


DECAYS = torch.logspace(-3, 3, 25, dtype=torch.float64)  # for which ridge regression is solved


def best_weight_decay(data: PreparedData, lr: float) -> float:
    """The weight decay with which ridge regression in closed form has the least validation error, among those that SGD
    with this learning rate can bear."""
    (X, y), (held, targets) = _in_double(data.train), _in_double(data.validation)
    stable = [float(decay) for decay in DECAYS if lr * float(decay) < 1] or [float(DECAYS[0])]
    errors = [root_mean_squared_error(ridge(X, y, decay).predict(held), targets) for decay in stable]
    return stable[errors.index(min(errors))]


class WeightDecayComparison(ComparisonTask, Regression):
    """Linear regression with weight decay and, as "baseline" among the others, without, from the same weights on the
    same batches."""

    random_start = True  # or from zero

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        self.others["baseline"].step(rows)
        return super().step(rows)

    def evaluate(self, split: str) -> Metrics:
        found = super().evaluate(split)
        if not found:
            return found
        plain = self.others["baseline"].evaluate(split)["rmse"]
        return {**found, "no_decay_rmse": plain, "rmse_ratio": found["rmse"] / max(plain, 1e-30)}

    def panels(self) -> list[Panel]:
        X, y = _in_double(self.data.train)
        fits = [ridge(X, y, float(decay)) for decay in DECAYS]
        errors = {split: (DECAYS, [self._rmse_of(fit, split) for fit in fits]) for split in ("train", "test")}
        levels = {"test, SGD without weight decay": self.evaluate("test")["no_decay_rmse"]}
        levels["test, minimum-norm least squares"] = self._rmse_of(least_squares(X, y), "test")
        caption = "Ridge regression in closed form for each L2 penalty."
        if self.random_start:
            caption += (
                " What the penalty removes is mostly the random initial weights, in directions that the "
                f"{len(y)} examples do not determine: from zero weights, SGD finds the minimum-norm solution by itself."
            )
        else:
            decay = max(group["weight_decay"] for group in self.updater.optimizer.param_groups)
            caption += f" SGD had a weight decay of {decay:.3g}, from zero weights."
        return [
            Panel(
                "Error by weight decay",
                lambda: plot.curves(errors, x_label="weight decay", y_label="rmse", log_x=True, reference_lines=levels),
                caption,
            ),
            *super().panels(),
        ]

    def _rmse_of(self, fit: LinearFit, split: str) -> float:
        x, y = _in_double(getattr(self.data, split))
        return root_mean_squared_error(fit.predict(x), y) * self.unit


def weight_decay_comparison(
    net: LinearRegression, data: PreparedData, options: Any, device_context: DeviceContext
) -> WeightDecayComparison:
    """`net` trained with the weight decay of `options`, and a copy of it without."""
    plain, groups = copy.deepcopy(net), weight_decay_groups(net, options)
    task = supervised_task(
        WeightDecayComparison, net, squared_loss, make_optimizer(groups, options), data, options, device_context
    )
    without = make_optimizer([{"params": list(plain.parameters()), "weight_decay": 0.0}], options)
    task.others = {"baseline": supervised_task(Regression, plain, squared_loss, without, data, options, device_context)}
    task.others["baseline"].batches = task.batches  # it is given the same rows
    task.random_start = bool(net.linear.weight.any())
    return task


class LeastSquaresComparison(Regression):
    """Regression that also reports the error of least squares, fitted to the same rows, on each split."""

    fit: LinearFit | None = None  # of the training rows, once asked for

    def evaluate(self, split: str) -> Metrics:
        found = super().evaluate(split)
        if not found or split == "validation":  # asked for after every epoch, when the line has not moved
            return found
        if self.fit is None:
            self.fit = least_squares(*_in_double(self.data.train))
        x, y = _in_double(getattr(self.data, split))
        error = root_mean_squared_error(linear_regression_definition(x, *self.fit), y) * self.unit
        # Data that lie on a line leave least squares with nothing but rounding to be a fraction of.
        return {**found, "linear_rmse": error, "linear_rmse_ratio": found["rmse"] / max(error, 1e-12 * self.unit)}

    def panels(self) -> list[Panel]:
        bars = {}
        for name in ("train", "test"):
            found = self.evaluate(name)
            bars |= {f"MLP, {name}": found["rmse"], f"linear regression, {name}": found["linear_rmse"]}
        caption = (
            "RMSE in the unit of the target; an error that is lower in training but not at test shows overfitting."
        )
        return [
            Panel("MLP and linear regression", lambda: plot.bars(bars, x_label="error"), caption),
            *super().panels(),
        ]


def _in_double(rows: Dataset) -> tuple[Tensor, Tensor]:  # (n, d), (n,)
    """Features and targets for a closed form: in float64, on the CPU."""
    return rows.features.flatten(1).cpu().double(), rows.targets.cpu().double()


def add_label_noise(data: PreparedData, noise: float, seed: int) -> PreparedData:
    """The data with this fraction of the training labels replaced by random classes; validation and test stay as they
    are."""
    rows, generator = data.train, keyed_generator("label noise", seed)
    chosen = torch.rand(rows.num_rows, generator=generator) < noise
    random = torch.randint(data.data_info.num_classes, (rows.num_rows,), generator=generator)
    targets = torch.where(chosen.to(rows.targets.device), random.to(rows.targets.device), rows.targets)
    return dataclasses.replace(data, train=dataclasses.replace(rows, targets=targets))


def few_linear_rows(
    num_rows: int, weights: list[float], bias: float, *, noise: float, seed: int, device_context: DeviceContext
) -> PreparedData:
    """A few training rows of a linear model, 100 for validation and 1000 for the test, so that the test error is
    precise."""
    generator = keyed_generator("ridge", seed)
    dataset = dataclasses.replace(
        make_linear(num_rows + 1100, weights, bias, noise=noise, generator=generator), test_start=num_rows + 100
    )
    return prepare(dataset, split(dataset, seed, validation=100 / (num_rows + 100)), device_context.device)
