"""The work of the benchmarks `attention`: 8 heads of head_dim 64, one sequence of n positions in float32, forward alone
or with its backward pass.

A repeat is `calls_per_repeat(n)` calls. The first repeat of an implementation sets up and no more: workers set up side
by side, and side by side the work of the longest sequences would not fit into memory.
"""

import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from quoin.bench.attention_benchmarks import calls_per_repeat
from quoin.bench.worker import Repeats, peak_bytes
from quoin.train import keep_freed_memory

__all__ = ["HEAD_DIM", "NUM_FEATURES", "NUM_HEADS", "time_attention"]

NUM_HEADS, HEAD_DIM, NUM_FEATURES = 8, 64, 256
LOOKED_AT = 16  # the last queries, whose outputs are held against exact attention

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def time_attention(repeats: Repeats, length: str, work: str, attend: Attend, *, causal: bool) -> dict[str, float]:
    """Repeats of `attend` on three tensors (1, heads, n, head_dim) of normal numbers; `work` is "forward" or
    "training".

    Queries and keys have the deviation 1/2: at 1 no affordable number of random features estimates their softmax.

    Every implementation keeps the memory it frees: otherwise what is measured of long sequences is how fast the system
    clears pages.

    The figures: how many MiB the process grew by at its most, inputs included, and how far the output is from exact
    attention.
    """
    assert work in ("forward", "training"), work
    torch.set_num_threads(repeats.threads)
    keep_freed_memory()
    before = _resident_bytes()
    n = int(length)
    generator = torch.Generator().manual_seed(0)
    query, key, value, output_gradient = (torch.randn(1, NUM_HEADS, n, HEAD_DIM, generator=generator) for _ in range(4))
    query, key = query.mul_(0.5), key.mul_(0.5)
    with torch.set_grad_enabled(work == "training"):
        for each in (query, key, value):
            each.requires_grad_(work == "training")
        output = torch.empty(0)  # until the first call
        repeats.end()
        for _ in range(repeats.count - 1):
            for _ in range(calls_per_repeat(n)):
                output = attend(query, key, value)
                if work == "training":
                    for each in (query, key, value):
                        each.grad = None
                    output.backward(output_gradient)
            repeats.end()
    grown = (peak_bytes() - before) / 2**20
    return {"MiB": grown, "relative error": _off_exact(output, query, key, value, causal)}


@torch.no_grad()
def _off_exact(output: Tensor, query: Tensor, key: Tensor, value: Tensor, causal: bool) -> float:
    """‖output - exact‖ / ‖exact‖ over the last queries."""
    n = query.shape[2]
    scores = query[:, :, -LOOKED_AT:] @ key.mT / math.sqrt(HEAD_DIM)
    if causal:
        last = torch.arange(n - min(LOOKED_AT, n), n)
        scores = scores.masked_fill(torch.arange(n) > last[:, None], -math.inf)
    exact = scores.softmax(-1) @ value
    return float((output[:, :, -LOOKED_AT:] - exact).norm() / exact.norm())


def _resident_bytes() -> int:
    """What the process holds now; where the system does not report it, what it held at its most so far."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return peak_bytes()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), 0)
