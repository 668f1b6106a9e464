"""Predictions as a table: one row an example, the prediction first, then the probability of every class."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy
from jaxtyping import Float, Real
from torch import Tensor

from quoin.data import LabeledTextInfo, TabularInfo
from quoin.errors import UserError

__all__ = ["PredictedFile", "predicted_table", "prediction_table"]


class PredictedFile(NamedTuple):
    """What a model makes of a file."""

    text: str  # the answer as it is printed, one line or row an example
    said: str  # what and how many they are
    notes: list[str]  # what the user should know of them
    arrays: dict[str, numpy.ndarray] | None  # of a table, for an .npz file

    def save(self, path: Path) -> None:
        """Write `path`: a table as CSV or NPZ by its ending, lines as they are."""
        try:
            if self.arrays is None or path.suffix == ".csv":
                path.write_text(self.text, encoding="utf-8", errors="backslashreplace")
            elif path.suffix == ".npz":
                numpy.savez(path, **self.arrays)  # pyright: ignore[reportArgumentType]
            else:
                raise UserError(f"--out expects a .csv or .npz file, got {path.name!r}")
        except OSError as error:
            raise UserError(
                f"{path} could not be written ({error.strerror}): choose another place with --out"
            ) from None


def predicted_table(
    values: Real[Tensor, "samples"] | Float[Tensor, "samples targets"],
    probabilities: Float[Tensor, "samples classes"] | None,
    data_info: TabularInfo | LabeledTextInfo,
    notes: list[str],
    *,
    files: Sequence[str] = (),
) -> PredictedFile:
    """Predictions, and the probabilities of the classes where there are any, under the target's name.

    Args:
        files: The file of each example, where it has one of its own; they then come first.
    """
    names = data_info.target_names if isinstance(data_info, TabularInfo) else (data_info.target_name,)
    return prediction_table(values, probabilities, names, data_info.class_names, notes, files=files)


def prediction_table(
    values: Real[Tensor, "samples"] | Float[Tensor, "samples targets"],
    probabilities: Float[Tensor, "samples classes"] | None,
    target_names: tuple[str, ...],
    class_names: tuple[str, ...] | None,
    notes: list[str],
    *,
    files: Sequence[str] = (),
) -> PredictedFile:
    """The same for what has no data info of classes."""
    arrays = {"predictions": values.numpy()}
    if files:
        arrays["files"] = numpy.array(files)
    if class_names is not None:
        arrays["class_names"] = numpy.array(class_names)
    if probabilities is not None:
        arrays["probabilities"] = probabilities.numpy()
    text = _csv(values, probabilities, target_names, class_names, files)
    return PredictedFile(text, f"{len(values)} predictions of {', '.join(target_names)}", notes, arrays)


def _csv(
    values: Tensor,
    probabilities: Tensor | None,
    target_names: tuple[str, ...],
    class_names: tuple[str, ...] | None,
    files: Sequence[str],
) -> str:
    columns = list(target_names)
    if class_names is None:
        # All digits that are sure in float64: of a number such as 1,700,000,000 + s nine would leave nothing of s.
        rows = [[f"{value:.15g}" for value in row] for row in values.reshape(len(values), -1).tolist()]
    else:
        rows = [[class_names[label]] for label in values.tolist()]
        if probabilities is not None:
            columns += [f"p({name})" for name in class_names]
            rows = [[*row, *(f"{p:.9g}" for p in probs)] for row, probs in zip(rows, probabilities.tolist())]
    if files:
        columns, rows = ["file", *columns], [[file, *row] for file, row in zip(files, rows)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
