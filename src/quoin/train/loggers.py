"""What a run tells to other tools while it trains: a small protocol, and the callback that serves it.

`quoin train ... --log tensorboard csv` writes files under RUN/log (tensorboard_logger.py, csv_logger.py). For a tool of
your own, give an object with the methods of `Logger` to `fit_recipe(..., loggers=[...])`; to log nothing of a kind, let
its method do nothing. A logger changes no bit of the run.
"""

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from quoin.errors import UserError
from quoin.plot import Panel
from quoin.train.events import RunEvent
from quoin.train.folder import RunFolder
from quoin.train.gradient_updater import GradientUpdater
from quoin.train.task import Metrics
from quoin.train.trainer import TrainOutput

__all__ = ["Logger", "RunLog", "check_log_packages", "open_loggers"]


class Logger(Protocol):
    """Where a run's numbers, images and texts go. Names have a group before a slash: batch/loss, batch/lr, train/loss,
    validation/accuracy, and at the end final/test_accuracy."""

    def begin(self, step: int) -> None:
        """The run begins, or goes on from `step` after a kill: what was logged of later steps will come again."""
        ...

    def log_options(self, options: Mapping[str, Any]) -> None:
        """The options of the run's recipe, at the beginning."""
        ...

    def log_scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers of a batch, of an epoch or of the end; "epoch" is among them."""
        ...

    def log_image(self, step: int, name: str, png: bytes) -> None:
        """A plot of the run's report, at its end."""
        ...

    def log_text(self, step: int, name: str, text: str) -> None:
        """The user's note at the beginning, and at the end what a language model wrote."""
        ...

    def close(self, *, finished: bool) -> None:
        """The run has finished, or it was interrupted or failed, and may be resumed."""
        ...


class RunLog:
    """A callback that logs batches and epochs with `loggers`, and what comes before the first and after the last.

    Args:
        every: Steps between two batches that are logged. Reading a loss makes a GPU wait, so not each is.
    """

    def __init__(self, loggers: Sequence[Logger], every: int) -> None:
        self.loggers, self._every, self._finished = loggers, every, False

    @contextmanager
    def open(self, step: int, options: Mapping[str, Any], note: str) -> Iterator[None]:
        """From the beginning at `step` to the end, whatever the end is."""
        for logger in self.loggers:
            logger.begin(step)
            logger.log_options(options)
            if note:
                logger.log_text(step, "note", note)
        try:
            yield
        finally:
            for logger in self.loggers:
                logger.close(finished=self._finished)

    def __call__(self, event: RunEvent) -> None:
        if event.kind == "step" and event.step % self._every == 0:
            values = {f"batch/{name}": value for name, value in event.metrics.items()}
            updater = getattr(event.task, "updater", None)
            if isinstance(updater, GradientUpdater):
                values["batch/lr"] = float(updater.optimizer.param_groups[0]["lr"])
        elif event.kind == "epoch":  # train_loss is train/loss
            values = {name.replace("_", "/", 1): value for name, value in event.metrics.items()}
        else:
            return
        self._log_scalars(event.step, {"epoch": event.epoch, **values})

    def log_panel(self, output: TrainOutput, panel: Panel) -> None:
        """A plot of the report of a finished run. One that could not be plotted was told of there."""
        if not (self.loggers and output.finished):
            return
        try:
            plot = panel.plot
            png = plot.png(dpi=100)
        except Exception:
            return
        for logger in self.loggers:
            logger.log_image(output.step, panel.title, png)
            if plot.text:
                logger.log_text(output.step, panel.title, plot.text)

    def log_result(self, output: TrainOutput, metrics: Metrics) -> None:
        """The final metrics, of a run that has finished."""
        self._finished = True
        self._log_scalars(
            output.step, {"epoch": output.epoch, **{f"final/{name}": value for name, value in metrics.items()}}
        )

    def _log_scalars(self, step: int, values: Mapping[str, float]) -> None:
        for logger in self.loggers:
            logger.log_scalars(step, values)


def check_log_packages(names: Sequence[str]) -> None:
    """Refuse a log whose package is missing: before the training, not within it."""
    if "tensorboard" in names and importlib.util.find_spec("tensorboard") is None:
        raise UserError("--log tensorboard needs the package tensorboard: pip install 'quoin[log]'")


def open_loggers(names: Sequence[str], folder: RunFolder) -> list[Logger]:
    """The loggers of `--log`, which write under RUN/log."""
    from quoin.train.csv_logger import CsvLogger

    loggers: list[Logger] = []
    for name in dict.fromkeys(names):
        if name == "tensorboard":
            from quoin.train.tensorboard_logger import TensorBoardLogger

            loggers.append(TensorBoardLogger(folder))
        else:
            loggers.append(CsvLogger(folder))
    return loggers
