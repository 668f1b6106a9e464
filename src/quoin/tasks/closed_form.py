"""Regression in closed form, one fit after another: polynomials of every degree, and ever more random features of a
kernel."""

import dataclasses
import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin import plot
from quoin.data import BatchSampler, Dataset, PreparedData, StandardScaler, keyed_generator
from quoin.data.dataset import column_names
from quoin.errors import UserError
from quoin.layers import gaussian_random_matrix
from quoin.losses import squared_loss
from quoin.metrics import root_mean_squared_error
from quoin.models import (
    FourierRegression,
    PolynomialRegression,
    fit_monomials,
    kernel_ridge,
    monomial_degrees,
    num_monomials_up_to,
    scaled_monomial_features,
)
from quoin.plot import Panel
from quoin.tasks.supervised import in_squared_unit
from quoin.tasks.supervised_panels import regression_panels
from quoin.tensor import rbf_kernel
from quoin.train import Metrics, load_state_dict_strict

__all__ = ["ClosedFormTask", "PolynomialDegrees", "RandomFeatures", "polynomial_data"]

MOST_MONOMIALS = 5000  # of a fit: its cost grows with their cube
SPLITS = ("train", "validation", "test")


class ClosedFormTask:
    """Regression by a model that is fitted anew in every step, in closed form."""

    kind = "regression"

    def __init__(self, model: Any, data: PreparedData, batches: BatchSampler) -> None:
        assert data.target_scaler is not None
        self.model, self.data, self.data_info, self.batches = model, data, data.data_info, batches
        self.target_scaler, self.unit = data.target_scaler, float(data.target_scaler.std)

    def errors(self, outputs: Float[Tensor, "samples"], targets: Float[Tensor, "samples"]) -> Metrics:
        loss = float(in_squared_unit(squared_loss(outputs, targets).mean(), self.unit))
        return {"loss": loss, "rmse": root_mean_squared_error(outputs, targets) * self.unit}

    def state_dict(self) -> dict[str, Any]:
        return {
            "model": {"weights": self.model.state_dict(), "scales": self.data.scale_state()},
            "batches": self.batches.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_state_dict_strict(self.model, state["model"]["weights"])
        self.batches.load_state_dict(state["batches"])


class PolynomialDegrees(ClosedFormTask):
    """Epoch k fits the polynomial of degree k to all its rows at once."""

    def __init__(self, model: PolynomialRegression, data: PreparedData, *, seed: int) -> None:
        super().__init__(model, data, BatchSampler(data.train.num_rows, data.train.num_rows, seed=seed, shuffle=False))
        self.degrees = monomial_degrees(model.num_features, model.degree)

    @torch.no_grad()
    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        weights, train = self._fit(self.batches.epoch), self.data.train
        self.model.weight.zero_()[: len(weights)] = weights.to(self.model.weight)
        return {"loss": in_squared_unit(squared_loss(self.model(train.features), train.targets).sum(), self.unit)}

    @torch.no_grad()
    def evaluate(self, split: str) -> Metrics:
        rows = getattr(self.data, split)
        found = self.errors(self.model(rows.features), rows.targets)
        if split == "train":
            found["degree"] = float(self.degree)
        if split == "test":
            found |= {f"degree_{k}_rmse": self._rmse(k, "test") for k in sorted({1, self.model.degree} - {0})}
        return found

    @property
    def degree(self) -> int:
        """Of the polynomial whose weights the model has."""
        used = self.model.weight.detach().nonzero()
        return self.degrees[int(used.max())] if len(used) else 0

    def _fit(self, degree: int) -> Tensor:  # in float64: high powers are close to dependent
        train = self.data.train
        return fit_monomials(train.features.cpu().double(), train.targets.cpu().double(), degree)

    def _curve(self, x: Tensor, degree: int) -> Tensor:
        return scaled_monomial_features(x.cpu().double(), degree) @ self._fit(degree)

    def _rmse(self, degree: int, split: str) -> float:
        rows = getattr(self.data, split)
        return root_mean_squared_error(self._curve(rows.features, degree), rows.targets.cpu().double()) * self.unit

    def panels(self) -> list[Panel]:
        degrees = list(range(self.model.degree + 1))
        errors = {split: (degrees, [self._rmse(k, split) for k in degrees]) for split in SPLITS}
        caption = f"Closed-form fits to {self.data.train.num_rows} examples; validation chose degree {self.degree}."
        dots = (
            "Dark dots are training examples, light ones test examples; fits that overfit leave the plot between them."
        )
        panels = [
            Panel("Error by degree", lambda: plot.curves(errors, x_label="degree", y_label="rmse", log_y=True), caption)
        ]
        if self.model.num_features == 1:
            return [*panels, Panel("Fits by degree", self._fits, dots)]
        return [*panels, *regression_panels(self.model(self.data.test.features).detach().cpu(), self.data)]

    def _fits(self) -> plot.Plot:
        from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure

        shown = [self.data.test, self.data.train]
        x, y = torch.cat([split.features for split in shown]).cpu(), torch.cat([split.targets for split in shown]).cpu()
        dots = [INK if row >= self.data.test.num_rows else FAINT for row in range(len(x))]
        line = torch.linspace(float(x.min()), float(x.max()), 400, dtype=torch.float64)
        y, x_axis = self.target_scaler.inverse_transform(y), self.data.feature_scaler.inverse_transform(line[:, None])
        with house_style():
            figure = new_figure(height=3.8)
            axes = figure.add_subplot(xlabel=self.data_info.feature_names[0], ylabel=self.data_info.target_name)
            axes.grid(True)
            axes.scatter(self.data.feature_scaler.inverse_transform(x), y, s=12, color=dots)
            for color, (k, dash) in zip(COLORS, {1: "--", self.degree: "-", self.model.degree: ":"}.items()):
                if k <= self.model.degree:
                    axes.plot(
                        x_axis,
                        self.target_scaler.inverse_transform(self._curve(line[:, None], k)),
                        dash,
                        color=color,
                        label=f"degree {k}",
                    )
            margin = 0.3 * float(y.max() - y.min()) or 1.0
            axes.set_ylim(float(y.min()) - margin, float(y.max()) + margin)
            axes.legend()
            return plot.Plot(figure, "fits by degree")


def polynomial_data(data: PreparedData, num_rows: int | None, max_degree: int) -> PreparedData:
    """The data with at most `num_rows` rows to fit to (None: all) and what is left beside the validation rows; of the
    generated data the one feature x, whose powers are its columns.

    A degree whose monomials are too many is a UserError.
    """
    info = data.data_info
    columns = [1] if info.source == "polynomial" else list(range(info.num_features))
    if num_monomials_up_to(len(columns), max_degree) > MOST_MONOMIALS:
        most = max(k for k in range(max_degree) if num_monomials_up_to(len(columns), k) <= MOST_MONOMIALS)
        raise UserError(
            f"expected at most {MOST_MONOMIALS:,} monomials, but degree {max_degree} in {len(columns)} features has "
            f"{num_monomials_up_to(len(columns), max_degree):,}: give --max-degree {most}, or leave columns out "
            "with --ignore"
        )
    names = ("x",) if info.source == "polynomial" else info.feature_names or column_names(info.feature_shape)
    rows = torch.arange(data.train.num_rows, device=data.train.features.device)
    fitted, left = data.train.take(rows[:num_rows]), data.train.take(rows[len(rows[:num_rows]) :])
    return dataclasses.replace(
        data,
        data_info=dataclasses.replace(info, feature_names=names, feature_shape=(len(names),)),
        train=_columns(columns, names, fitted),
        validation=_columns(columns, names, data.validation, left),
        test=_columns(columns, names, data.test),
        feature_scaler=StandardScaler(
            *(each.expand(info.feature_shape).flatten()[columns] for each in data.feature_scaler)
        ),
    )


def _columns(columns: list[int], names: tuple[str, ...], *pieces: Dataset) -> Dataset:
    features = torch.cat([piece.features.flatten(1)[:, columns] for piece in pieces])
    return dataclasses.replace(
        pieces[0], features=features, targets=torch.cat([each.targets for each in pieces]), feature_names=names
    )


class RandomFeatures(ClosedFormTask):
    """Each step samples random features anew and fits them; an epoch has one number of features, which doubles from
    `min_features` on."""

    def __init__(
        self,
        model: FourierRegression,
        data: PreparedData,
        *,
        min_features: int,
        num_repeats: int,
        gamma: float,
        l2: float,
        num_rows: int,
        seed: int,
    ) -> None:
        super().__init__(model, data, BatchSampler(num_repeats, 1, seed=seed, shuffle=False))
        self.min_features, self.num_repeats, self.l2 = min_features, num_repeats, l2
        # In float64 and on the CPU: closed forms of a few hundred rows.
        self.inputs = {split: getattr(data, split).features.flatten(1).cpu().double() for split in SPLITS}
        self.targets = {split: getattr(data, split).targets.cpu().double() for split in SPLITS}
        self.X, self.y = self.inputs["train"][:num_rows], self.targets["train"][:num_rows]
        exact = kernel_ridge(lambda a, b: rbf_kernel(a, b, gamma), self.X, self.y, l2)
        self.kernel_outputs = {split: exact.predict(inputs) for split, inputs in self.inputs.items()}
        self.std = float(self.kernel_outputs["train"].std()) or 1.0
        self.squared_errors: dict[str, list[float]] = {split: [] for split in SPLITS}  # squared, of each repeat so far

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        at = self.batches
        count = self.min_features * 2**at.epoch
        generator = keyed_generator("features", at.seed, at.epoch, at.position)
        projection = gaussian_random_matrix(count, self.X.shape[1], generator=generator)
        phases = 2 * math.pi * torch.rand(count, generator=generator, dtype=torch.float64)
        self.model.fit(self.X, self.y, self.l2, projection=projection, phases=phases)
        for split, x in self.inputs.items():
            if len(x):
                self.squared_errors[split].append(
                    float((self.model(x.float()) - self.kernel_outputs[split]).square().mean()) / self.std**2
                )
        return {"loss": in_squared_unit(squared_loss(self.model(self.X.float()), self.y.float()).mean(), self.unit)}

    def rmse_by_features(self, split: str) -> tuple[list[int], list[float]]:
        """The numbers of features that were fitted, and for each the RMSE to the kernel's predictions over its
        repeats."""
        repeats = [
            self.squared_errors[split][start : start + self.num_repeats]
            for start in range(0, len(self.squared_errors[split]), self.num_repeats)
        ]
        return [self.min_features * 2**epoch for epoch in range(len(repeats))], [
            math.sqrt(sum(each) / len(each)) for each in repeats
        ]

    def evaluate(self, split: str) -> Metrics:
        if not len(self.inputs[split]):
            return {}
        found = self.errors(self.model(self.inputs[split].float()).double(), self.targets[split])
        found["kernel_rmse"] = root_mean_squared_error(self.kernel_outputs[split], self.targets[split]) * self.unit
        counts, gaps = self.rmse_by_features(split)
        if counts:
            found["kernel_prediction_rmse"] = gaps[-1]
        if len(counts) > 1:
            x, logs = torch.tensor(counts).log(), torch.tensor(gaps).log()
            found["convergence_exponent"] = float(
                ((x - x.mean()) * (logs - logs.mean())).sum() / (x - x.mean()).square().sum()
            )
        return found

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "squared_errors": self.squared_errors}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.squared_errors = state["squared_errors"]

    def panels(self) -> list[Panel]:
        if not self.squared_errors["train"]:
            return []
        gaps = {split: self.rmse_by_features(split) for split in SPLITS if len(self.inputs[split])}
        counts, (start, *_) = gaps["train"]
        gaps["1/√D"] = (counts, [start * math.sqrt(counts[0] / count) for count in counts])
        caption = (
            f"{self.num_repeats} repeats for each number, {len(self.X)} training examples; in standard "
            "deviations of the kernel's predictions."
        )
        one = "Each test example, predicted with the last features and by kernel ridge regression."
        panels = [
            Panel(
                "RMSE to kernel ridge regression",
                lambda: plot.curves(
                    gaps,
                    x_label="random features D",
                    y_label="rmse to the kernel's predictions",
                    log_x=True,
                    log_y=True,
                ),
                caption,
            )
        ]
        if len(self.inputs["test"]):
            outputs, used = (
                self.model(self.inputs["test"].float()).detach(),
                f"{int(self.model.in_use)} random features",
            )
            panels.append(
                Panel(
                    "Predictions with random features vs. the kernel",
                    lambda: plot.scatter(self.kernel_outputs["test"], outputs, x_label="kernel ridge", y_label=used),
                    one,
                )
            )
        return panels
