"""Which runs the page of runs may open: those that the command named, by number. The browser never names a path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

__all__ = ["open_paths", "run_names", "set_runs"]

_runs: list[Path] = []


def set_runs(paths: Sequence[Path]) -> dict[str, str]:
    """Allow these folders; gives their names by the number that stands in addresses."""
    _runs[:] = [path.resolve() for path in paths]
    return {str(number): name for number, name in enumerate(run_names(_runs))}


def open_paths(number: str = "") -> list[Path]:
    """The folders that may be read: all, or the one of this number, if there is one."""
    return [path for at, path in enumerate(_runs) if str(at) == number] or list(_runs)


def run_names(paths: Sequence[Path]) -> list[str]:
    """What runs are called on a page: their folders, with the one around it where two would be called the same."""
    counts = Counter(path.name for path in paths)
    return [path.name if counts[path.name] == 1 else f"{path.parent.name}/{path.name}" for path in paths]
