"""A model too large for this machine, told as that. Data that are too large say so where they are read (`quoin.data.memory`)."""

from contextlib import AbstractContextManager

from quoin.data.memory import memory_told as told

__all__ = ["memory_told"]


def memory_told() -> AbstractContextManager[None]:
    return told("the model or its batches do not fit in memory: choose fewer units, or a smaller --batch-size")
