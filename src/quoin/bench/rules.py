"""The row `rules`: the definitions of the update rules beside torch.optim's loops, on the parameters of an MLP 784-256-10.

Gradients are random and ready, so that only moving is timed. The definitions make new tensors where torch works in place.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from quoin.bench.worker import Laps
from quoin.optim import Adam, AdamW, GradientDescent, Momentum, Nesterov, RMSProp

__all__ = ["definitions", "fused", "rule_by_rule", "unfused"]

STEPS = 100  # of each rule in a lap
SHAPES = ((256, 784), (256,), (10, 256), (10,))
PAIRS: tuple[tuple[Any, Callable[..., torch.optim.Optimizer], dict[str, Any]], ...] = (
    (GradientDescent(0.01), torch.optim.SGD, {"lr": 0.01}),
    (Momentum(0.01, 0.9), torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}),
    (Nesterov(0.01, 0.9), torch.optim.SGD, {"lr": 0.01, "momentum": 0.9, "nesterov": True}),
    (RMSProp(0.01), torch.optim.RMSprop, {"lr": 0.01}),
    (Adam(0.01), torch.optim.Adam, {"lr": 0.01}),
    (AdamW(0.01), torch.optim.AdamW, {"lr": 0.01}),
)


def definitions(laps: Laps) -> dict[str, float]:
    return _run(laps, [_definition(rule) for rule, _, _ in PAIRS])


def unfused(laps: Laps) -> dict[str, float]:
    return _run(laps, [_torch(optimiser, {**given, "foreach": False}) for _, optimiser, given in PAIRS])


def fused(laps: Laps) -> dict[str, float]:
    """One kernel a step, where torch has one; it has none for RMSprop, which takes its default there."""
    settings = [given if optimiser is torch.optim.RMSprop else {**given, "fused": True} for _, optimiser, given in PAIRS]
    return _run(laps, [_torch(optimiser, given) for (_, optimiser, _), given in zip(PAIRS, settings)])


def rule_by_rule(laps: Laps) -> dict[str, float]:
    """Both forms of each rule in turn; the figure is the median ratio of their times, for the rule where it is largest."""
    torch.set_num_threads(laps.threads)
    sides = [(_definition(rule), _torch(optimiser, {**given, "foreach": False})) for rule, optimiser, given in PAIRS]
    ratios: list[list[float]] = [[] for _ in PAIRS]
    for _ in range(laps.count):
        for found, (ours, theirs) in zip(ratios, sides):
            found.append(_seconds(ours) / _seconds(theirs))
        laps.end()
    return {"slowest rule": max(statistics.median(found) for found in ratios)}


def _definition(rule: Any) -> Callable[[], Tensor]:
    """100 steps of `rule` from where it stands; gives the first parameter."""
    points, slopes = _problem()
    states = [rule.start(x) for x in points]

    def steps() -> Tensor:
        for _ in range(STEPS):
            for i, slope in enumerate(slopes):
                points[i], states[i] = rule.step(points[i], slope, states[i])
        return points[0]

    return steps


def _torch(optimiser: Callable[..., torch.optim.Optimizer], given: dict[str, Any]) -> Callable[[], Tensor]:
    points, slopes = _problem()
    for x, slope in zip(points, slopes):
        x.requires_grad_().grad = slope
    peer = optimiser(points, **given)

    def steps() -> Tensor:
        for _ in range(STEPS):
            peer.step()
        return points[0]

    return steps


def _run(laps: Laps, sides: list[Callable[[], Tensor]]) -> dict[str, float]:
    torch.set_num_threads(laps.threads)
    for _ in range(laps.count):
        ends = [steps() for steps in sides]
        laps.end()
    return {"mean size": float(torch.stack([end.detach().abs().mean() for end in ends]).mean())}  # the same for all, if all do the same


def _problem() -> tuple[list[Tensor], list[Tensor]]:
    generator = torch.Generator().manual_seed(0)
    points, slopes = ([torch.randn(shape, generator=generator) for shape in SHAPES] for _ in range(2))
    return points, slopes


def _seconds(steps: Callable[[], Tensor]) -> float:
    start = time.perf_counter()
    steps()
    return time.perf_counter() - start
