"""Types of callbacks for long computations, shared by all packages. Imports no torch."""

from collections.abc import Callable

__all__ = ["ProgressCallback"]

ProgressCallback = Callable[[int, int], None]  # so much is done, of so much
