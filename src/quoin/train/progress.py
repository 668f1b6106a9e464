"""A progress bar for a terminal or a notebook; now and then a line for a log file. One for a run, and one for several
at a time."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from quoin.callbacks import Listener, ProgressCallback, current_listener
from quoin.display import NotebookBar, format_number, in_notebook, shown, tell

if TYPE_CHECKING:
    from quoin.train.task import MeanMetrics, Metrics

__all__ = ["MultirunProgress", "Progress", "ProgressListener"]

REDRAW_SECONDS = 0.1
LOG_SECONDS = 10.0


@shown
class Progress:
    """Epochs and batches as they pass, with the running loss and the last evaluation; written to standard error.

    Args:
        label: What the bar and every line begin with.
        show_progress: False writes nothing at all.
    """

    def __init__(self, label: str = "", *, show_progress: bool = True) -> None:
        self.label, self.show_progress = label, show_progress
        self._draw: Callable[[int, str], None] | None = None  # of so many batches, with these metrics beside the bar
        self._last = 0.0
        self._seen = ""
        self._epochs = self._num_batches = 1
        self._done = 0  # batches

    @contextmanager
    def open(self, epochs: int, num_batches: int) -> Iterator[None]:
        self._epochs, self._num_batches = max(1, epochs), max(1, num_batches)
        self._last = time.perf_counter()
        if self.show_progress and in_notebook():
            bar, total = NotebookBar(self.label), self._epochs * self._num_batches
            yield from self._drawn_by(lambda done, seen: bar.update(done, total, seen))
            return
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
        with Bar(*columns, seen, console=Console(stderr=True), expand=True) as on_terminal:
            task = on_terminal.add_task(self.label, total=epochs * num_batches, seen="")
            yield from self._drawn_by(lambda done, seen: on_terminal.update(task, completed=done, seen=seen))

    def _drawn_by(self, draw: Callable[[int, str], None]) -> Iterator[None]:
        self._draw = draw
        try:
            yield
            draw(self._done, self._seen)  # the last batches came between two refreshes
        finally:
            self._draw = None

    def say(self, remark: str) -> None:
        """A plain line, such as what could not be had."""
        if self.show_progress:
            tell(f"{self.label}: {remark}")

    def advance(self, epoch: int, position: int, metrics: "MeanMetrics") -> None:
        """One more batch is done. Costs a look at the clock unless it is time to refresh."""
        if not self.show_progress:
            return
        self._done = epoch * self._num_batches + position
        now = time.perf_counter()
        if now - self._last < (REDRAW_SECONDS if self._draw is not None else LOG_SECONDS):
            return
        self._last = now
        if self._draw is not None:
            self._draw(self._done, self._seen)
            return
        means = "  ".join(f"{name} {format_number(value)}" for name, value in metrics.compute().items())
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
        if self._draw is not None:
            self._draw(self._done, self._seen)


class ProgressListener(Listener):
    """Hands what work inside a step has to say to the run's progress; bars of its own go where they went."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._outer = progress, current_listener()

    def say(self, text: str) -> None:
        self._progress.say(text)

    def progress(self, label: str) -> AbstractContextManager[ProgressCallback]:
        return self._outer.progress(label)


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
        self._bar: Callable[[float, str], object] | None = None  # draws so many runs, and the words beside them
        self._last = time.perf_counter()

    @contextmanager
    def open(self) -> Iterator[None]:
        if self.show_progress and in_notebook():
            bar = NotebookBar(self.label)
            self._bar = lambda done, text: bar.update(done, self.total, text)
            yield
            self._show()
            self._bar = None
            return
        if not self.show_progress or not sys.stderr.isatty():
            yield
            return
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
        from rich.table import Column

        seen = TextColumn("[dim]{task.fields[seen]}", table_column=Column(overflow="ellipsis", no_wrap=True, ratio=1))
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=16), TimeElapsedColumn(), seen)
        with Bar(*columns, console=Console(stderr=True), expand=True) as on_terminal:
            task = on_terminal.add_task(self.label, total=self.total, seen="")
            self._bar = lambda done, text: on_terminal.update(task, completed=done, seen=text)
            yield
            self._show()
        self._bar = None

    def say(self, remark: str) -> None:
        """A plain line."""
        if self.show_progress:
            tell(f"{self.label}: {remark}")

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
        self._show()

    def refresh(self) -> None:
        """Draw the bar, or, if it is time, write a line."""
        if self._bar is not None:
            self._show()
        elif self.show_progress and time.perf_counter() - self._last >= LOG_SECONDS:
            self._last = time.perf_counter()
            print(f"{self.label}  {self._text()}", file=sys.stderr)

    def _text(self) -> str:
        running = "  ".join(
            f"{name} epoch {min(int(done) + 1, total)}/{total}" for name, (done, total) in sorted(self._epochs.items())
        )
        return f"{self._done} of {self.total} done  {running}".rstrip()

    def _show(self) -> None:
        if self._bar is not None:
            parts = sum(min(1.0, done / total) for done, total in self._epochs.values())
            self._bar(self._done + parts, self._text())
