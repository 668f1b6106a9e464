"""The benchmarks on images, on Quoin: the step of every image recipe, in the layout that it chooses for itself, and
compiled.
"""

import torch
from torch import nn

from quoin.bench.images_problem import CLASSES, LENET, LR, MOMENTUM, RESNET, Images, Work, accuracy
from quoin.bench.worker import Repeats
from quoin.data import Dataset, Split, prepare
from quoin.losses import cross_entropy
from quoin.models import cifar_resnet18, lenet
from quoin.tasks.memory_format import choose_memory_format
from quoin.tasks.supervised import Classification
from quoin.train import setup_device

__all__ = ["lenet_compiled", "lenet_quoin", "make_lenet", "resnet_compiled", "resnet_quoin", "run_images"]

LONG = 10_000  # epochs of the run that the repeats are the beginning of: one that is worth choosing a layout for


def lenet_quoin(repeats: Repeats) -> dict[str, float]:
    return run_images(repeats, LENET, make_lenet(), compile=False)


def lenet_compiled(repeats: Repeats) -> dict[str, float]:
    return run_images(repeats, LENET, make_lenet(), compile=True)


def resnet_quoin(repeats: Repeats) -> dict[str, float]:
    return run_images(repeats, RESNET, _resnet(), compile=False)


def resnet_compiled(repeats: Repeats) -> dict[str, float]:
    return run_images(repeats, RESNET, _resnet(), compile=True)


def make_lenet() -> nn.Module:
    """LeNet with weights that are the same in every process."""
    return lenet(LENET.image_shape, CLASSES, generator=torch.Generator().manual_seed(0))


def _resnet() -> nn.Module:
    return cifar_resnet18(CLASSES, generator=torch.Generator().manual_seed(0))


def run_images(
    repeats: Repeats, work: Work, model: nn.Module, *, compile: bool, memory_format: str = "auto"
) -> dict[str, float]:
    """The steps of a network, in one of several processes too."""
    device_context, remarks = setup_device("cpu", threads=repeats.threads, compile=compile)
    if device_context.compile != compile:
        raise SystemExit(remarks[0])
    given = work.images()
    data = prepare(_dataset(given), _split(given))
    sgd = torch.optim.SGD(model.parameters(), LR, momentum=MOMENTUM)
    task = Classification(
        model, cross_entropy, sgd, data, batch_size=work.batch_size, epochs=LONG, seed=0, device_context=device_context
    )
    memory_format, _ = choose_memory_format(task, memory_format)
    for _ in range(repeats.count):
        for rows in task.batches:
            task.step(rows)
        repeats.end()
    return accuracy(task.predict_split("test").numpy(), given) | {
        "channels last": float(memory_format == "channels-last")
    }


def _dataset(given: Images) -> Dataset:
    features = torch.from_numpy(given.features), torch.from_numpy(given.test_features)
    targets = torch.from_numpy(given.labels), torch.from_numpy(given.test_labels)
    names = tuple(f"x{index}" for index in range(given.features[0].size))
    return Dataset("patterns", torch.cat(features), torch.cat(targets), names, tuple(map(str, range(CLASSES))))


def _split(given: Images) -> Split:
    num_train, num_test = len(given.labels), len(given.test_labels)
    return Split(torch.arange(num_train), torch.arange(0), torch.arange(num_train, num_train + num_test))
