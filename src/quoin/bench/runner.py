"""Run a benchmark: every implementation in a worker of its own, asked in turn for one repeat, in a new order every
time.

All workers have the same number of threads and only one works at a time, so what disturbs a repeat disturbs that of
every implementation.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from quoin.bench.benchmark import Benchmark, Implementation, missing_packages
from quoin.bench.measurement import Measurement
from quoin.bench.result import BenchmarkResult
from quoin.bench.worker import THREADS
from quoin.errors import UserError
from quoin.processor import num_cores

__all__ = ["run_benchmark"]

# Threads of the one before may spin for a while after their work; in a fixed order it would always be the same one who
# pays.
REST = 0.2  # seconds before each repeat


class _Failed(Exception):
    """A worker ended before its work did; the text is the last that it printed."""


class _Worker:
    """The process of one implementation, from this side of the pipe."""

    def __init__(self, implementation: Implementation, num_repeats: int, threads: int, directory: Path) -> None:
        self.implementation = implementation
        self.seconds: list[float] = []
        self._log = directory / "log"
        settings = dict.fromkeys(THREADS, str(threads)) | {"KERAS_HOME": str(directory), "TMPDIR": str(directory)}
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "quoin.bench.worker", implementation.module, implementation.function),
                    *(str(num_repeats), str(threads), *implementation.arguments),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | settings | dict(implementation.environment),
            )

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            printed = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
            raise _Failed(next((text.strip() for text in reversed(printed) if text.strip()), "it ended without a word"))
        return json.loads(line)

    def repeat(self) -> float:
        """Let it run one repeat; its seconds."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it is gone: the missing answer is explained there
            print("go", file=self._process.stdin, flush=True)
        return self.answer()["seconds"]

    def stop(self) -> None:
        self._process.kill()
        with self._process:  # closes the pipes and waits
            pass


def run_benchmark(
    benchmark: Benchmark, *, num_repeats: int, on_progress: Callable[[str], None] = lambda text: None
) -> BenchmarkResult:
    """Time `num_repeats` repeats of every implementation of `benchmark`; one that is not installed, or fails, is named
    in its place.
    """
    if num_repeats < 1:
        raise UserError(
            f"expected one repeat or more, got {num_repeats}; leave --num-repeats out for the benchmark's own number"
        )
    threads = min(benchmark.threads, num_cores())
    measurements = {
        each.name: Measurement(each.name, absent=missing_packages(each)) for each in benchmark.implementations
    }
    with ExitStack() as stack:
        workers = []
        for each in benchmark.implementations:
            if measurements[each.name].absent:
                on_progress(f"{benchmark.name}: {each.name} is {measurements[each.name].absent}")
                continue
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="quoin-bench-")))
            workers.append(_Worker(each, benchmark.num_warmup + num_repeats, threads, directory))
            stack.callback(workers[-1].stop)

        def attempt(worker: _Worker, work: Callable[[], Any]) -> Any:
            """What `work` gives; a worker that fails leaves the race, and the others go on."""
            try:
                return work()
            except _Failed as failed:
                name = worker.implementation.name
                measurements[name] = Measurement(name, absent=f"failed: {failed}")
                on_progress(f"{benchmark.name}: {name} {measurements[name].absent}")
                workers.remove(worker)

        for worker in list(workers):  # set-ups may overlap: nothing is timed yet
            attempt(worker, worker.answer)
        # The first repeat of the warm-up is behind; those that count start at 1.
        for number in range(2 - benchmark.num_warmup, num_repeats + 1):
            for worker in random.Random(number).sample(workers, len(workers)):
                time.sleep(REST)
                seconds = attempt(worker, worker.repeat)
                if number > 0 and seconds is not None:
                    worker.seconds.append(seconds)
            if number > 0:
                repeats = "  ".join(f"{each.implementation.name} {each.seconds[-1]:.3f} s" for each in workers)
                on_progress(f"{benchmark.name}: repeat {number} of {num_repeats}  {repeats}")
        for worker in list(workers):
            last = attempt(worker, worker.answer)
            if last is not None:
                name = worker.implementation.name
                measurements[name] = Measurement(name, tuple(worker.seconds), last["peak_bytes"], last["figures"])
    return BenchmarkResult(
        benchmark.name,
        benchmark.title,
        threads,
        tuple(measurements.values()),
        tuple(each.target for each in benchmark.implementations),
    )
