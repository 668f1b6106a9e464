"""A model too large for this machine, as an error of one line. Data that are too large say so where they are read
(`quoin.data.memory`)."""

from contextlib import AbstractContextManager

from quoin.data.memory import explain_out_of_memory as explain

__all__ = ["explain_out_of_memory"]


def explain_out_of_memory() -> AbstractContextManager[None]:
    return explain("the model or its batches do not fit in memory: choose fewer units, or a smaller --batch-size")
