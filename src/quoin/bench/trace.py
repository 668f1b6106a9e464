"""The benchmark `trace`: a step of a small network, forward and backward, as it is and with every value and adjoint
recorded.

A small one on purpose: recording costs by the operation, and where operations are quick it weighs most.
"""

import torch
from torch import Tensor
from torch.nn import functional

from quoin.autodiff import Graph, trace
from quoin.bench.worker import Repeats
from quoin.models import MLP

__all__ = ["plain", "traced"]

NUM_STEPS = 100  # in a repeat
BATCH_SIZE, SIZES = 64, (64, 128, 10)


def traced(repeats: Repeats) -> dict[str, float]:
    loss, _, features = _problem(repeats)

    def steps() -> Graph:
        graph = None
        for _ in range(NUM_STEPS):
            graph = trace(loss, features)
        assert graph is not None
        return graph

    return {"loss": float(repeats.timed(steps).output)}


def plain(repeats: Repeats) -> dict[str, float]:
    loss, model, features = _problem(repeats)

    def steps() -> Tensor:
        value = None
        for _ in range(NUM_STEPS):
            model.zero_grad()
            value = loss(features)
            value.backward()
        assert value is not None
        return value

    return {"loss": float(repeats.timed(steps))}


def _problem(repeats: Repeats):
    torch.set_num_threads(repeats.threads)
    generator = torch.Generator().manual_seed(0)
    model = MLP(SIZES, generator=generator)
    features, labels = (
        torch.randn(BATCH_SIZE, SIZES[0], generator=generator),
        torch.randint(SIZES[-1], (BATCH_SIZE,), generator=generator),
    )

    def loss(x: Tensor) -> Tensor:
        return functional.cross_entropy(model(x), labels)

    return loss, model, features
