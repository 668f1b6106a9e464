"""Run a row: every contestant in a worker of its own, asked in turn, one lap each a round, in a new order every round.

All workers have the same number of threads and only one works at a time, so what disturbs one round disturbs all its sides.
"""

import importlib.util
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

from quoin.bench.measured import Measured, Side
from quoin.bench.row import Contestant, Row
from quoin.errors import Mistake

__all__ = ["run_row"]

# Threads of the one before may spin for a while after their work; in a fixed order it would always be the same one who pays.
REST = 0.2  # seconds before each lap

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class _Failed(Exception):
    """A worker ended before its work did; the text is the last that it said."""


class _Worker:
    """The process of one contestant, from this side of the pipe."""

    def __init__(self, contestant: Contestant, laps: int, threads: int, home: Path) -> None:
        self.contestant = contestant
        self.seconds: list[float] = []
        self._log = home / "log"
        settings = dict.fromkeys(_THREADS, str(threads)) | {"KERAS_HOME": str(home), "TMPDIR": str(home)}
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "quoin.bench.worker", contestant.module, contestant.function),
                    *(str(laps), str(threads), *contestant.arguments),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | settings | dict(contestant.environment),
            )

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            said = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
            raise _Failed(next((text.strip() for text in reversed(said) if text.strip()), "it ended without a word"))
        return json.loads(line)

    def lap(self) -> float:
        """Let it run one lap; its seconds."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it is gone: the missing answer tells why
            print("go", file=self._process.stdin, flush=True)
        return self.answer()["seconds"]

    def stop(self) -> None:
        self._process.kill()
        with self._process:  # closes the pipes and waits
            pass


def run_row(row: Row, *, rounds: int, tell: Callable[[str], None] = lambda text: None) -> Measured:
    """Time `rounds` laps of every contestant of `row`; one that is not installed, or fails, is named in its place."""
    if rounds < 1:
        raise Mistake(f"expected one round or more, came {rounds}; leave --rounds out to run as many as the row says")
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = min(row.threads, available)
    sides = {each.name: Side(each.name, absent=_missing(each)) for each in row.contestants}
    with ExitStack() as stack:
        workers = []
        for each in row.contestants:
            if sides[each.name].absent:
                tell(f"{row.name}: {each.name} is {sides[each.name].absent}")
                continue
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="quoin-bench-")))
            workers.append(_Worker(each, row.warm_up + rounds, threads, home))
            stack.callback(workers[-1].stop)

        def attempt(worker: _Worker, work: Callable[[], Any]) -> Any:
            """What `work` gives; a worker that fails leaves the race, and the others go on."""
            try:
                return work()
            except _Failed as failed:
                name = worker.contestant.name
                sides[name] = Side(name, absent=f"failed: {failed}")
                tell(f"{row.name}: {name} {sides[name].absent}")
                workers.remove(worker)

        for worker in list(workers):  # set-ups may overlap: nothing is timed yet
            attempt(worker, worker.answer)
        for number in range(2 - row.warm_up, rounds + 1):  # the first lap of the warm-up is behind; rounds that count start at 1
            for worker in random.Random(number).sample(workers, len(workers)):
                time.sleep(REST)
                seconds = attempt(worker, worker.lap)
                if number > 0 and seconds is not None:
                    worker.seconds.append(seconds)
            if number > 0:
                laps = "  ".join(f"{each.contestant.name} {each.seconds[-1]:.3f} s" for each in workers)
                tell(f"{row.name}: round {number} of {rounds}  {laps}")
        for worker in list(workers):
            last = attempt(worker, worker.answer)
            if last is not None:
                name = worker.contestant.name
                sides[name] = Side(name, tuple(worker.seconds), last["peak_bytes"], last["figures"])
    return Measured(row.name, row.title, threads, tuple(sides.values()), tuple(each.target for each in row.contestants))


def _missing(contestant: Contestant) -> str:
    missing = [name for name in contestant.needs if importlib.util.find_spec(name) is None]
    return f"not installed: pip install {' '.join(missing)}" if missing else ""
