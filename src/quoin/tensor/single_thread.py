"""Torch kept to one thread for a while: the sums of several threads are added in another order, and small tensors are
slower on them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["single_thread"]


@contextmanager
def single_thread() -> Iterator[None]:
    """Within, torch computes on one thread; after, on as many as before. It is a decorator, too."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
