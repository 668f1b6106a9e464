"""Logs as tables that pandas, polars, R and spreadsheets read, each with a row a step and a column a metric:

    RUN/log/metrics.csv   every epoch: step, epoch, train_loss, validation_loss, ...
    RUN/log/batches.csv   every so many steps: step, epoch, batch_loss, batch_lr, ...
    RUN/log/final.csv     the end: step, epoch, final_test_accuracy, ...

Three files, so that no column is empty for thousands of rows, of which a reader would not know the type.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

from quoin.train.folder import RunFolder
from quoin.train.log_folder import LogFolder

__all__ = ["CsvLogger"]

FILES = {"batch": "batches.csv", "final": "final.csv", "train": "metrics.csv", "validation": "metrics.csv"}


class CsvLogger:
    """Scalars into CSV files; options, images and texts are in the run folder anyway."""

    def __init__(self, folder: RunFolder) -> None:
        self._log = LogFolder(folder)
        self._columns: dict[str, list[str]] = {}

    def begin(self, step: int) -> None:
        """Forget what was written after `step`, and a last line that a kill has torn."""
        self._log.replace("final.csv", b"")
        for name in ("batches.csv", "metrics.csv"):
            whole = self._log.read(name).decode(errors="replace").rpartition("\n")[0]
            columns, *rows = csv.reader(io.StringIO(whole)) if whole else [[]]
            kept = [row for row in rows if row and row[0].isdecimal() and int(row[0]) <= step]
            self._columns[name] = columns if kept else []
            self._log.replace(name, _lines([columns, *kept]) if kept else b"")

    def log_options(self, options: Mapping[str, Any]) -> None: ...

    def log_scalars(self, step: int, values: Mapping[str, float]) -> None:
        groups = (name.partition("/")[0] for name in values)
        file = next((FILES[group] for group in groups if group in FILES), "metrics.csv")
        row = {"step": step, **{name.replace("/", "_"): float(value) for name, value in values.items()}}
        columns = self._columns.get(file, [])
        if not row.keys() <= set(columns):  # the first line, or a metric that was not there before
            wider = [*columns, *(name for name in row if name not in columns)]
            rows = list(csv.DictReader(io.StringIO(self._log.read(file).decode()))) if columns else []
            self._log.replace(file, _lines([wider, *([each.get(name) for name in wider] for each in rows)]))
            columns = self._columns[file] = wider
        self._log.append(file, _lines([[row.get(name) for name in columns]]))

    def log_image(self, step: int, name: str, png: bytes) -> None: ...

    def log_text(self, step: int, name: str, text: str) -> None: ...

    def close(self, *, finished: bool) -> None: ...


def _lines(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
