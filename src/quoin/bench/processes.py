"""The benchmarks of the group `processes`: a global step on two cores, in two processes of a thread each and in one of
two threads.

The worker is the first of the two processes, and starts the second: `python -m quoin.bench.processes FUNCTION COUNT`.
It waits for the first in every step, so that the clock of the first is that of both.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from quoin.bench.images_problem import LENET
from quoin.bench.images_quoin import make_lenet, run_images
from quoin.bench.language_problem import GPTS
from quoin.bench.language_quoin import run_gpt
from quoin.bench.worker import Repeats
from quoin.runs.launch import end_process
from quoin.train.processes import leave_processes

__all__ = ["gpt_in_one", "gpt_in_two", "lenet_in_one", "lenet_in_two"]

NUM_PROCESSES = 2


class _Unwatched:
    """The repeats of the second process: as many, and nobody asks when each is over."""

    def __init__(self, count: int) -> None:
        self.count, self.threads = count, 1

    def end(self) -> None:
        pass

    def clock(self) -> float:
        return time.perf_counter()


def gpt_in_one(repeats: Any) -> dict[str, float]:
    return run_gpt(repeats, GPTS["small"], compile=False)


def lenet_in_one(repeats: Any) -> dict[str, float]:
    # The layout is given: where it is chosen by the clock, two runs may choose differently.
    return run_images(repeats, LENET, make_lenet(), compile=False, memory_format="channels-last")


def gpt_in_two(repeats: Repeats) -> dict[str, float]:
    return _in_two(repeats, gpt_in_one)


def lenet_in_two(repeats: Repeats) -> dict[str, float]:
    return _in_two(repeats, lenet_in_one)


def _in_two(repeats: Repeats, work: Callable[[Any], dict[str, float]]) -> dict[str, float]:
    with _second_process(work.__name__, repeats.count):
        repeats.threads = 1
        found = work(repeats)
        leave_processes()
    return found


@contextmanager
def _second_process(function: str, count: int) -> Iterator[None]:
    """Inside, this process is the first of two, and the other one calls `function` too."""
    place = {"WORLD_SIZE": str(NUM_PROCESSES), "LOCAL_WORLD_SIZE": str(NUM_PROCESSES), "MASTER_ADDR": "127.0.0.1"}
    place["MASTER_PORT"] = str(_free_port())
    os.environ.update(place, RANK="0", LOCAL_RANK="0")
    second = subprocess.Popen(
        [sys.executable, "-m", "quoin.bench.processes", function, str(count)],
        env=os.environ | {"RANK": "1", "LOCAL_RANK": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield
        if second.wait():
            raise SystemExit(f"the second process ended with {second.returncode}")
    finally:
        second.kill()
        second.wait()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


if __name__ == "__main__":
    {"gpt_in_one": gpt_in_one, "lenet_in_one": lenet_in_one}[sys.argv[1]](_Unwatched(int(sys.argv[2])))
    leave_processes()
    end_process(0)
