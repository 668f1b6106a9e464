"""The task: the small protocol that the trainer drives, whatever is being trained.

A supervised model, two optimizers playing against each other, EM that takes no gradient, a hidden state that is carried
from batch to batch: all are tasks. What drives them knows nothing but these eight names.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from quoin.data import BatchSampler
from quoin.data.data_info import DataInfo
from quoin.display import shown
from quoin.errors import UserError
from quoin.plot import Panel
from quoin.train.processes import gather_lists, num_processes, process_rank, sum_over_processes

__all__ = ["CHECK_EVERY", "MeanMetrics", "Metrics", "NonFiniteLossError", "Task", "check_finite"]

CHECK_EVERY = 50  # steps between checks of a loss that lies on a GPU, where each check stalls the queue

Metrics = dict[str, float]


@runtime_checkable
class Task(Protocol):
    """What the trainer needs of a thing that learns."""

    kind: str  # of learning: what a trained run can do follows from it (`quoin.runs.kinds`)

    @property
    def batches(self) -> BatchSampler:
        """The training rows in order, batch by batch; where it stands is state."""
        ...

    @property
    def data_info(self) -> DataInfo | None:
        """What the data are, so that a run can be read when they are gone; None where there are none."""
        ...

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        """Learn from the training rows of these numbers; give back sums over them: {"loss": ..., ...}."""
        ...

    def evaluate(self, split: str) -> Metrics:
        """Mean metrics over a split: "train", "validation" or "test"; an empty dict where there is no such split."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that must survive a kill. Under "model" stands what prediction needs (`Run.model` looks there for
        the `weights` of the recipe's model and the `scales` of its data), the rest is what training needs."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that `state_dict` gave; strict in names and shapes."""
        ...

    def panels(self) -> Iterable[Panel]:
        """Plots for the report, made one by one."""
        ...


class NonFiniteLossError(UserError):
    """The loss is not a finite number any more. The input was well-formed, so this is a failed run, not a misuse."""

    exit_code = 1


def check_finite(values: Mapping[str, Real[Tensor, ""] | float], when: str) -> None:
    """Raise an error for metrics that are not finite.

    Args:
        when: Where the run stands, for the message, such as "at step 10".
    """
    for name, value in values.items():
        if not math.isfinite(value):
            raise NonFiniteLossError(f"{name} is not finite {when}; try a smaller --lr, or --max-grad-norm 1")


@shown
class MeanMetrics:
    """Sums and counts of per-example values, so that a mean over uneven batches or ranks is exact and nothing is
    padded."""

    def __init__(self) -> None:
        self.sums: dict[str, Tensor | float] = {}
        self.count = 0

    def add(self, values: dict[str, Real[Tensor, ""]], count: int) -> None:
        """Add sums over `count` examples."""
        self.count += count
        for name, value in values.items():
            # In float64: a mean of millions of float32 losses would lose digits. A Python float is one, and on the CPU
            # reading it is free; on a GPU it would stall the queue, so there the sum stays on the device (an Apple GPU
            # has no float64).
            if value.device.type == "cpu":
                number = value.item()
            else:
                number = value.detach() if value.device.type == "mps" else value.detach().double()
            self.sums[name] = number + self.sums.get(name, 0.0)

    @property
    def on_host(self) -> bool:
        """Whether the sums are plain numbers, so that reading them stalls no device."""
        return all(isinstance(value, float) for value in self.sums.values())

    def over_processes(self) -> "MeanMetrics":
        """The sums and counts of all processes, to equal bits in each. Every process calls it, also one that counted
        nothing."""
        if num_processes() == 1:
            return self
        names = list(dict.fromkeys(gather_lists(list(self.sums))))
        own = [float(self.sums.get(name, 0.0)) for name in names]
        count, *sums = sum_over_processes(torch.tensor([self.count, *own], dtype=torch.float64)).tolist()
        found = MeanMetrics()
        found.count, found.sums = int(count), dict(zip(names, sums))
        return found

    def compute(self) -> Metrics:
        """The means of what this process counted; `over_processes().compute()` are those of all."""
        return {name: float(value) / self.count for name, value in self.sums.items()} if self.count else {}

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count, "sums": {name: float(value) for name, value in self.sums.items()}}

    @classmethod
    def of_processes(cls, states: Sequence[Mapping[str, Any]]) -> "MeanMetrics":
        """What this process goes on from, of the states of all; if there were more or fewer, the main one has all of
        it."""
        found, rank = cls(), process_rank()
        mine = states[rank : rank + 1] if len(states) == num_processes() else states if rank == 0 else ()
        for each in mine:
            found.count += each["count"]
            found.sums = {name: value + found.sums.get(name, 0.0) for name, value in each["sums"].items()}
        return found
