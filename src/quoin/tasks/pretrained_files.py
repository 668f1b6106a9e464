"""Trained weights to start from, where they lie: in a safetensors file, or in the folder of a run.

A language model starts from a run alone: its weights mean nothing without its tokenizer and its architecture."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from jaxtyping import Shaped
from torch import Tensor

from quoin.data import TextInfo, Tokenizer
from quoin.errors import UserError, format_value
from quoin.models.pretrained import read_safetensors
from quoin.tasks.fine_tuning_options import ImageStatistics
from quoin.train import RunFolder
from quoin.train.run_state import fitting, model_weights, read_state

__all__ = [
    "PretrainedFile",
    "PretrainedLanguageModel",
    "describe_pretrained",
    "read_pretrained",
    "read_pretrained_language_model",
]


class PretrainedFile(NamedTuple):
    """What a run records of its first weights."""

    path: str  # absolute: a run may be opened from elsewhere
    sha256: str  # of the file; of a run folder, of the weights in it
    statistics: ImageStatistics | None  # that the weights were trained with, where that is known


def describe_pretrained(path: str) -> PretrainedFile:
    """The weights at `path`, without their values."""
    where = Path(path).absolute()
    if where.is_dir():
        saved = _saved(where)
        scales = saved["scales"]
        mean, std = (tuple(float(each) for each in scales[name].flatten()) for name in ("feature_mean", "feature_std"))
        return PretrainedFile(str(where), _digest(saved["weights"]), (mean, std))
    try:
        with where.open("rb") as file:
            return PretrainedFile(str(where), hashlib.file_digest(file, "sha256").hexdigest(), None)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        told = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(
            f"--pretrained expects a .safetensors file or a run folder, got {told} for {format_value(path, 200)}: "
            "check the path"
        ) from error


def read_pretrained(path: str) -> dict[str, Shaped[Tensor, "..."]]:
    """The tensors at `path` by name."""
    where = Path(path)
    return dict(_saved(where)["weights"]) if where.is_dir() else read_safetensors(where)


class PretrainedLanguageModel(NamedTuple):
    """What a language model starts from."""

    path: str
    options: dict[str, Any]  # of its run
    tokenizer: Tokenizer
    weights: dict[str, Shaped[Tensor, "..."]]

    @property
    def sha256(self) -> str:
        return _digest(self.weights)


def read_pretrained_language_model(path: str, recipe: str) -> PretrainedLanguageModel:
    """The model of the run of `recipe` at `path`."""
    where = Path(path).absolute()
    run, saved = _saved_model(where, lambda run: run.recipe == recipe, f"a run of {recipe}")
    with fitting(f"the checkpoint of {where}"):
        weights = model_weights(saved, f"the checkpoint of {where}")
    return PretrainedLanguageModel(str(where), run.config["options"], run.read_data_info(TextInfo).tokenizer, weights)


def _saved(folder: Path) -> dict[str, Any]:
    """The best model of an image classifier's run, with the scale of its images."""
    _, saved = _saved_model(
        folder, lambda run: run.config["kind"] == "classification", "the run of an image classifier"
    )
    where = f"the checkpoint of {folder}"
    with fitting(where):
        return {"weights": model_weights(saved, where), "scales": saved["scales"]}


def _saved_model(folder: Path, fits: Callable[[RunFolder], bool], expected: str) -> tuple[RunFolder, Any]:
    """The run at `folder` and its best model so far."""
    run = RunFolder.open(folder)
    found = run.load_checkpoint()
    if found is None or not fits(run):
        got = "one without a checkpoint" if found is None else f"one of {run.recipe}"
        raise UserError(f"--pretrained expects {expected}, got {got} at {format_value(str(folder), 200)}: give another")
    state = read_state(found[0], f"the checkpoint of {folder}")
    return run, state["best"] or state["task"].get("model")


def _digest(weights: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(repr((name, str(weights[name].dtype), tuple(weights[name].shape))).encode())
        digest.update(weights[name].contiguous().numpy().data)
    return digest.hexdigest()
