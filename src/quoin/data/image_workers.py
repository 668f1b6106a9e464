"""Processes that decode pictures side by side, from the parent's side of the pipes.

Started as commands of their own, not by multiprocessing: nothing of the caller's main module is imported again, so that
scripts need no guard, notebooks work, and no thread of torch is forked.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from quoin.errors import UserError
from quoin.processor import num_cores

__all__ = ["CHUNK", "ImageWorkers", "num_workers"]

CHUNK = 32  # pictures of one job


def num_workers(num_images: int) -> int:
    """As many as there are processors to use, and no more than there are jobs."""
    return max(1, min(num_cores(), -(-num_images // CHUNK)))


class ImageWorkers:
    """A context that holds `count` such processes, and ends them."""

    def __init__(self, count: int) -> None:
        path = os.pathsep.join(entry for entry in sys.path if entry)
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", "quoin.data.image_decoding"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=os.environ | {"PYTHONPATH": path},
            )
            for _ in range(count)
        ]
        self._idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        for process in self._processes:
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(count)

    def __enter__(self) -> "ImageWorkers":
        return self

    def __exit__(self, *raised: object) -> None:
        for process in self._processes:
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            with suppress(BrokenPipeError), process:  # closes the pipes and waits
                pass

    def map(self, jobs: Sequence[dict[str, Any]]) -> Iterator[tuple[int, list[Any]]]:
        """The number of each job with its answer, in the order in which they are ready."""
        numbers = {self._threads.submit(self._ask, job): number for number, job in enumerate(jobs)}
        for future in as_completed(numbers):
            yield numbers[future], future.result()

    def _ask(self, job: dict[str, Any]) -> list[Any]:
        process = self._idle.get()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            print(json.dumps(job), file=process.stdin, flush=True)
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            self._idle.put(process)  # a dead one too: whoever waits for one must not wait for ever
        if not line:  # killed for its memory, or by a fault in a decoder
            raise UserError(
                "a process that decodes pictures ended unexpectedly: free some memory and run it again; what was "
                "decoded is kept"
            )
        answer = json.loads(line)
        if isinstance(answer, dict):
            raise UserError(
                f"decoded pictures cannot be written ({answer['error']}): free some space, then run it again"
            )
        return answer
