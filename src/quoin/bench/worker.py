"""One implementation in its own process, which lives for the whole benchmark: `python -m quoin.bench.worker MODULE
FUNCTION REPEATS THREADS ...`.

It writes one JSON line after every repeat and waits for a line before the next, so that nothing else runs during a
repeat; the last line holds peak memory and figures. The first repeat carries the imports and the set-up, and starts
without being asked.
"""

import contextlib
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO, TypeVar

__all__ = ["THREADS", "Repeats", "take_cores"]

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # variables that say how many

T = TypeVar("T")


class Repeats:
    """The repeats that an implementation has to run, and the clock that runs only during them."""

    def __init__(self, count: int, threads: int, requests: TextIO, answers: TextIO) -> None:
        self.count, self.threads = count, threads
        self._requests, self._answers = requests, answers
        self._done = 0
        self._paused = 0.0
        self._began = time.perf_counter()

    def timed(self, work: Callable[[], T]) -> T:
        """Run `work` in every repeat and report each; what the last run gave."""
        found = work()
        self.end()
        for _ in range(self.count - 1):
            found = work()
            self.end()
        return found

    def end(self) -> None:
        """A repeat is done: report its seconds, and return when the next may begin."""
        ended = time.perf_counter()
        self.report({"seconds": ended - self._began})
        self._done += 1
        if self._done < self.count and not self._requests.readline():
            raise SystemExit("the runner is gone")
        self._began = time.perf_counter()
        self._paused += self._began - ended

    def clock(self) -> float:
        """Seconds as `time.perf_counter` counts them, less the waiting between repeats."""
        return time.perf_counter() - self._paused

    def report(self, answer: dict) -> None:
        print(json.dumps(answer), file=self._answers, flush=True)


def peak_bytes() -> int:
    """The most memory that this process ever held, or the largest process that it started."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    # Only Linux has it; there, ru_maxrss counts from before exec and so is the runner's.
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return max(children, int(line.split()[1]) * 1024)
    return max(children, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def take_cores(number: int) -> None:
    """Run on so many cores alone: some pools, XLA's among them, ask only how many processors they may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:number])


def main(module: str, function: str, count: str, threads: str, *arguments: str) -> None:
    # A library may print; the answers go where it cannot.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    take_cores(int(threads))
    repeats = Repeats(int(count), int(threads), sys.stdin, answers)
    figures = getattr(importlib.import_module(module), function)(repeats, *arguments)
    repeats.report({"peak_bytes": peak_bytes(), "figures": figures})


if __name__ == "__main__":
    main(*sys.argv[1:])
