"""Predictions as a table: one row an example, the prediction first, then the probability of every class."""

import csv
import io
from pathlib import Path
from typing import NamedTuple

import numpy
from jaxtyping import Float, Real
from torch import Tensor

from quoin.data import LabeledTextInfo, TabularInfo
from quoin.errors import UserError

__all__ = ["PredictedFile", "predicted_table"]


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
    values: Real[Tensor, "samples"],
    probabilities: Float[Tensor, "samples classes"] | None,
    data_info: TabularInfo | LabeledTextInfo,
    notes: list[str],
    names: list[str] | None = None,
) -> PredictedFile:
    """Predictions, and the probabilities of the classes where there are any, under the target's name.

    Args:
        names: Of the examples, where they have any, such as a file's for each.
    """
    arrays = {"predictions": values.numpy()}
    if data_info.class_names is not None:
        arrays["class_names"] = numpy.array(data_info.class_names)
    if probabilities is not None:
        arrays["probabilities"] = probabilities.numpy()
    header, rows = _table(values, probabilities, data_info)
    if names is not None:
        arrays["files"] = numpy.array(names)
        header, rows = ["file", *header], [[name, *row] for name, row in zip(names, rows, strict=True)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    said = f"{len(values)} predictions of {data_info.target_name}"
    return PredictedFile(text.getvalue(), said, notes, arrays)


def _table(
    values: Tensor, probabilities: Tensor | None, data_info: TabularInfo | LabeledTextInfo
) -> tuple[list[str], list[list[str]]]:
    names, header = data_info.class_names, [data_info.target_name]
    if names is None:
        # All digits that are sure in float64: of a number such as 1,700,000,000 + s nine would leave nothing of s.
        return header, [[f"{value:.15g}"] for value in values.tolist()]
    if probabilities is None:
        return header, [[names[label]] for label in values.tolist()]
    rows = zip(values.tolist(), probabilities.tolist())
    return [*header, *(f"p({name})" for name in names)], [
        [names[label], *(f"{p:.9g}" for p in probs)] for label, probs in rows
    ]
