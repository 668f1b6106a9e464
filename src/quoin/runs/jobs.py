"""Runs of a multirun side by side: worker processes that each train one run after another, and what they tell.

Each worker (worker.py) has its own threads, so that a run has the bits it has alone with as many threads. One that
fails, or whose process is killed, costs the others nothing. Ctrl-C and SIGTERM are handed on: every worker saves and
stops; a second Ctrl-C ends them at once.
"""

import dataclasses
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any, Literal

from quoin.callbacks import current_listener
from quoin.processor import num_cores
from quoin.runs.run_config import RunConfig
from quoin.train import RunFolder, setup_device, torch_as_it_was
from quoin.train.interrupt import Interrupt
from quoin.train.progress import MultirunProgress

__all__ = ["Ended", "Job", "describe_sharing", "run_jobs", "start_worker", "with_threads"]

WAIT_SECONDS = 0.1  # between two looks whether somebody interrupts


@dataclass(frozen=True)
class Job:
    """A run to train: its name, and what a worker must know of it."""

    name: str
    request: dict[str, Any]


@dataclass(frozen=True)
class Ended:
    """How a run ended; `exit_code` is 2 where the user's input was at fault."""

    how: Literal["finished", "interrupted", "failed"]
    why: str = ""
    exit_code: int = 0


def with_threads(config: RunConfig, num_jobs: int, begun: Iterable[RunFolder] = ()) -> RunConfig:
    """The config of runs that train `num_jobs` at a time, with a number of threads, on which their bits depend.

    Where the user gave none it is that of the runs that have begun, or else the cores are shared out.
    """
    if config.num_threads:
        return config
    before = (each.environment.get("threads") for each in begun)
    known = next((number for number in before if isinstance(number, int) and number > 0), None)
    return dataclasses.replace(config, num_threads=known or max(1, num_cores() // num_jobs))


def describe_sharing(config: RunConfig, num_jobs: int) -> list[str]:
    """What there is to say of runs that share one machine."""
    cores, threads = num_cores(), config.num_threads
    each = f"{num_jobs} runs at a time, {threads} thread{'s' if threads > 1 else ''} each"
    if num_jobs * threads > cores:
        each += f": more than the {cores} cores here, which they take in turns"
    with torch_as_it_was():
        context, _ = setup_device(config.device, precision=config.precision)
    if context.device.type == "cpu" or num_jobs == 1:
        return [each]
    return [each, f"they share the memory and the time of {context.device}"]


def run_jobs(jobs: Sequence[Job], num_workers: int, progress: MultirunProgress) -> dict[str, Ended]:
    """Train all `jobs`, `num_workers` at a time; how each ended that was begun, by its name.

    Interrupted, it begins no other, and those that run save and stop.
    """
    waiting, ended, began = list(jobs), dict[str, Ended](), False
    told: set[str] = set()
    answers: queue.Queue[tuple[_Worker, dict[str, Any]]] = queue.Queue()
    with Interrupt() as interrupt, _workers() as workers, progress.open():
        while True:
            # A mistake before any run has made a step, such as data that are not there, will be that of all.
            hopeless = bool(ended) and not began and all(each.exit_code == 2 for each in ended.values())
            free = 0 if interrupt.asked or hopeless else num_workers - len(workers)
            for job in waiting[:free]:
                workers.append(_Worker(answers))
                workers[-1].give(job)
            del waiting[:free]
            if not workers:
                return {job.name: ended[job.name] for job in jobs if job.name in ended}
            if interrupt.asked:
                for worker in workers:
                    worker.ask_to_stop()
            try:
                worker, answer = answers.get(timeout=WAIT_SECONDS)
            except queue.Empty:
                progress.refresh()
                continue
            name = worker.job.name
            if "said" in answer or "remark" in answer:
                if (said := answer.get("said") or answer["remark"]) not in told:  # alike, they have the same to say
                    told.add(said)
                    (current_listener().say if "said" in answer else progress.say)(said)
            elif "epoch" in answer:
                began = True
                progress.advance(name, answer["epoch"], answer["epochs"])
            elif name not in ended:
                ended[name] = worker.how_ended(answer)
                progress.end(name, ended[name].how)
                if ended[name].how == "finished" and waiting and not interrupt.asked:
                    worker.give(waiting.pop(0))
                else:  # a worker in which a run failed may have too little memory left: the next gets a fresh one
                    worker.end()
                    workers.remove(worker)


def start_worker(module: str, *words: str, stdout: int, stderr: IO[bytes]) -> "subprocess.Popen[str]":
    """Start `python -m module` with these words; it may end when its standard input does: whoever started it is gone.

    Args:
        stderr: A file, not a pipe, which would stop the process when it is full and nobody reads.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *words],  # -P: what lies in the present folder is none of its modules
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # it finds what is found here
        start_new_session=True,  # a Ctrl-C at the terminal reaches this process alone, which hands it on
    )


class _Worker:
    """A worker process, from this side of the pipes."""

    job: Job

    def __init__(self, answers: "queue.Queue[tuple[_Worker, dict[str, Any]]]") -> None:
        self._answers, self._asked_to_stop = answers, False
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 (it lasts as long as the worker)
        self.process = start_worker("quoin.runs.worker", stdout=subprocess.PIPE, stderr=self._printed)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with suppress(json.JSONDecodeError):  # torn by a kill
                self._answers.put((self, json.loads(line)))
        self._answers.put((self, {"gone": True}))

    def give(self, job: Job) -> None:
        self.job = job
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it is gone: the reader tells
            print(json.dumps(job.request), file=self.process.stdin, flush=True)

    def ask_to_stop(self) -> None:
        if not self._asked_to_stop:
            self._asked_to_stop = True
            self.process.terminate()

    def how_ended(self, answer: dict[str, Any]) -> Ended:
        if "ended" in answer:
            return Ended(answer["ended"], answer.get("why", ""), answer.get("exit_code", 0))
        code = self.process.wait()
        if code == -signal.SIGTERM and self._asked_to_stop:  # before its first step, or after its last
            return Ended("interrupted")
        if code < 0:
            why = f"its process was killed by {signal.Signals(-code).name}"
            memory = "; the memory may be full: try fewer --jobs" if code == -signal.SIGKILL else ""
            return Ended("failed", why + memory, 1)
        self._printed.seek(0)
        lines = self._printed.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "without a word")
        return Ended("failed", f"its process ended with exit code {code}: {last}"[:280], 1)

    def end(self) -> None:
        """Its input ends, and so does the process."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self._reader.join()
        with self.process:  # closes the other pipe
            self._printed.close()


@contextmanager
def _workers() -> Iterator[list[_Worker]]:
    """The workers at work; none outlives what is done with them."""
    found: list[_Worker] = []
    try:
        yield found
    finally:
        for worker in found:
            worker.process.kill()
        for worker in found:
            worker.end()
