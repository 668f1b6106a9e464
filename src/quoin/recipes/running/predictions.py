"""Predictions as a table: one row an example, the prediction first, then the probability of every class."""

import csv
import io
from pathlib import Path

import numpy

from quoin.data import Facts, LabelledFacts
from quoin.errors import Mistake
from quoin.recipes.running.labelling_run import LabelledPrediction
from quoin.recipes.running.opened import Prediction

__all__ = ["as_csv", "write_predictions"]


def as_csv(prediction: Prediction | LabelledPrediction, facts: Facts | LabelledFacts) -> str:
    """The table as text, under the target's name."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = facts.class_names
    if names is None:
        writer.writerow([facts.target_name])
        # All digits that are sure in float64: of a number such as 1,700,000,000 + s nine would leave nothing of s.
        writer.writerows([f"{value:.15g}"] for value in prediction.values.tolist())
    elif prediction.probabilities is None:
        writer.writerow([facts.target_name])
        writer.writerows([names[label]] for label in prediction.values.tolist())
    else:
        writer.writerow([facts.target_name, *(f"p({name})" for name in names)])
        rows = zip(prediction.values.tolist(), prediction.probabilities.tolist())
        writer.writerows([names[label], *(f"{p:.9g}" for p in chances)] for label, chances in rows)
    return text.getvalue()


def write_predictions(path: Path, prediction: Prediction | LabelledPrediction, facts: Facts | LabelledFacts) -> None:
    """Write `path` as CSV or NPZ, by its ending."""
    try:
        if path.suffix == ".csv":
            path.write_text(as_csv(prediction, facts), encoding="utf-8", errors="backslashreplace")
        elif path.suffix == ".npz":
            arrays = {"predictions": prediction.values.numpy()}
            if facts.class_names is not None:
                arrays["class_names"] = numpy.array(facts.class_names)
            if prediction.probabilities is not None:
                arrays["probabilities"] = prediction.probabilities.numpy()
            numpy.savez(path, **arrays)  # pyright: ignore[reportArgumentType]
        else:
            raise Mistake(f"--out expects a .csv or .npz file, got {path.name!r}")
    except OSError as error:
        raise Mistake(f"{path} could not be written ({error.strerror}): choose another place with --out") from None
