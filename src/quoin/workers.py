"""Processes that work for this one, and end with it."""

import multiprocessing
import multiprocessing.connection
import os
import threading
from concurrent.futures import ProcessPoolExecutor

__all__ = ["worker_pool"]


def worker_pool(num_workers: int) -> ProcessPoolExecutor:
    """A pool of processes that are started anew: a forked child of a process in which torch has started threads may
    hang.

    Python's own workers would wait for work for ever where their parent was killed.
    """
    return ProcessPoolExecutor(
        num_workers, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_the_parent
    )


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
