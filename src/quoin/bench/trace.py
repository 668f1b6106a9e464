"""The row `trace`: a step of a small network, forward and backward, as it is and with every value and adjoint recorded.

A small one on purpose: recording costs by the operation, and where operations are quick it weighs most.
"""

import torch
from torch import Tensor
from torch.nn import functional

from quoin.autodiff import trace
from quoin.bench.worker import Laps
from quoin.models import MLP

__all__ = ["plain", "traced"]

STEPS = 100  # in a lap
BATCH, SIZES = 64, (64, 128, 10)


def traced(laps: Laps) -> dict[str, float]:
    loss, _, features = _problem(laps)
    for _ in range(laps.count):
        for _ in range(STEPS):
            graph = trace(loss, features)
        laps.end()
    return {"loss": float(graph.output)}


def plain(laps: Laps) -> dict[str, float]:
    loss, model, features = _problem(laps)
    for _ in range(laps.count):
        for _ in range(STEPS):
            model.zero_grad()
            value = loss(features)
            value.backward()
        laps.end()
    return {"loss": float(value)}


def _problem(laps: Laps):
    torch.set_num_threads(laps.threads)
    generator = torch.Generator().manual_seed(0)
    model = MLP(SIZES, generator=generator)
    features, labels = torch.randn(BATCH, SIZES[0], generator=generator), torch.randint(SIZES[-1], (BATCH,), generator=generator)

    def loss(x: Tensor) -> Tensor:
        return functional.cross_entropy(model(x), labels)

    return loss, model, features
