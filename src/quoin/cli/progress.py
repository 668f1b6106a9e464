"""What commands share that make one file of another: where they may write, and how far they are."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quoin.callbacks import Listener, ProgressCallback
from quoin.errors import UserError, format_value

__all__ = ["CommandListener", "Work", "check_target", "unwritable"]

PATIENCE = 1.0  # seconds before a bar is drawn: what ends sooner needs none


def check_target(source: Path | None, target: Path, force: bool) -> None:
    """Refuse a place where `target` cannot or must not be written, before the work and not after it."""
    try:
        if target.is_dir():
            raise UserError(
                f"expected a file to write to, got the folder {format_value(str(target))}; give -o a file name"
            )
        if source is not None and source.exists() and target.exists() and target.samefile(source):
            raise UserError(f"-o {format_value(str(target))} is the file to read: choose another, or it would be lost")
        # a file renamed over a device such as /dev/null would take its place
        if target.exists() and not target.is_file():
            raise UserError(
                f"expected a plain file to write to, got {format_value(str(target))}, which is none: choose "
                "another with -o"
            )
        if (target.exists() or target.is_symlink()) and not force:
            raise UserError(
                f"{format_value(str(target))} is there already: choose another with -o, or write over it with --force"
            )
        os.stat(f"{target.parent}/")  # a folder that is missing, or is a file, is told now too
    except OSError as error:
        raise unwritable(target, error) from None


def unwritable(target: Path, error: OSError) -> UserError:
    return UserError(f"{format_value(str(target))} cannot be written ({error.strerror}): choose another place with -o")


class Work:
    """The clock of one piece of work, and a bar that appears on a terminal when it takes its time."""

    def __init__(self, label: str, *, show_progress: bool, in_bytes: bool = True) -> None:
        self._in_bytes = in_bytes
        self._label, self._show_progress = label, show_progress and sys.stderr.isatty()
        self._bar = None
        self.seconds = 0.0

    def __enter__(self) -> "Work":
        self._began = time.perf_counter()
        return self

    def __exit__(self, *raised: object) -> None:
        self.seconds = time.perf_counter() - self._began
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int, total: int) -> None:
        """So many bytes, or things, are done, of so many."""
        if self._bar is None and self._show_progress and time.perf_counter() - self._began > PATIENCE:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )

            counted = (DownloadColumn(), TransferSpeedColumn()) if self._in_bytes else (MofNCompleteColumn(),)
            columns = (BarColumn(bar_width=24), *counted, TimeRemainingColumn())
            self._bar = Progress(
                TextColumn("{task.description}"), *columns, console=Console(stderr=True), transient=True
            )
            self._task = self._bar.add_task(self._label)
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)


class CommandListener(Listener):
    """Shows on the terminal of a command what long work below it has to say."""

    def __init__(self, *, show_progress: bool) -> None:
        self._show_progress = show_progress

    @contextmanager
    def progress(self, label: str) -> Iterator[ProgressCallback]:
        with Work(label, show_progress=self._show_progress, in_bytes=False) as work:
            yield work.update
