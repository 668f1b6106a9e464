"""Batch norm between training and test: a column of the reader's, and a run's classifier in train and in eval mode."""

import copy
import functools
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import one_hot

from quoin.data.embedded import load_embedded
from quoin.errors import UserError
from quoin.lab.parts.picture import Picture
from quoin.lab.parts.ticks import digits
from quoin.layers import (
    Moments,
    batch_norm_definition,
    batch_norm_eval_definition,
    moments,
    update_running_stats,
)
from quoin.models import MLP
from quoin.runs import Run

__all__ = [
    "SIZES",
    "Classifier",
    "ColumnModes",
    "Modes",
    "classifier_of",
    "column_modes",
    "draw_column",
    "draw_modes",
    "modes_of",
]

SIZES = (2, 4, 8, 16, 32, 64)
_MOST_ROWS = 512
_ONE, _ZERO = torch.ones(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)


class ColumnModes(NamedTuple):
    """Rows, their outputs of batch norm in training and at test, and the running averages."""

    x: Float[Tensor, "n"]
    trained: Float[Tensor, "n"]
    tested: Float[Tensor, "n"]
    running: Moments


def column_modes(rows: Float[Tensor, "n"], size: int, passes: int) -> ColumnModes:
    """A column through batch norm in batches of `size`, and with what its averages are after some passes."""
    batches = [batch for batch in rows.split(size) if len(batch) > 1]
    running = Moments(_ZERO, _ONE)  # where torch starts
    for batch in batches * passes:
        running = update_running_stats(running, moments(batch[:, None], (0,)), len(batch))
    x = torch.cat(batches)
    trained = torch.cat([batch_norm_definition(batch[:, None], _ONE, _ZERO).output for batch in batches])[:, 0]
    return ColumnModes(x, trained, batch_norm_eval_definition(x[:, None], running, _ONE, _ZERO)[:, 0], running)


def draw_column(picture: Picture, found: ColumnModes, name: str) -> None:
    """Outputs in training as points, at test as a line."""
    margin = 0.05 * float(found.x.max() - found.x.min()) + 1e-6
    both = torch.cat([found.trained, found.tested])
    span = (float(both.min()) - 0.3, float(both.max()) + 0.3)
    across = (float(found.x.min()) - margin, float(found.x.max()) + margin)
    plane = picture.axes(across, span, x_label=name, y_label="output")
    plane.points(found.x, found.trained, "hand", size=3)
    order = found.x.argsort()
    plane.line(found.x[order], found.tested[order], "model")


class Classifier(NamedTuple):
    """A model with rows to judge it by, and which of its modules act otherwise in training."""

    model: nn.Module
    features: Tensor
    classes: Int[Tensor, "n"]
    name: str
    acting: str


class Modes(NamedTuple):
    """Probabilities of the true class in eval and in train mode, how far outputs are apart, and accuracies."""

    in_eval: Float[Tensor, "n"]
    in_train: Float[Tensor, "n"]
    apart: float
    eval_accuracy: float
    train_accuracy: float


def classifier_of(path: Path | None) -> Classifier:
    """The classifier of a run, on its test rows; without a run a network of ours on irises."""
    return _classifier(path, path.stat().st_mtime_ns if path and path.exists() else 0)


@functools.lru_cache(maxsize=4)  # a run that is still written has another time, and is read again
def _classifier(path: Path | None, time: int) -> Classifier:
    if path is None:
        data = load_embedded("iris")
        order = torch.randperm(len(data.targets), generator=torch.Generator().manual_seed(0))
        x, classes = data.features[order], data.targets[order]
        x = (x - x.mean(dim=0)) / x.std(dim=0)
        return _told(_fitted(x, classes), x, classes, "No run is open; a network of ours on irises")
    run = Run.open(path)
    task: Any = run.load_task()
    test = getattr(getattr(task, "data", None), "test", None)
    classes = getattr(test, "targets", None)
    if test is None or classes is None or classes.is_floating_point() or classes.ndim != 1:
        raise UserError(f"expected a run that tells classes, got {path.name} ({run.recipe_name}); open another one")
    order = torch.randperm(len(classes), generator=torch.Generator().manual_seed(0))[:_MOST_ROWS]
    return _told(run.model, test.features[order], classes[order], path.name)


@torch.no_grad()
def _fitted(x: Float[Tensor, "n 4"], classes: Int[Tensor, "n"]) -> MLP:
    """A network with a batch norm whose averages have seen the rows in batches of ten, its last layer fitted to ±5 by
    least squares."""
    model = MLP([4, 16, 3], norm=nn.BatchNorm1d, generator=torch.Generator().manual_seed(0))
    for batch in list(x.split(10)) * 3:
        model.train()(batch)
    hidden = model.eval().features(x)
    wanted = 10 * one_hot(classes, 3).float() - 5
    fitted = torch.linalg.lstsq(torch.cat([hidden, torch.ones(len(x), 1)], dim=1), wanted).solution
    model.head.weight.copy_(fitted[:-1].T)
    model.head.bias.copy_(fitted[-1])
    return model


def _told(model: nn.Module, features: Tensor, classes: Tensor, name: str) -> Classifier:
    norms = sum(isinstance(each, nn.modules.batchnorm._BatchNorm) for each in model.modules())
    drops = sum("Dropout" in type(each).__name__ and getattr(each, "p", 0) > 0 for each in model.modules())
    parts = [f"{count} × {word}" for count, word in ((norms, "batch norm"), (drops, "dropout")) if count]
    return Classifier(model, features, classes, name, " and ".join(parts) or "nothing")


@functools.lru_cache(maxsize=32)
@torch.no_grad()
def modes_of(found: Classifier, size: int) -> Modes:
    """The outputs in eval mode, and in train mode in batches of `size`; the model itself is left as it is."""
    trained = copy.deepcopy(found.model).train()
    tested = copy.deepcopy(found.model).eval()
    whole = len(found.features) - (len(found.features) % size == 1)  # no statistics of one row alone
    features, classes = found.features[:whole], found.classes[:whole]
    with torch.random.fork_rng(devices=[]):  # dropout draws from the global generator
        torch.manual_seed(0)
        outputs = [torch.cat([model(batch) for batch in features.split(size)]) for model in (tested, trained)]
    if outputs[0].ndim != 2 or outputs[0].shape[1] < 2:
        raise UserError("expected a model with a logit for each class, got another output; open another run")
    (in_eval, eval_accuracy), (in_train, train_accuracy) = (
        (each.softmax(dim=1).gather(1, classes[:, None])[:, 0], float((each.argmax(dim=1) == classes).double().mean()))
        for each in outputs
    )
    apart = float((outputs[1] - outputs[0]).square().mean().sqrt())
    return Modes(in_eval, in_train, apart, eval_accuracy, train_accuracy)


def draw_modes(picture: Picture, found: Modes, by_size: dict[int, float], size: int) -> None:
    """Left the probability of the true class in both modes, right the accuracy by the size of the batch."""
    plane = picture.axes(
        (0, 1), (0, 1), box=(50, 34, 290, 290), x_label="in eval mode", y_label="in train mode", title="P(true class)"
    )
    plane.line([0, 1], [0, 1], "faint", width=1, dashed=True)
    plane.points(found.in_eval, found.in_train, "model 60%", size=3)
    curve = picture.axes(
        (min(SIZES), max(SIZES)),
        (0, 1),
        box=(410, 34, 215, 290),
        x_log=True,
        x_ticks=False,
        x_label="batch size",
        title="accuracy",
    )
    for each in SIZES:
        curve.text(each, 0, str(each), "faint", anchor="middle", size=12, dy=16)
    curve.line(by_size.keys(), by_size.values(), "change")
    curve.points([size], [by_size[size]], "hand", size=6)
    curve.line([min(SIZES), max(SIZES)], [found.eval_accuracy] * 2, "ink", dashed=True)
    curve.text(max(SIZES), found.eval_accuracy, f"eval {digits(found.eval_accuracy)}", anchor="end", dy=-7)
