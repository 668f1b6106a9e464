"""The task: the small protocol that the loop drives, whatever is being trained.

A supervised model, two optimisers playing against each other, EM that takes no gradient, a hidden state that is carried from batch
to batch: all are tasks. What drives them knows nothing but these eight names.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from torch import Tensor

from quoin.data import Batches
from quoin.errors import Mistake
from quoin.plot import Panel

__all__ = ["LOOK_EVERY", "DataFacts", "Diverged", "Metrics", "Task", "Totals", "check_finite"]

LOOK_EVERY = 50  # steps between looks at a loss that lies on a GPU, where each look stalls the queue

Metrics = dict[str, float]


class DataFacts(Protocol):
    """What a run remembers of its data, whatever they are."""

    @property
    def fingerprint(self) -> str: ...

    def as_json(self) -> dict[str, Any]: ...


class Task(Protocol):
    """What the loop needs of a thing that learns."""

    batches: Batches
    kind: str  # of learning: what a trained run can do follows from it (`quoin.runs.kinds`)

    @property
    def facts(self) -> DataFacts | None:
        """What the data are, so that a run can be read when they are gone; None where there are none."""
        ...

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        """Learn from the training rows of these numbers; give back sums over them: {"loss": ..., ...}."""
        ...

    def evaluate(self, part: str) -> Metrics:
        """Means over a part of the data: "train", "validation" or "test"; an empty dict where there is no such part."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything that must survive a kill. Under "model" stands what prediction needs (`Run.model` looks there for the `weights`
        of the recipe's model and the `scales` of its data), the rest is what training needs."""
        ...

    def load(self, state: dict[str, Any]) -> None:
        """Take up a state that `state` gave; strict in names and shapes."""
        ...

    def panels(self) -> Iterable[Panel]:
        """Pictures for the report, drawn one by one."""
        ...


class Diverged(Mistake):
    """The loss is not a finite number any more. The input was well-formed, so this is a failed run, not a misuse."""

    exit_code = 1


def check_finite(values: Mapping[str, Tensor | float], when: str) -> None:
    """Refuse metrics that are not finite."""
    for name, value in values.items():
        if not math.isfinite(value):
            raise Diverged(f"{name} is not finite {when}; try a smaller --lr, or --clip 1")


class Totals:
    """Sums and counts of per-example values, so that a mean over uneven batches or ranks is exact and nothing is padded."""

    def __init__(self) -> None:
        self.sums: dict[str, Tensor | float] = {}
        self.count = 0

    def add(self, values: dict[str, Tensor], count: int) -> None:
        """Add sums over `count` examples."""
        self.count += count
        for name, value in values.items():
            # In float64: a mean of millions of float32 losses would lose digits. A Python float is one, and on the CPU reading it
            # is free; on a GPU it would stall the queue, so there the sum stays on the device (an Apple GPU has no float64).
            if value.device.type == "cpu":
                number = value.item()
            else:
                number = value.detach() if value.device.type == "mps" else value.detach().double()
            self.sums[name] = number + self.sums.get(name, 0.0)

    @property
    def on_host(self) -> bool:
        """Whether the sums are plain numbers, so that looking at them stalls no device."""
        return all(isinstance(value, float) for value in self.sums.values())

    def means(self) -> Metrics:
        return {name: float(value) / self.count for name, value in self.sums.items()} if self.count else {}

    def state(self) -> dict[str, Any]:
        return {"count": self.count, "sums": dict(self.sums)}

    def load(self, state: dict[str, Any]) -> None:
        self.count, self.sums = state["count"], dict(state["sums"])
