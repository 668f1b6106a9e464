"""The benchmarks of the group `processes`: what it costs to share a step out over processes. Imports no torch."""

from quoin.bench.benchmark import Benchmark, Implementation
from quoin.bench.targets import RatioAtLeast

__all__ = ["PROCESSES_BENCHMARKS"]

_PROCESSES = "quoin.bench.processes"
_QUIET = (("TORCH_CPP_LOG_LEVEL", "ERROR"),)  # DDP remarks on what it was told to look for
MOST = 1.15  # times a step in one process with as many threads


def _steps(network: str, title: str, *, num_repeats: int) -> Benchmark:
    return Benchmark(
        f"processes-{network}",
        f"{title}, on two cores: a thread in each of two processes, and two threads in one",
        (
            Implementation("two processes", _PROCESSES, f"{network}_in_two", environment=_QUIET),
            Implementation("one process", _PROCESSES, f"{network}_in_one", RatioAtLeast(1 / MOST)),
        ),
        num_repeats=num_repeats,
        group="processes",
    )


PROCESSES_BENCHMARKS = (
    _steps("gpt", "20 training steps of the benchmark gpt-small", num_repeats=9),
    _steps("lenet", "40 training steps of the benchmark lenet-28, channels last", num_repeats=9),
)
