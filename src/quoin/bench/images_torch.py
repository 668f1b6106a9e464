"""The benchmarks on images, on plain torch: networks and loop as one writes them by hand, eager, with channels first
and last.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from quoin.bench.images_problem import CLASSES, LENET, LR, MOMENTUM, RESNET, Work, accuracy
from quoin.bench.worker import Repeats

__all__ = ["lenet_channels_last", "lenet_eager", "resnet_channels_last", "resnet_eager"]


def lenet_eager(repeats: Repeats) -> dict[str, float]:
    return _run(repeats, LENET, _lenet(), torch.contiguous_format)


def lenet_channels_last(repeats: Repeats) -> dict[str, float]:
    return _run(repeats, LENET, _lenet(), torch.channels_last)


def resnet_eager(repeats: Repeats) -> dict[str, float]:
    return _run(repeats, RESNET, _resnet(), torch.contiguous_format)


def resnet_channels_last(repeats: Repeats) -> dict[str, float]:
    return _run(repeats, RESNET, _resnet(), torch.channels_last)


def _run(repeats: Repeats, work: Work, model: nn.Module, memory_format: torch.memory_format) -> dict[str, float]:
    """Batches by index from tensors in memory, and nothing that the update does not need."""
    torch.set_num_threads(repeats.threads)
    given = work.images()
    model = model.to(memory_format=memory_format)  # pyright: ignore[reportCallIssue]
    features, labels = torch.from_numpy(given.features), torch.from_numpy(given.labels)
    optimizer = torch.optim.SGD(model.parameters(), LR, momentum=MOMENTUM)
    for _ in range(repeats.count):
        for rows in torch.randperm(len(labels)).split(work.batch_size):
            batch = features.index_select(0, rows).contiguous(memory_format=memory_format)
            loss = functional.cross_entropy(model(batch), labels.index_select(0, rows))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        repeats.end()
    model.eval()
    with torch.no_grad():
        return accuracy(model(torch.from_numpy(given.test_features)).numpy(), given)


def _lenet() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, CLASSES),
    )  # fmt: skip


def _resnet() -> nn.Module:
    torch.manual_seed(0)
    stages = ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2))
    blocks = [
        block
        for inputs, outputs, stride in stages
        for block in (_Block(inputs, outputs, stride), _Block(outputs, outputs, 1))
    ]
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES)
    return nn.Sequential(nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), *blocks, *head)


class _Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        changes = stride != 1 or inputs != outputs
        projection = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = projection if changes else nn.Identity()

    def forward(
        self, x: Float[Tensor, "batch in_channels height width"]
    ) -> Float[Tensor, "batch out_channels out_height out_width"]:
        h = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(h)) + self.shortcut(x))
