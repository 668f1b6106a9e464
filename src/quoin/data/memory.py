"""Memory that does not suffice, as an error of one line: something too large for this machine, and what helps."""

from collections.abc import Iterator
from contextlib import contextmanager

from quoin.errors import UserError

__all__ = ["explain_out_of_memory"]


@contextmanager
def explain_out_of_memory(message: str) -> Iterator[None]:
    """Turn a failed allocation into a UserError with this message; torch has a type of its own for a GPU's, a
    RuntimeError for the CPU's."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if (
            not isinstance(error, MemoryError)
            and type(error).__name__ != "OutOfMemoryError"
            and "can't allocate memory" not in str(error)
        ):
            raise
        raise UserError(message) from None
