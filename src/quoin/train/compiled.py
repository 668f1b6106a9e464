"""A step's function compiled by torch: for one shape, with a word while it takes its time, and stopped when asked.

Compiling takes seconds to minutes, in which no step ends: a line says so, and Ctrl-C or SIGTERM ends it at once instead
of after the step. Every shape would be compiled for itself, and what holds for all shapes is slower, so a function
whose pieces are full but for an epoch's last is compiled for the full ones alone.
"""

import contextlib
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import torch

from quoin.callbacks import current_listener
from quoin.train.interrupt import interrupted_at_once

__all__ = ["CompiledStep", "length_of_first"]

R = TypeVar("R")

PATIENCE = 2.0  # seconds before a line says what takes so long


def length_of_first(*arguments: Any) -> int:
    """The rows of a piece whose first argument is a tensor with a row for each example."""
    return len(arguments[0])


class CompiledStep(Generic[R]):
    """`function` compiled for pieces of `num_rows` rows; other pieces go through it as it is.

    Args:
        num_rows: Rows of a full piece; 0 compiles once for all shapes, where the lengths of sequences change from piece
            to piece.
        rows_of: How many rows the arguments of a call have.
    """

    def __init__(
        self, function: Callable[..., R], num_rows: int, rows_of: Callable[..., int] = length_of_first
    ) -> None:
        self.function, self.num_rows, self.rows_of = function, num_rows, rows_of
        self.seconds = 0.0  # that compiling took, the first step's own work included
        self._compiled: Callable[..., R] = torch.compile(function, dynamic=num_rows == 0)
        self._is_ready = False

    def __call__(self, *arguments: Any) -> R:
        if self.num_rows and self.rows_of(*arguments) != self.num_rows:
            return self.function(*arguments)
        if self._is_ready:
            return self._compiled(*arguments)
        began = time.perf_counter()
        with _told(), interrupted_at_once(), _no_workers_left_behind():
            found = self._compiled(*arguments)
        self.seconds += time.perf_counter() - began
        self._is_ready = True
        return found


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Say that compilation goes on if it takes longer than a moment, and how long it took."""
    listener, began = current_listener(), time.perf_counter()
    timer = threading.Timer(PATIENCE, listener.say, ["compiling the step; this may take a minute or more"])
    timer.daemon = True
    timer.start()
    try:
        yield
        if (seconds := time.perf_counter() - began) > PATIENCE:
            listener.say(f"compiled the step in {seconds:.0f} s")
    finally:
        timer.cancel()


@contextlib.contextmanager
def _no_workers_left_behind() -> Iterator[None]:
    """Where compilation is stopped, end the processes that torch compiles in: at its exit it would wait minutes for
    them."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Error detected in ")  # where it stood: nobody's matter
            yield
    except BaseException:
        inductor = sys.modules.get("torch._inductor.async_compile")
        for pool in list(getattr(inductor, "_pool_set", ())):
            process = getattr(pool, "process", None)
            if process is not None:
                with contextlib.suppress(OSError):
                    process.kill()
        raise
