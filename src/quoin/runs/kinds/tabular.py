"""Trained to predict a class or a number from rows of numbers, tables and images alike; without the data it was trained
on."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.data import (
    Dataset,
    StandardScaler,
    StoredImages,
    TabularInfo,
    as_regression,
    load_like,
    read_features,
    read_pictures_like,
)
from quoin.data.dataset import column_names
from quoin.errors import UserError, format_value
from quoin.losses import cross_entropy
from quoin.metrics import accuracy, root_mean_squared_error
from quoin.runs.kinds.trained import Trained
from quoin.runs.predictions import PredictedFile, predicted_table
from quoin.tasks.supervised import predict_in_batches
from quoin.train import Metrics
from quoin.train.run_files import fitting

if TYPE_CHECKING:
    from quoin.runs.run import Run

__all__ = ["Prediction", "TrainedTabular"]

# Training standard deviations from the training mean: no outlier, more probably another unit, such as grey levels to
# 255 for ones to 1.
FAR = 30.0


class Prediction(NamedTuple):
    """One row an example."""

    values: Real[Tensor, "samples"]  # class numbers, or numbers in the target's own unit
    probabilities: Float[Tensor, "samples classes"] | None  # for classes, where the recipe's model gives any


class TrainedTabular(Trained):
    """A model of rows, with the scales of its training data."""

    data_info_class = TabularInfo
    is_a = "predicts rows of numbers"
    data_info: TabularInfo

    def __init__(self, run: "Run") -> None:
        super().__init__(run)
        with fitting(f"the checkpoint of {run.path}"):
            scales = self.saved["scales"]
            self.target_scaler = (
                StandardScaler(scales["target_mean"], scales["target_std"])
                if self.data_info.class_names is None
                else None
            )
            self.feature_scaler = StandardScaler(scales["feature_mean"], scales["feature_std"])

    def outputs(self, features: Real[Tensor, "samples ..."]) -> Float[Tensor, "samples *outputs"]:
        """The model's raw outputs for rows in the source's own units; tables may stand for images, pixel by pixel."""
        if features.shape[1:].numel() != self.data_info.num_features:
            raise UserError(
                f"expected rows of {self.data_info.num_features} features, got shape {tuple(features.shape)}"
            )
        self.model.eval()
        if isinstance(features, StoredImages):
            scaled = features.scaled(self.feature_scaler)
        else:
            scaled = self.feature_scaler.transform(features.reshape(-1, *self.data_info.feature_shape))
        return predict_in_batches(self.model, scaled)

    def predict(self, features: Real[Tensor, "samples ..."]) -> Prediction:
        """Predict for rows in the source's own units."""
        outputs = self.outputs(features)
        if self.data_info.class_names is not None:
            return Prediction(outputs.argmax(-1), outputs.softmax(-1) if self.recipe.gives_probabilities else None)
        assert self.target_scaler is not None
        return Prediction(self.target_scaler.inverse_transform(outputs), None)

    def evaluate(self, data: str | Dataset, *, target: str | None = None) -> Metrics:
        """The metrics on all rows of other data, a dataset or named as for `--data`, with the same features.

        Classes and, where the names agree, features go by name.
        """
        dataset = (
            load_like(self.data_info, data, target=target, seed=self.options.seed) if isinstance(data, str) else data
        )
        if dataset.num_features != self.data_info.num_features:
            raise UserError(
                f"{dataset.name} has {dataset.num_features} features, the run was trained on "
                f"{self.data_info.num_features}"
            )
        if dataset.feature_names != self.data_info.feature_names and set(dataset.feature_names) == set(
            self.data_info.feature_names
        ):
            indices = {
                name: index for index, name in enumerate(dataset.feature_names)
            }  # the same columns in another order
            features = dataset.features.flatten(1)[:, [indices[name] for name in self.data_info.feature_names]]
            dataset = dataclasses.replace(dataset, features=features, feature_names=self.data_info.feature_names)
        if self.data_info.class_names is None:
            numbers = as_regression(dataset)
            return {"rmse": root_mean_squared_error(self.predict(numbers.features).values, numbers.targets)}
        known = {name: number for number, name in enumerate(self.data_info.class_names)}
        strange = [name for name in dataset.class_names or () if name not in known]
        if dataset.class_names is None or strange:
            got = format_value(strange[0]) if strange else "numbers"
            raise UserError(
                f"the run knows the classes {format_value(', '.join(known))}, {dataset.name} has {got}: choose "
                "data with its classes"
            )
        labels = torch.tensor([known[name] for name in dataset.class_names])[dataset.targets]
        logits = self.outputs(dataset.features)
        found = {"accuracy": accuracy(logits.argmax(-1), labels)}
        if self.recipe.gives_probabilities:
            found["cross_entropy"] = float(cross_entropy(logits, labels).mean())
        return found

    def farthest(self, features: Real[Tensor, "samples ..."]) -> float:
        """The largest distance of an entry from its training mean, in training standard deviations."""
        scaled = self.feature_scaler.transform(features.reshape(-1, *self.data_info.feature_shape))
        return float(scaled.abs().max()) if scaled.numel() else 0.0

    def predict_file(self, path: Path) -> PredictedFile:
        """Predictions for the rows of a CSV or NPZ file; of a run on images also for a folder of pictures, or one."""
        if (pictures := read_pictures_like(self.data_info, path)) is not None:
            return predicted_table(*self.predict(pictures.images), self.data_info, [], files=pictures.names)
        features = read_features(path, self.data_info.feature_names or column_names(self.data_info.feature_shape))
        prediction, notes = self.predict(features), []
        if (far := self.farthest(features)) > FAR:
            notes = [
                f"a value lies {far:.0f} training spreads from the training mean; is {path} on the scale of the "
                "training data?"
            ]
        return predicted_table(prediction.values, prediction.probabilities, self.data_info, notes)

    def inspect(self) -> None:
        """Looked into by `Run.inspect`, which loads the run's own data."""
