"""`--processes N`: start this command N times on this machine, as torchrun would, and end them together.

The first process has the terminal; what the others print is kept, and shown where they fail. Ctrl-C and SIGTERM are
handed on: the processes save and stop. When one dies, the others cannot go on: they are ended, and a line says how to
resume. Imports no torch.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, NoReturn

from quoin.errors import UserError

__all__ = [
    "end_process",
    "is_first",
    "launch",
    "launched",
    "must_launch",
    "num_started",
    "started_with_others",
    "tell_launcher",
]

POLL_SECONDS = 0.05
ENDS_WITHIN = 8.0  # seconds that a process has to end by itself when another is gone
PIPE = "QUOIN_LAUNCHER"  # in the environment: where the first process tells which run it trains


def num_started() -> int:
    """How many processes torchrun, or this command, started together."""
    text = os.environ.get("WORLD_SIZE", "1")
    return int(text) if text.isdecimal() else 1


def started_with_others() -> bool:
    return num_started() > 1


def is_first() -> bool:
    """Whether this process is the one that shows and writes."""
    rank = os.environ.get("RANK", "0")
    return (
        not started_with_others() or not (rank.isascii() and rank.isdecimal()) or int(rank) == 0
    )  # one without a number tells it


def end_process(code: int) -> NoReturn:
    """End this process. One of several ends at once: gloo's threads may still hold tensors of the last exchange, or
    wait for the others, and a thread that meets an interpreter on its way out aborts the process (SIGABRT)."""
    if not started_with_others():
        sys.exit(code)
    if code == 0:  # after a failure, what is to be done at the end might wait for a process that is gone
        atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def launched() -> bool:
    """Whether this process was started by `launch`."""
    return PIPE in os.environ


def must_launch(num_processes: int) -> bool:
    """Whether `--processes` asks for processes that are still to be started."""
    if num_processes == 1 or launched():
        return False
    if "WORLD_SIZE" in os.environ:
        raise UserError(
            f"--processes {num_processes} inside torchrun, which started {num_started()}: leave --processes out"
        )
    return True


def tell_launcher(run: str) -> None:
    """Say which run is being trained, so that whoever started the processes can say how to go on with it."""
    if launched() and is_first():
        os.write(int(os.environ[PIPE]), (json.dumps(run) + "\n").encode())


@dataclass
class _Process:
    rank: int
    process: "subprocess.Popen[bytes]"
    printed: IO[bytes] | None


def launch(words: Sequence[str], num_processes: int) -> int:
    """Run `quoin` with these words in so many processes; the exit code of the first, or 1 where another failed."""
    heard, told = os.pipe()
    os.set_blocking(heard, False)
    signals: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: signals.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) != signal.SIG_IGN
    }
    started: list[_Process] = []
    try:
        port = _free_port()
        started += [_start(words, rank, num_processes, port, told) for rank in range(num_processes)]
        os.close(told)
        failed = _wait(started, signals)
        run = _read(heard)
        return _say_how_it_ended(started, failed, run, interrupted=bool(signals))
    finally:
        for each in started:
            if each.process.poll() is None:
                each.process.kill()
                each.process.wait()
            if each.printed is not None:
                each.printed.close()
        os.close(heard)
        for number, handler in before.items():
            signal.signal(number, handler)


def _start(words: Sequence[str], rank: int, num_processes: int, port: int, told: int) -> _Process:
    place = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": num_processes,
        "LOCAL_WORLD_SIZE": num_processes,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        PIPE: told,
    }
    environment = os.environ | {name: str(value) for name, value in place.items()}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # it finds what is found here
    printed = None if rank == 0 else tempfile.TemporaryFile()  # noqa: SIM115 (closed with its process)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "quoin", *words],
        stdin=subprocess.DEVNULL,
        stdout=None if rank == 0 else subprocess.DEVNULL,
        stderr=printed,
        env=environment,
        pass_fds=(told,),
        start_new_session=True,  # a Ctrl-C at the terminal reaches this process alone, which hands it on
    )
    return _Process(rank, process, printed)


def _wait(started: list[_Process], signals: list[int]) -> _Process | None:
    """Until all have ended; the one that failed first, if any did."""
    failed, handed_on, give_up = None, 0, float("inf")
    ended_here: set[int] = set()
    while any(each.process.poll() is None for each in started):
        if len(signals) > handed_on:
            handed_on = len(signals)
            # a second Ctrl-C stops at once
            number = signal.SIGTERM if handed_on == 1 else signal.SIGKILL
            for each in started:
                if each.process.poll() is None:
                    each.process.send_signal(number)
        if failed is None:
            failed = next((each for each in started if each.process.poll() not in (None, 0, 130)), None)
            give_up = time.monotonic() + ENDS_WITHIN if failed else give_up
        if time.monotonic() > give_up:
            for each in started:
                if each.process.poll() is None:
                    ended_here.add(each.rank)
                    each.process.kill()
        time.sleep(POLL_SECONDS)
    # One that a signal ended, and not from here, is the cause, whoever was seen first: the others fail as they miss it.
    ended = [each for each in started if each.process.returncode not in (0, 130)]
    killed = [each for each in ended if each.process.returncode < 0 and each.rank not in ended_here]
    return (killed or ([failed] if failed in ended else ended) or [None])[0]


def _say_how_it_ended(started: list[_Process], failed: _Process | None, run: str, *, interrupted: bool) -> int:
    first = started[0].process.returncode
    if failed is None:
        return first
    # by a second Ctrl-C, or by the first, where a process was not yet training and had nothing to save
    if interrupted and any(each.process.returncode in (-signal.SIGKILL, -signal.SIGTERM) for each in started):
        print("quoin: stopped", file=sys.stderr)
        return 130
    for each in started[1:]:
        for line in _last_lines(each):
            print(line, file=sys.stderr)
    code = failed.process.returncode
    if any(each.process.returncode == UserError.exit_code for each in started):  # whatever became of the others
        return UserError.exit_code
    if code < 0:
        by = signal.Signals(-code).name
        memory = " (the memory may be full)" if code == -signal.SIGKILL else ""
        go_on = f"go on with: quoin resume {run} --processes {len(started)}" if run else "no run had begun: start again"
        print(
            f"quoin: process {failed.rank} of {len(started)} was killed by {by}{memory}, and the others were ended; "
            f"{go_on}",
            file=sys.stderr,
        )
        return 1
    return first if first > 0 else code


def _last_lines(ended: _Process) -> list[str]:
    """What a process that failed had to say."""
    if ended.printed is None or ended.process.returncode in (0, 130, -signal.SIGKILL):
        return []
    ended.printed.seek(0)
    lines = ended.printed.read().decode(errors="backslashreplace").splitlines()
    said = [line for line in lines if line.startswith("quoin: ")]
    return said[-1:] or [f"[process {ended.rank}] {line}" for line in lines[-30:]]


def _read(heard: int) -> str:
    try:
        text = os.read(heard, 65536).decode()
    except BlockingIOError:
        return ""
    lines = [line for line in text.split("\n") if line]
    return json.loads(lines[-1]) if lines else ""


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]
