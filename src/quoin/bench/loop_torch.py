"""The benchmark `loop` on torch: Quoin's own loop, the loop one writes by hand, and the loop over a DataLoader."""

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from quoin.bench.loop_problem import BATCH_SIZE, HIDDEN_DIM, INPUTS, LR, OUTPUTS, Problem, accuracy, problem
from quoin.bench.worker import Repeats
from quoin.data import Dataset, Split, prepare
from quoin.losses import cross_entropy
from quoin.models import MLP
from quoin.tasks.supervised import Classification
from quoin.train import (
    Metrics,
    Progress,
    RunFolder,
    Trainer,
    describe_environment,
    setup_device,
)

__all__ = ["bare", "data_loader", "quoin"]


class TimedClassification(Classification):
    """A classification whose epochs are repeats; all else is as in any run."""

    repeats: Repeats

    def evaluate(self, split: str) -> Metrics:
        found = super().evaluate(split)
        if split == "validation":  # which the loop asks for once an epoch
            self.repeats.end()
        return found


def quoin(repeats: Repeats) -> dict[str, float]:
    """The loop that `quoin train` runs: metrics, progress, guards and default checkpoints; no validation rows, as peers
    have none."""
    device_context, _ = setup_device("cpu", threads=repeats.threads)
    given = problem()
    data = prepare(_dataset(given), _split(given))
    model = MLP([INPUTS, HIDDEN_DIM, OUTPUTS])
    _start([module for module in model.modules() if isinstance(module, nn.Linear)], given)
    sgd = torch.optim.SGD(model.parameters(), LR)
    task = TimedClassification(
        model,
        cross_entropy,
        sgd,
        data,
        batch_size=BATCH_SIZE,
        epochs=repeats.count,
        seed=0,
        device_context=device_context,
    )
    task.repeats = repeats
    with tempfile.TemporaryDirectory() as runs:
        folder = RunFolder.create(
            Path(runs),
            "loop",
            {"kind": task.kind, "options": {}, "settings": {}, "data": None},
            describe_environment(device_context, 0),
        )
        with folder.locked():
            trainer = Trainer(task, folder, epochs=repeats.count, progress=Progress("loop"))
            # Else the waiting for peers would count, and a checkpoint be due in every repeat.
            trainer.clock = repeats.clock
            trainer.run()
    return accuracy(task.predict_split("test").numpy(), given)


def bare(repeats: Repeats) -> dict[str, float]:
    """Batches by index from tensors in memory, and nothing that the update does not need."""
    given, model, optimizer = _by_hand(repeats)
    features, labels = torch.from_numpy(given.features), torch.from_numpy(given.labels)
    for _ in range(repeats.count):
        for rows in torch.randperm(len(labels)).split(BATCH_SIZE):
            _update(model, optimizer, features.index_select(0, rows), labels.index_select(0, rows))
        repeats.end()
    return _test_accuracy(model, given)


def data_loader(repeats: Repeats) -> dict[str, float]:
    """The same updates on the batches of a shuffling DataLoader, which loads in this process as it does by default."""
    given, model, optimizer = _by_hand(repeats)
    rows = TensorDataset(torch.from_numpy(given.features), torch.from_numpy(given.labels))
    batches = DataLoader(rows, batch_size=BATCH_SIZE, shuffle=True)
    for _ in range(repeats.count):
        for features, labels in batches:
            _update(model, optimizer, features, labels)
        repeats.end()
    return _test_accuracy(model, given)


def _by_hand(repeats: Repeats) -> tuple[Problem, nn.Module, torch.optim.Optimizer]:
    torch.set_num_threads(repeats.threads)
    torch.manual_seed(0)
    given = problem()
    layers = nn.Linear(INPUTS, HIDDEN_DIM), nn.Linear(HIDDEN_DIM, OUTPUTS)
    _start(list(layers), given)
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1])
    return given, model, torch.optim.SGD(model.parameters(), LR)


def _update(model: nn.Module, optimizer: torch.optim.Optimizer, features: Tensor, labels: Tensor) -> None:
    loss = functional.cross_entropy(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@torch.no_grad()
def _test_accuracy(model: nn.Module, given: Problem) -> dict[str, float]:
    return accuracy(model(torch.from_numpy(given.test_features)).numpy(), given)


@torch.no_grad()
def _start(layers: list[nn.Linear], given: Problem) -> None:
    for layer, weight in zip(layers, given.weights, strict=True):
        layer.weight.copy_(torch.from_numpy(weight).T)
        layer.bias.zero_()


def _dataset(given: Problem) -> Dataset:
    names = tuple(f"x{index}" for index in range(INPUTS))
    classes = tuple(map(str, range(OUTPUTS)))
    return Dataset("teacher", torch.from_numpy(given.all_features), torch.from_numpy(given.all_labels), names, classes)


def _split(given: Problem) -> Split:
    num_train, num_test = len(given.labels), len(given.test_labels)
    return Split(torch.arange(num_train), torch.arange(0), torch.arange(num_train, num_train + num_test))
