"""The lock of a run, held with flock while a process trains it: the kernel lets go when the process ends, however."""

import fcntl
import os
import re
import time
from pathlib import Path

from quoin.errors import UserError

__all__ = ["is_held", "take_lock"]

TRIES = 5  # to take the lock: `quoin runs` holds it for a moment to see whether it is free


def is_held(handle: int) -> bool:
    """Whether a process holds the lock that is open as `handle`; nothing is written to find out."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def take_lock(handle: int, run: Path) -> None:
    """Take the lock of the run at `run` and write this process's number into it, if what it holds is such a number."""
    content = os.read(handle, 32)
    # a hard link, such as a backup's, has another name elsewhere: held, but not written
    alone = os.fstat(handle).st_nlink == 1
    try:
        _lock(handle)
    except BlockingIOError:
        holder = f"process {content.decode()}" if alone and re.fullmatch(rb"[0-9]+", content) else "another process"
        raise UserError(f"{run} is being trained by {holder}: wait for it or stop it first") from None
    if not re.fullmatch(rb"[0-9]*\s*", content):
        raise UserError(f"expected {run / 'lock'} to hold a process number, got something else: move it elsewhere")
    if alone:
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)


def _lock(handle: int) -> None:
    for tries_left in reversed(range(TRIES)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if not tries_left:
                raise
        time.sleep(0.02)
