"""A progress bar for a terminal; now and then a line for a log file. One for a run, and one for several at a time."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quoin.train.task import MeanMetrics, Metrics

__all__ = ["MultirunProgress", "Progress"]

REDRAW_SECONDS = 0.1
LOG_SECONDS = 10.0


class Progress:
    """Epochs and batches as they pass, with the running loss and the last evaluation; written to standard error.

    Args:
        label: What the bar and every line begin with.
        show_progress: False writes nothing at all.
    """

    def __init__(self, label: str = "", *, show_progress: bool = True) -> None:
        self.label, self.show_progress = label, show_progress
        self._bar = self._bar_task = None
        self._last = 0.0
        self._seen = ""
        self._epochs = self._num_batches = 1
        self._done = 0  # batches

    @contextmanager
    def open(self, epochs: int, num_batches: int) -> Iterator[None]:
        self._epochs, self._num_batches = max(1, epochs), max(1, num_batches)
        self._last = time.perf_counter()
        if not self.show_progress or not sys.stderr.isatty():
            yield
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
        from rich.table import Column

        # The metrics stand last: in a narrow terminal it is cut, not the bar and the time that is left.
        seen = TextColumn("[dim]{task.fields[seen]}", table_column=Column(overflow="ellipsis", no_wrap=True, ratio=1))
        kept = [Column(no_wrap=True, min_width=width) for width in (len(self.label), 16, 9, 7)]
        columns = (
            TextColumn("{task.description}", table_column=kept[0]),
            BarColumn(bar_width=16, table_column=kept[1]),
            MofNCompleteColumn(table_column=kept[2]),
            TimeRemainingColumn(elapsed_when_finished=True, table_column=kept[3]),
        )
        with Bar(*columns, seen, console=Console(stderr=True), expand=True) as self._bar:
            self._bar_task = self._bar.add_task(self.label, total=epochs * num_batches, seen="")
            yield
            self._bar.update(
                self._bar_task, completed=self._done, seen=self._seen
            )  # the last batches came between two refreshes
        self._bar = None

    def say(self, remark: str) -> None:
        """A plain line, such as what could not be had."""
        if self.show_progress:
            print(f"{self.label}: {remark}", file=sys.stderr)

    def advance(self, epoch: int, position: int, metrics: "MeanMetrics") -> None:
        """One more batch is done. Costs a look at the clock unless it is time to refresh."""
        if not self.show_progress:
            return
        self._done = epoch * self._num_batches + position
        now = time.perf_counter()
        if now - self._last < (REDRAW_SECONDS if self._bar is not None else LOG_SECONDS):
            return
        self._last = now
        if self._bar is not None and self._bar_task is not None:
            self._bar.update(self._bar_task, completed=self._done, seen=self._seen)
            return
        means = "  ".join(f"{name} {value:.4g}" for name, value in metrics.compute().items())
        print(
            f"{self.label}  epoch {epoch + 1}/{self._epochs}  batch {position}/{self._num_batches}  {means}",
            file=sys.stderr,
        )

    def show(self, metrics: "Metrics") -> None:
        """The metrics of an evaluation, to stand beside the bar."""
        shown = sorted(
            metrics.items(), key=lambda item: not item[0].startswith("validation_")
        )  # what is cut is the training's
        self._seen = "  ".join(
            f"{name.replace('validation_', 'val ').replace('_', ' ')} {value:.3g}" for name, value in shown
        )
        if self._bar is not None and self._bar_task is not None:
            self._bar.update(self._bar_task, seen=self._seen)


class MultirunProgress:
    """One bar for runs that train side by side: those that are done, and the epochs of the others.

    Args:
        label: What the bar and every line begin with.
        total: How many runs there are.
        done: How many were finished before.
        show_progress: False writes nothing at all.
    """

    def __init__(self, label: str, total: int, done: int = 0, *, show_progress: bool = True) -> None:
        self.label, self.total, self.show_progress = label, total, show_progress
        self._done = done
        self._epochs: dict[str, tuple[float, int]] = {}  # of the runs that train: done, and of how many
        self._bar = self._bar_task = None
        self._last = time.perf_counter()

    @contextmanager
    def open(self) -> Iterator[None]:
        if not self.show_progress or not sys.stderr.isatty():
            yield
            return
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
        from rich.table import Column

        seen = TextColumn("[dim]{task.fields[seen]}", table_column=Column(overflow="ellipsis", no_wrap=True, ratio=1))
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=16), TimeElapsedColumn(), seen)
        with Bar(*columns, console=Console(stderr=True), expand=True) as self._bar:
            self._bar_task = self._bar.add_task(self.label, total=self.total, seen="")
            yield
            self._draw()
        self._bar = None

    def say(self, remark: str) -> None:
        """A plain line."""
        if self.show_progress:
            print(f"{self.label}: {remark}", file=sys.stderr)

    def advance(self, name: str, epoch: float, epochs: int) -> None:
        """The run `name` has done so many epochs."""
        self._epochs[name] = epoch, max(1, epochs)
        self.refresh()

    def end(self, name: str, how: str) -> None:
        """The run `name` ended."""
        self._epochs.pop(name, None)
        if how == "finished":
            self._done += 1
        self.say(f"{name} {how} ({self._done} of {self.total} done)")
        self._draw()

    def refresh(self) -> None:
        """Draw the bar, or, if it is time, write a line."""
        if self._bar is not None:
            self._draw()
        elif self.show_progress and time.perf_counter() - self._last >= LOG_SECONDS:
            self._last = time.perf_counter()
            print(f"{self.label}  {self._text()}", file=sys.stderr)

    def _text(self) -> str:
        running = "  ".join(
            f"{name} epoch {min(int(done) + 1, total)}/{total}" for name, (done, total) in sorted(self._epochs.items())
        )
        return f"{self._done} of {self.total} done  {running}".rstrip()

    def _draw(self) -> None:
        if self._bar is not None and self._bar_task is not None:
            parts = sum(min(1.0, done / total) for done, total in self._epochs.values())
            self._bar.update(self._bar_task, completed=self._done + parts, seen=self._text())
