"""Memory that does not suffice, told as what it is: something too large for this machine, and what helps."""

from collections.abc import Iterator
from contextlib import contextmanager

from quoin.errors import Mistake

__all__ = ["memory_told"]


@contextmanager
def memory_told(message: str) -> Iterator[None]:
    """Turn a refused allocation into a Mistake with this message; torch has a type of its own for a GPU's, a RuntimeError for the CPU's."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and type(error).__name__ != "OutOfMemoryError" and "can't allocate memory" not in str(error):
            raise
        raise Mistake(message) from None
