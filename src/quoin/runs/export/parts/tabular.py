"""Classifiers and regressions of rows, images and signals: raw numbers in, probabilities and classes or numbers in the
target's own unit out."""

from typing import Any

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from quoin.data import StandardScaler
from quoin.errors import UserError
from quoin.models import NodeClassifier
from quoin.runs.export.exportable import BATCH, Exportable, ExportInput, ExportPart
from quoin.runs.kinds.tabular import TrainedTabular
from quoin.runs.run import Run
from quoin.tasks.supervised import predict_labels

__all__ = ["RowClassifier", "RowRegression", "random_rows", "scaled_test_rows", "tabular_parts"]

REAL_ROWS = 8


class RowClassifier(nn.Module):
    """Raw rows to the probabilities (or scores) of the classes, and the number of the predicted one."""

    mean: Float[Tensor, "*#shape"]
    std: Float[Tensor, "*#shape"]

    def __init__(
        self, model: nn.Module, scaler: StandardScaler, *, threshold: float | None, gives_probabilities: bool
    ) -> None:
        super().__init__()
        self.model, self.threshold, self.gives_probabilities = model, threshold, gives_probabilities
        self.register_buffer("mean", scaler.mean)
        self.register_buffer("std", scaler.std)

    def forward(
        self, rows: Real[Tensor, "batch *shape"]
    ) -> tuple[Float[Tensor, "batch classes"], Real[Tensor, "batch"]]:
        scores = self.model(standardised(rows, self.mean, self.std))
        return scores.softmax(-1) if self.gives_probabilities else scores, predict_labels(scores, self.threshold)


class RowRegression(nn.Module):
    """Raw rows to numbers in the target's own unit."""

    mean: Float[Tensor, "*#shape"]
    std: Float[Tensor, "*#shape"]
    target_mean: Float[Tensor, "*#targets"]
    target_std: Float[Tensor, "*#targets"]

    def __init__(self, model: nn.Module, scaler: StandardScaler, target_scaler: StandardScaler) -> None:
        super().__init__()
        self.model = model
        for name, value in zip(("mean", "std", "target_mean", "target_std"), (*scaler, *target_scaler)):
            self.register_buffer(name, value)

    def forward(self, rows: Real[Tensor, "batch *shape"]) -> Float[Tensor, "batch *targets"]:
        return self.model(standardised(rows, self.mean, self.std)).double() * self.target_std + self.target_mean


def standardised(
    rows: Real[Tensor, "batch *shape"], mean: Float[Tensor, "*#shape"], std: Float[Tensor, "*#shape"]
) -> Float[Tensor, "batch *shape"]:
    """As `StandardScaler.transform`: the difference in float64, then float32."""
    return ((rows.double() - mean) / std).float()


def random_rows(trained: TrainedTabular, count: int, generator: torch.Generator) -> Float[Tensor, "{count} *shape"]:
    """Normal rows with the mean and spread of the training data, in its units; for a graph some of its nodes."""
    shape = (count, *trained.data_info.feature_shape)
    if isinstance(trained.model, NodeClassifier):
        return torch.randint(trained.model.num_nodes, shape, generator=generator).double()
    noise = torch.randn(shape, generator=generator, dtype=torch.float64)
    return noise * trained.feature_scaler.std + trained.feature_scaler.mean


def scaled_test_rows(run: Run) -> Float[Tensor, "rows *shape"]:
    """The first of the run's own test rows, as its model reads them."""
    data: Any = getattr(run.load_task(), "data", None)
    if data is None:
        raise UserError(f"expected one test split, got {run.recipe_name}, which has several; random rows remain")
    return data.test.features[:REAL_ROWS][:].cpu()


def tabular_parts(run: Run) -> Exportable:
    """One part, from rows to answers."""
    trained = run.trained
    assert isinstance(trained, TrainedTabular)
    info, shape = trained.data_info, trained.data_info.feature_shape
    # A table's numbers may need all their digits, such as seconds since 1970; pixels do not.
    name, dtype = {1: ("rows", torch.float64), 2: ("signals", torch.float32), 3: ("images", torch.float32)}[len(shape)]

    def draw(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return random_rows(trained, size[0], generator).to(dtype)

    def real() -> tuple[Tensor, ...]:
        return (trained.feature_scaler.inverse_transform(scaled_test_rows(run)).to(dtype),)

    inputs = (ExportInput(name, (BATCH, *shape), draw, "in the units of the training data"),)
    told: dict[str, Any] = {
        "feature_names": list(info.feature_names),
        "feature_shape": list(shape),
        "target_names": list(info.target_names),
        "class_names": None if info.class_names is None else list(info.class_names),
        "threshold": trained.threshold,
        "columns": [vars(each) for each in info.columns],
        "units": "the inputs and the predicted numbers are in the units of the training data: scales are in the graph",
    }
    if info.class_names is None:
        assert trained.target_scaler is not None
        module = RowRegression(trained.model, trained.feature_scaler, trained.target_scaler).eval()
        part = ExportPart("model", module, inputs, ("prediction",), lambda rows: (trained.predict(rows).values,), real)
        return Exportable((part,), told)
    gives = run.recipe.gives_probabilities

    def ours(rows: Tensor) -> tuple[Tensor, ...]:
        found = trained.predict(rows)
        return trained.outputs(rows) if found.probabilities is None else found.probabilities, found.values

    module = RowClassifier(
        trained.model, trained.feature_scaler, threshold=trained.threshold, gives_probabilities=gives
    ).eval()
    outputs = ("probabilities" if gives else "scores", "class")
    return Exportable((ExportPart("model", module, inputs, outputs, ours, real),), told)
