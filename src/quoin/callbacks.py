"""Types of the callbacks that long work takes, whatever the package. Imports no torch."""

from collections.abc import Callable

__all__ = ["ProgressCallback"]

ProgressCallback = Callable[[int, int], None]  # so much is done, of so much
