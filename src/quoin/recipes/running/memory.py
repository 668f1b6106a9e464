"""Memory that does not suffice, told as what it is: options too large for this machine."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from quoin.errors import Mistake

__all__ = ["memory_told"]


@contextmanager
def memory_told() -> Iterator[None]:
    """Turn a refused allocation into a Mistake; torch has a type of its own for a GPU's, a RuntimeError for the CPU's."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        refused = isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)
        if not refused:
            raise
        raise Mistake("the model or its batches do not fit in memory: choose fewer units, or a smaller --batch-size") from None
