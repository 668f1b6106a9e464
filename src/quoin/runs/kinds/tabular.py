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
    read_signals,
)
from quoin.errors import UserError, format_value
from quoin.losses import cross_entropy
from quoin.metrics import accuracy, root_mean_squared_error
from quoin.runs.kinds.trained import Trained
from quoin.runs.predictions import PredictedFile, predicted_table
from quoin.tasks.supervised import auc_metrics, predict_in_batches, predict_labels
from quoin.train import Metrics
from quoin.train.run_state import fitting

if TYPE_CHECKING:
    from quoin.runs.run import Run

__all__ = ["Prediction", "TrainedTabular"]

# Training standard deviations from the training mean: no outlier, more probably another unit, such as grey levels to
# 255 for ones to 1.
FAR = 30.0


class Prediction(NamedTuple):
    """One row an example."""

    # Class numbers, or numbers in the target's own unit, one for each where there are several targets.
    values: Real[Tensor, "samples"] | Float[Tensor, "samples targets"]
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
            threshold = self.saved.get("threshold")
            self.threshold = None if threshold is None else float(threshold)  # of two classes, where one was chosen
            self.feature_scaler = StandardScaler(scales["feature_mean"], scales["feature_std"])

    def outputs(self, features: Real[Tensor, "samples ..."]) -> Float[Tensor, "samples *outputs"]:
        """The model's raw outputs for rows in the source's own units; tables may stand for images, pixel by pixel."""
        shape = self.data_info.feature_shape
        if len(shape) == 2 and features.ndim == 3 and features.shape[1:] != shape:
            raise UserError(
                f"expected signals of {shape[0]} channels and {shape[1]} steps as in training, got shape "
                f"{tuple(features.shape)}: give such"
            )
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
            labels = predict_labels(outputs, self.threshold)
            return Prediction(labels, outputs.softmax(-1) if self.recipe.gives_probabilities else None)
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
            values = self.predict(numbers.features).values
            if numbers.targets.ndim == 1:
                return {"rmse": root_mean_squared_error(values, numbers.targets)}
            return {
                f"rmse_{name}": root_mean_squared_error(ours, theirs)
                for name, ours, theirs in zip(self.data_info.target_names, values.T, numbers.targets.T)
            }
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
        found = {"accuracy": accuracy(predict_labels(logits, self.threshold), labels), **auc_metrics(logits, labels)}
        if self.recipe.gives_probabilities:
            found["cross_entropy"] = float(cross_entropy(logits, labels).mean())
        return found

    def farthest(self, features: Real[Tensor, "samples ..."]) -> float:
        """The largest distance of an entry from its training mean, in training standard deviations."""
        scaled = self.feature_scaler.transform(features.reshape(-1, *self.data_info.feature_shape))
        return float(scaled.abs().max()) if scaled.numel() else 0.0

    def predict_file(self, path: Path) -> PredictedFile:
        """Predictions for the rows of a table or an NPZ file; of a run on images also for a folder of pictures, or
        one."""
        if (pictures := read_pictures_like(self.data_info, path)) is not None:
            return predicted_table(*self.predict(pictures.images), self.data_info, [], files=pictures.names)
        read = read_signals if len(self.data_info.feature_shape) == 2 else read_features
        features, notes = read(path, self.data_info)
        prediction = self.predict(features)
        if (far := self.farthest(features)) > FAR:
            notes.append(
                f"a value lies {far:.0f} training spreads from the training mean; is {path} on the scale of the "
                "training data?"
            )
        if self.threshold is not None and self.data_info.class_names is not None:
            second = format_value(self.data_info.class_names[1])
            notes.append(f"{second} is predicted from p = {self.threshold:.4g} on, as chosen on the validation split")
        return predicted_table(prediction.values, prediction.probabilities, self.data_info, notes)

    def inspect(self) -> None:
        """Looked into by `Run.inspect`, which loads the run's own data."""
