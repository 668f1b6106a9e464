"""How good a classifier is, class by class and as a forecast, for the report: precision and recall, ROC curves,
calibration."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin import plot
from quoin.display import format_number
from quoin.metrics import (
    calibration_curve,
    expected_calibration_error,
    precision_recall_fscore_support,
    roc_auc_ovr,
    roc_curve,
)
from quoin.plot import Panel

__all__ = ["quality_panels"]

MOST_ROWS = 20  # classes in the table
MOST_CURVES = 5
NUM_BINS = 15  # of the reliability diagram


def quality_panels(
    outputs: Float[Tensor, "samples classes"],
    predicted: Int[Tensor, "samples"],
    labels: Int[Tensor, "samples"],
    names: Sequence[str],
    *,
    gives_probabilities: bool = True,
    test_name: str = "test",
) -> list[Panel]:
    """Precision, recall and F1 by class, ROC curves and, if a softmax of `outputs` is a probability, calibration."""
    found = [_by_class(predicted, labels, names, test_name)]
    found += _roc(outputs.double().log_softmax(-1), labels, names, test_name)
    return [*found, _calibration(outputs.double().softmax(-1), labels, test_name)] if gives_probabilities else found


def _by_class(predicted: Tensor, labels: Tensor, names: Sequence[str], test_name: str) -> Panel:
    by_class = precision_recall_fscore_support(predicted, labels, len(names))
    values = torch.stack(by_class[:3], dim=1)
    there = by_class.support.nonzero().flatten()
    rows, which = there, ""
    if len(there) > MOST_ROWS:
        rows = there[by_class.fscore[there].argsort(stable=True)[:MOST_ROWS]]
        which = f"The {MOST_ROWS} of {len(there)} classes with the lowest F1 score. "
    means = ", ".join(
        f"{name} {float(value):.3f}"
        for name, value in zip(("precision", "recall", "F1 score"), values[there].nanmean(0))
    )
    dash = " A dash: the class was never predicted." if values[rows].isnan().any() else ""
    caption = f"{which}In brackets the {test_name} examples of the class.{dash} Macro mean: {means}."
    return Panel(
        "Precision, recall and F1 score by class",
        lambda: plot.score_table(
            values[rows],
            row_labels=[f"{names[row]} ({by_class.support[row]})" for row in rows.tolist()],
            column_labels=["precision", "recall", "F1"],
        ),
        caption,
    )


def _roc(scores: Tensor, labels: Tensor, names: Sequence[str], test_name: str) -> list[Panel]:
    """Nothing where all examples are of one class."""
    auc = roc_auc_ovr(scores, labels)
    ranked = auc.by_class.isfinite().nonzero().flatten()
    if not len(ranked):
        return []
    if len(names) == 2:
        shown = [1]
        caption = f"How the {test_name} examples are ranked by the probability of {names[1]}."
    else:
        shown = ranked[auc.by_class[ranked].argsort(stable=True)[:MOST_CURVES]].tolist()
        few = len(shown) < len(ranked)
        caption = (
            f"Each class against all others, {test_name} examples"
            + (f"; the {len(shown)} of {len(ranked)} classes with the lowest AUC" if few else "")
            + f". Macro mean AUC: {format_number(auc.output)}."
        )
    curves = {
        f"{names[label]} (AUC {format_number(float(auc.by_class[label]))})": roc_curve(
            scores[:, label], (labels == label).long()
        )[:2]
        for label in shown
    }
    return [Panel("ROC curve" if len(curves) == 1 else "ROC curves", lambda: plot.roc_curves(curves), caption)]


def _calibration(probabilities: Tensor, labels: Tensor, test_name: str) -> Panel:
    stated, prediction = probabilities.max(dim=-1)
    curve = calibration_curve(stated.clamp(max=1), prediction == labels, num_bins=NUM_BINS)
    error = expected_calibration_error(probabilities, labels, num_bins=NUM_BINS)
    caption = (
        f"Of the {test_name} examples whose most probable class has a probability in a bin, the fraction for which it "
        f"is the true one. Expected calibration error: {format_number(error)}."
    )
    return Panel("Calibration", lambda: plot.reliability_diagram(*curve), caption)
