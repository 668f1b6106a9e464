"""The benchmark `rules`: the definitions of the update rules beside torch.optim's loops, on the parameters of an MLP
784-256-10.

Gradients are random and ready, so that only the optimizer step is timed. The definitions make new tensors where torch
works in place.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from quoin.bench.worker import Repeats
from quoin.optim import Adam, AdamW, GradientDescent, Momentum, Nesterov, RMSProp

__all__ = ["definitions", "fused", "rule_by_rule", "unfused"]

NUM_STEPS = 100  # of each rule in a repeat
SHAPES = ((256, 784), (256,), (10, 256), (10,))
PAIRS: tuple[tuple[Any, Callable[..., torch.optim.Optimizer], dict[str, Any]], ...] = (
    (GradientDescent(0.01), torch.optim.SGD, {"lr": 0.01}),
    (Momentum(0.01, 0.9), torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}),
    (Nesterov(0.01, 0.9), torch.optim.SGD, {"lr": 0.01, "momentum": 0.9, "nesterov": True}),
    (RMSProp(0.01), torch.optim.RMSprop, {"lr": 0.01}),
    (Adam(0.01), torch.optim.Adam, {"lr": 0.01}),
    (AdamW(0.01), torch.optim.AdamW, {"lr": 0.01}),
)


def definitions(repeats: Repeats) -> dict[str, float]:
    return _run(repeats, [_definition(rule) for rule, _, _ in PAIRS])


def unfused(repeats: Repeats) -> dict[str, float]:
    return _run(repeats, [_torch(optimizer, {**given, "foreach": False}) for _, optimizer, given in PAIRS])


def fused(repeats: Repeats) -> dict[str, float]:
    """One kernel a step, where torch has one; it has none for RMSprop, which takes its default there."""
    settings = [
        given if optimizer is torch.optim.RMSprop else {**given, "fused": True} for _, optimizer, given in PAIRS
    ]
    return _run(repeats, [_torch(optimizer, given) for (_, optimizer, _), given in zip(PAIRS, settings)])


def rule_by_rule(repeats: Repeats) -> dict[str, float]:
    """Both forms of each rule in turn; the figure is the median ratio of their times, for the rule where it is
    largest."""
    torch.set_num_threads(repeats.threads)
    implementations = [
        (_definition(rule), _torch(optimizer, {**given, "foreach": False})) for rule, optimizer, given in PAIRS
    ]
    ratios: list[list[float]] = [[] for _ in PAIRS]
    for _ in range(repeats.count):
        for found, (ours, theirs) in zip(ratios, implementations):
            found.append(_seconds(ours) / _seconds(theirs))
        repeats.end()
    return {"slowest rule": max(statistics.median(found) for found in ratios)}


def _definition(rule: Any) -> Callable[[], Tensor]:
    """100 steps of `rule` from where it stands; gives the first parameter."""
    points, gradients = _problem()
    states = [rule.init(x) for x in points]

    def steps() -> Tensor:
        for _ in range(NUM_STEPS):
            for i, gradient in enumerate(gradients):
                points[i], states[i] = rule.step(points[i], gradient, states[i])
        return points[0]

    return steps


def _torch(optimizer: Callable[..., torch.optim.Optimizer], given: dict[str, Any]) -> Callable[[], Tensor]:
    points, gradients = _problem()
    for x, gradient in zip(points, gradients):
        x.requires_grad_().grad = gradient
    peer = optimizer(points, **given)

    def steps() -> Tensor:
        for _ in range(NUM_STEPS):
            peer.step()
        return points[0]

    return steps


def _run(repeats: Repeats, implementations: list[Callable[[], Tensor]]) -> dict[str, float]:
    torch.set_num_threads(repeats.threads)
    ends = repeats.timed(lambda: [steps() for steps in implementations])
    return {
        "mean size": float(torch.stack([end.detach().abs().mean() for end in ends]).mean())
    }  # the same for all, if all do the same


def _problem() -> tuple[list[Tensor], list[Tensor]]:
    generator = torch.Generator().manual_seed(0)
    points, gradients = ([torch.randn(shape, generator=generator) for shape in SHAPES] for _ in range(2))
    return points, gradients


def _seconds(steps: Callable[[], Tensor]) -> float:
    start = time.perf_counter()
    steps()
    return time.perf_counter() - start
