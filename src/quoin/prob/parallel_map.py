"""Work in pieces whose operations are too small for many threads: one piece to a thread, not one operation to all."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from quoin.tensor.single_thread import single_thread

__all__ = ["parallel_map"]

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def parallel_map(work: Callable[[Piece], Result], pieces: Iterable[Piece]) -> list[Result]:
    """`work` of every piece, in their order, without a gradient; as many at once as torch has threads.

    An operation of microseconds that torch shares out among threads waits for the slowest of them, which on a busy
    machine may be a thousand times as long as it works.
    """

    def quietly(piece: Piece) -> Result:
        with torch.no_grad():  # which a new thread would not know of
            return work(piece)

    num_threads = torch.get_num_threads()
    with single_thread():  # also what threads begin with that are started now
        todo = list(pieces)
        if num_threads == 1 or len(todo) < 2:
            return [quietly(piece) for piece in todo]
        with ThreadPoolExecutor(min(num_threads, len(todo))) as pool:
            return list(pool.map(quietly, todo))
