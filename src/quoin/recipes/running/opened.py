"""Open a trained run: its model back, ready to predict, without the data it was trained on."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from quoin.data import Dataset, Facts, Standardiser, as_regression, read_features
from quoin.errors import Mistake, shown
from quoin.objectives import accuracy, cross_entropy, root_mean_squared_error
from quoin.recipes.running.catalogue import Recipe
from quoin.recipes.running.generative_run import GenerativeRun, is_image_model_run, open_generative_run
from quoin.recipes.running.labelling_run import LabellingRun, is_labelling_run, open_labelling_run
from quoin.recipes.running.language_run import LanguageRun, is_language_run, open_language_run
from quoin.recipes.running.run import best_model, open_one
from quoin.recipes.running.translation_run import TranslationRun, is_translation_run, open_translation_run
from quoin.train import Metrics, RunFolder, rows_at_once
from quoin.train.run_files import fitting

__all__ = ["OpenedRun", "Prediction", "open_run", "open_table_run"]


class Prediction(NamedTuple):
    """One row an example."""

    values: Tensor  # (n,): class numbers, or numbers in the target's own unit
    probabilities: Tensor | None  # (n, q) for classes, where the recipe's model gives any


@dataclass(frozen=True)
class OpenedRun:
    """A run's model with what it must know of its data."""

    folder: RunFolder
    recipe: Recipe
    options: Any
    facts: Facts
    model: nn.Module
    feature_scale: Standardiser
    target_scale: Standardiser | None
    step: int

    @torch.no_grad()
    def outputs(self, features: Tensor) -> Tensor:
        """The model's raw outputs for rows in the source's own units; tables may stand for images, pixel by pixel."""
        if features.shape[1:].numel() != self.facts.num_features:
            raise Mistake(f"expected rows of {self.facts.num_features} features, got shape {tuple(features.shape)}")
        self.model.eval()
        scaled = self.feature_scale.apply(features.reshape(-1, *self.facts.feature_shape))
        return torch.cat([self.model(piece) for piece in scaled.split(rows_at_once(scaled))])

    def predict(self, features: Tensor) -> Prediction:  # (n, ...) as they are in the source, before scaling
        """Predict for rows in the source's own units."""
        outputs = self.outputs(features)
        if self.facts.class_names is not None:
            return Prediction(outputs.argmax(-1), outputs.softmax(-1) if self.recipe.gives_probabilities else None)
        assert self.target_scale is not None
        return Prediction(self.target_scale.invert(outputs), None)

    def evaluate(self, dataset: Dataset) -> Metrics:
        """The metrics on all rows of other data with the same features; classes and, where the names agree, features go by name."""
        if dataset.num_features != self.facts.num_features:
            raise Mistake(f"{dataset.name} has {dataset.num_features} features, the run was trained on {self.facts.num_features}")
        if dataset.feature_names != self.facts.feature_names and set(dataset.feature_names) == set(self.facts.feature_names):
            places = {name: place for place, name in enumerate(dataset.feature_names)}  # the same columns in another order
            features = dataset.features.flatten(1)[:, [places[name] for name in self.facts.feature_names]]
            dataset = dataclasses.replace(dataset, features=features, feature_names=self.facts.feature_names)
        if self.facts.class_names is None:
            numbers = as_regression(dataset)
            return {"rmse": root_mean_squared_error(self.predict(numbers.features).values, numbers.targets)}
        known = {name: number for number, name in enumerate(self.facts.class_names)}
        strange = [name for name in dataset.class_names or () if name not in known]
        if dataset.class_names is None or strange:
            came = shown(strange[0]) if strange else "numbers"
            raise Mistake(f"the run knows the classes {shown(', '.join(known))}, {dataset.name} has {came}: choose data with its classes")
        labels = torch.tensor([known[name] for name in dataset.class_names])[dataset.targets]
        logits = self.outputs(dataset.features)
        found = {"accuracy": accuracy(logits.argmax(-1), labels)}
        if self.recipe.gives_probabilities:
            found["cross_entropy"] = float(cross_entropy(logits, labels).mean())
        return found

    def farthest(self, features: Tensor) -> float:  # (n, ...) as in `predict`
        """The largest distance of an entry from its training mean, in training standard deviations."""
        scaled = self.feature_scale.apply(features.reshape(-1, *self.facts.feature_shape))
        return float(scaled.abs().max()) if scaled.numel() else 0.0

    def read_features(self, path: Path) -> Tensor:
        """The rows of a CSV or NPZ file that has the columns the run was trained on."""
        return read_features(path, self.facts.feature_names)


def open_run(path: Path | str, *, step: int | None = None) -> OpenedRun | LanguageRun | TranslationRun | LabellingRun | GenerativeRun:
    """The best model of the run at `path`, from its newest checkpoint or from that of `step`."""
    folder = open_one(Path(path))
    if is_translation_run(folder):
        return open_translation_run(path, step=step)
    if is_labelling_run(folder):
        return open_labelling_run(path, step=step)
    if is_image_model_run(folder) or folder.config["data"] is None:  # without data there is a law to draw from, or nothing to open
        return open_generative_run(path, step=step)
    return open_language_run(path, step=step) if is_language_run(folder) else open_table_run(path, step=step)


def open_table_run(path: Path | str, *, step: int | None = None) -> OpenedRun:
    """`open_run` for a run that predicts from rows of numbers."""
    folder = open_one(Path(path))
    if folder.config["data"] is None:
        raise Mistake(f"{path} is a run without data: there is nothing to predict from")
    if is_language_run(folder):
        raise Mistake(f"{path} is a language model, which predicts no rows: use `quoin generate {path}`")
    if is_translation_run(folder):
        raise Mistake(f"{path} translates sentences, and predicts no rows: use `quoin predict {path} FILE` with a text file")
    if is_labelling_run(folder):
        raise Mistake(f"{path} classifies texts, and predicts no rows: use `quoin predict {path} FILE` with a text file")
    if is_image_model_run(folder):
        raise Mistake(f"{path} draws images, and predicts no rows: use `quoin generate {path}`")
    facts = folder.facts(Facts)
    best = best_model(folder, facts, step)
    with fitting(f"the checkpoint of {path}"):
        scales = best.saved["scales"]
        targets = Standardiser(scales["target_mean"], scales["target_std"]) if facts.class_names is None else None
        features = Standardiser(scales["feature_mean"], scales["feature_std"])
    return OpenedRun(folder, best.recipe, best.options, facts, best.model, features, targets, best.step)
