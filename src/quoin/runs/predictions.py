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
    values: Real[Tensor, "samples"],
    probabilities: Float[Tensor, "samples classes"] | None,
    data_info: TabularInfo | LabeledTextInfo,
    notes: list[str],
) -> PredictedFile:
    """Predictions, and the probabilities of the classes where there are any, under the target's name."""
    return prediction_table(values, probabilities, data_info.target_name, data_info.class_names, notes)


def prediction_table(
    values: Real[Tensor, "samples"],
    probabilities: Float[Tensor, "samples classes"] | None,
    target_name: str,
    class_names: tuple[str, ...] | None,
    notes: list[str],
) -> PredictedFile:
    """The same for what has no data info of classes."""
    arrays = {"predictions": values.numpy()}
    if class_names is not None:
        arrays["class_names"] = numpy.array(class_names)
    if probabilities is not None:
        arrays["probabilities"] = probabilities.numpy()
    text = _csv(values, probabilities, target_name, class_names)
    return PredictedFile(text, f"{len(values)} predictions of {target_name}", notes, arrays)


def _csv(values: Tensor, probabilities: Tensor | None, target_name: str, names: tuple[str, ...] | None) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if names is None:
        writer.writerow([target_name])
        # All digits that are sure in float64: of a number such as 1,700,000,000 + s nine would leave nothing of s.
        writer.writerows([f"{value:.15g}"] for value in values.tolist())
    elif probabilities is None:
        writer.writerow([target_name])
        writer.writerows([names[label]] for label in values.tolist())
    else:
        writer.writerow([target_name, *(f"p({name})" for name in names)])
        rows = zip(values.tolist(), probabilities.tolist())
        writer.writerows([names[label], *(f"{p:.9g}" for p in probs)] for label, probs in rows)
    return text.getvalue()
