"""How long a step takes: a roofline over its kernels, at rates that are given or measured here.

A kernel takes as long as its operations at the rate of products, or its bytes at the bandwidth, whichever is longer; a
step is the sum of its kernels. On another machine the two rates are given. On this one each kernel is timed at its own
size where that takes no longer than a moment, for small products reach a fraction of the rate of large ones; the rest
takes the rates of one large product and one large copy. To the kernels comes what Python and autograd take between
them, by a small network.
"""

import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from quoin.callbacks import current_listener
from quoin.runs.plan_count import Operation, StepCounter
from quoin.runs.plan_kernels import best_time, is_known, kernel_time

__all__ = ["Rates", "StepTime", "measure_rates", "step_time"]

LARGEST_TIMED = 2**28  # bytes of a kernel, beyond which its time is computed and not measured
MOST_TIMED = 3.0  # seconds for timing kernels
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Rates:
    """What a machine can do: operations and bytes a second, and seconds between two kernels."""

    flops: float
    bandwidth: float
    overhead: float = 0.0
    device: str = ""  # where kernels can be timed; empty for a machine that is not this one


@dataclass(frozen=True)
class StepTime:
    """Seconds of a step, and of what: kernels bound by operations, by memory, and the time between kernels."""

    total: float
    in_products: float
    in_memory: float
    in_overhead: float
    is_timed: bool  # whether kernels were timed at their own sizes

    @property
    def bound(self) -> str:
        """What takes the most of it."""
        return max(
            ("operations", self.in_products), ("memory", self.in_memory), ("overhead", self.in_overhead),
            key=lambda each: each[1],
        )[0]  # fmt: skip


def step_time(operations: Mapping[Operation, float], rates: Rates, *, cold: bool = False) -> StepTime:
    """The roofline over the kernels of a step.

    On a GPU kernels wait in a queue while the next are called, so that the time between them is hidden by them.

    Args:
        cold: Whether kernels that are timed find their tensors out of the processor's cache (`kernel_time`).
    """
    seconds = {"products": 0.0, "memory": 0.0}
    is_timed, deadline = False, time.perf_counter() + MOST_TIMED
    # Those that matter most first, for the time is limited.
    ordered = sorted(operations, key=lambda each: -operations[each] * _roofline(each, rates))
    with current_listener().progress("timing kernels") as tell:
        for number, each in enumerate(ordered):
            found = None
            may_be_timed = bool(rates.device) and each.kernel is not None and each.num_bytes <= LARGEST_TIMED
            if may_be_timed and (time.perf_counter() < deadline or is_known(each.kernel, rates.device, cold=cold)):
                found = kernel_time(each.kernel, rates.device, cold=cold)
                is_timed = is_timed or found is not None
            kind = "products" if each.flops / rates.flops >= each.num_bytes / rates.bandwidth else "memory"
            seconds[kind] += operations[each] * (_roofline(each, rates) if found is None else found)
            tell(number + 1, len(ordered))
    overhead = rates.overhead * sum(operations.values())
    busy = sum(seconds.values())
    if rates.device.startswith("cuda"):
        overhead = max(0.0, overhead - busy)
    return StepTime(busy + overhead, seconds["products"], seconds["memory"], overhead, is_timed)


def _roofline(operation: Operation, rates: Rates) -> float:
    return max(operation.flops / rates.flops, operation.num_bytes / rates.bandwidth)


@functools.cache
def measure_rates(device: str = "cpu", precision: str = "float32", num_threads: int = 0) -> Rates:
    """The rates of this machine, measured within a second or two: of a product of two matrices, of a copy, and the
    time between the kernels of a small network. Kept for the life of the process."""
    side, length = (1024, 2**24) if device == "cpu" else (8192, 2**28)
    matrix = torch.randn(side, side, device=device, dtype=DTYPES[precision])
    vector, place = torch.zeros(length, device=device), torch.zeros(length, device=device)
    product = best_time(lambda: matrix @ matrix, device, repeats=10)
    copy = best_time(lambda: place.copy_(vector), device)
    return Rates(2 * side**3 / product, 2 * vector.nbytes / copy, _overhead(device), device)


def _overhead(device: str) -> float:
    """Seconds between two kernels, in Python and autograd: of a small network, what its kernels do not take."""
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).to(device)
    x, y = torch.randn(4, 8, device=device), torch.zeros(4, dtype=torch.long, device=device)

    def step() -> None:
        nn.functional.cross_entropy(net(x), y).backward()

    counter = StepCounter()
    with counter:
        step()
    whole = best_time(step, device, repeats=30)
    kernels = sum(count * (kernel_time(each.kernel, device) or 0.0) for each, count in counter.operations.items())
    return max(0.0, whole - kernels) / counter.operations.total()
