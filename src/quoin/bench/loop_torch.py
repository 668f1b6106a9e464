"""The row `loop` on torch: Quoin's own loop, the loop one writes by hand, and the loop over a DataLoader."""

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from quoin.bench.loop_problem import BATCH, HIDDEN, INPUTS, OUTPUTS, RATE, Problem, accuracy, problem
from quoin.bench.worker import Laps
from quoin.data import Dataset, Split, prepare
from quoin.losses import cross_entropy
from quoin.models import MLP
from quoin.tasks.supervised import Classification
from quoin.train import (
    Loop,
    Metrics,
    Progress,
    RunFolder,
    choose_place,
    describe_environment,
)

__all__ = ["bare", "data_loader", "quoin"]


class LappedClassification(Classification):
    """A classification whose epochs are laps; all else is as in any run."""

    laps: Laps

    def evaluate(self, part: str) -> Metrics:
        found = super().evaluate(part)
        if part == "validation":  # which the loop asks for once an epoch
            self.laps.end()
        return found


def quoin(laps: Laps) -> dict[str, float]:
    """The loop that `quoin train` runs: metrics, progress, guards and default checkpoints; no validation rows, as peers have none."""
    place, _ = choose_place("cpu", threads=laps.threads)
    given = problem()
    data = prepare(_dataset(given), _split(given))
    model = MLP([INPUTS, HIDDEN, OUTPUTS])
    _start([module for module in model.modules() if isinstance(module, nn.Linear)], given)
    sgd = torch.optim.SGD(model.parameters(), RATE)
    task = LappedClassification(model, cross_entropy, sgd, data, batch_size=BATCH, epochs=laps.count, seed=0, place=place)
    task.laps = laps
    with tempfile.TemporaryDirectory() as runs:
        folder = RunFolder.create(
            Path(runs), "loop", {"kind": task.kind, "options": {}, "settings": {}, "data": None}, describe_environment(place, 0)
        )
        with folder.locked():
            loop = Loop(task, folder, epochs=laps.count, progress=Progress("loop"))
            loop.clock = laps.clock  # else the waiting for peers would count, and a checkpoint be due in every lap
            loop.run()
    return accuracy(task.outputs("test").numpy(), given)


def bare(laps: Laps) -> dict[str, float]:
    """Batches by index from tensors in memory, and nothing that the update does not need."""
    given, model, optimiser = _by_hand(laps)
    features, labels = torch.from_numpy(given.features), torch.from_numpy(given.labels)
    for _ in range(laps.count):
        for rows in torch.randperm(len(labels)).split(BATCH):
            _update(model, optimiser, features.index_select(0, rows), labels.index_select(0, rows))
        laps.end()
    return _judged(model, given)


def data_loader(laps: Laps) -> dict[str, float]:
    """The same updates on the batches of a shuffling DataLoader, which loads in this process as it does by default."""
    given, model, optimiser = _by_hand(laps)
    rows = TensorDataset(torch.from_numpy(given.features), torch.from_numpy(given.labels))
    batches = DataLoader(rows, batch_size=BATCH, shuffle=True)
    for _ in range(laps.count):
        for features, labels in batches:
            _update(model, optimiser, features, labels)
        laps.end()
    return _judged(model, given)


def _by_hand(laps: Laps) -> tuple[Problem, nn.Module, torch.optim.Optimizer]:
    torch.set_num_threads(laps.threads)
    torch.manual_seed(0)
    given = problem()
    layers = nn.Linear(INPUTS, HIDDEN), nn.Linear(HIDDEN, OUTPUTS)
    _start(list(layers), given)
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1])
    return given, model, torch.optim.SGD(model.parameters(), RATE)


def _update(model: nn.Module, optimiser: torch.optim.Optimizer, features: Tensor, labels: Tensor) -> None:
    loss = functional.cross_entropy(model(features), labels)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


@torch.no_grad()
def _judged(model: nn.Module, given: Problem) -> dict[str, float]:
    return accuracy(model(torch.from_numpy(given.test_features)).numpy(), given)


@torch.no_grad()
def _start(layers: list[nn.Linear], given: Problem) -> None:
    for layer, weight in zip(layers, given.weights, strict=True):
        layer.weight.copy_(torch.from_numpy(weight).T)
        layer.bias.zero_()


def _dataset(given: Problem) -> Dataset:
    features = torch.from_numpy(given.features), torch.from_numpy(given.test_features)
    targets = torch.from_numpy(given.labels), torch.from_numpy(given.test_labels)
    names = tuple(f"x{index}" for index in range(INPUTS))
    return Dataset("teacher", torch.cat(features), torch.cat(targets), names, tuple(map(str, range(OUTPUTS))))


def _split(given: Problem) -> Split:
    num_train, num_test = len(given.labels), len(given.test_labels)
    return Split(torch.arange(num_train), torch.arange(0), torch.arange(num_train, num_train + num_test))
