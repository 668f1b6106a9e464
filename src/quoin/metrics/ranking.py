"""How well a score ranks positives above negatives: the ROC curve, the area under it, and the threshold to take. Labels
are 0 and 1; for several classes, one-vs-rest."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Float64, Integer, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor import check_labels, check_shapes

__all__ = [
    "OneVsRestAuc",
    "RocCurve",
    "balanced_accuracy_threshold",
    "f1_threshold",
    "roc_auc",
    "roc_auc_definition",
    "roc_auc_ovr",
    "roc_curve",
]


@shown
class RocCurve(NamedTuple):
    """What calling every example at or above each threshold positive gets right and wrong, thresholds falling from
    infinity."""

    false_positive_rate: Float64[Tensor, "points"]  # from 0 to 1: the fraction of negatives called positive
    true_positive_rate: Float64[Tensor, "points"]  # from 0 to 1: the fraction of positives called positive
    thresholds: Float[Tensor, "points"]


def roc_curve(scores: Real[Tensor, "examples"], labels: Integer[Tensor, "examples"]) -> RocCurve:
    """True against false positive rate, one point for each distinct score and (0, 0) before them.

    Args:
        labels: 1 for positives, 0 for negatives.
    """
    _check(scores, labels)
    scores = (
        scores if scores.is_floating_point() else scores.double()
    )  # the first threshold is infinite, and large integers stay apart
    scores, order = scores.detach().sort(descending=True)
    positives = labels[order].double().cumsum(dim=0)
    negatives = torch.arange(1, len(scores) + 1, device=scores.device) - positives
    last = torch.cat(
        [scores[1:] != scores[:-1], torch.ones(1, dtype=torch.bool, device=scores.device)]
    )  # of its equals
    first = positives.new_zeros(1)
    return RocCurve(
        torch.cat([first, negatives[last] / negatives[-1]]),
        torch.cat([first, positives[last] / positives[-1]]),
        torch.cat([scores.new_full((1,), float("inf")), scores[last]]),
    )


def roc_auc_definition(scores: Real[Tensor, "examples"], labels: Integer[Tensor, "examples"]) -> float:
    """The probability that a random positive scores above a random negative, a tie counting half; over all pairs.

    Args:
        labels: 1 for positives, 0 for negatives.
    """
    _check(scores, labels)
    above = scores[labels == 1].unsqueeze(-1)
    below = scores[labels == 0]
    return float(((above > below).double() + (above == below).double() / 2).mean())


def roc_auc(scores: Real[Tensor, "examples"], labels: Integer[Tensor, "examples"]) -> float:
    """`roc_auc_definition` as the area under `roc_curve`, by the trapezoidal rule: one sort instead of all pairs.

    Args:
        labels: 1 for positives, 0 for negatives.
    """
    curve = roc_curve(scores, labels)
    return float(torch.trapezoid(curve.true_positive_rate, curve.false_positive_rate))


@shown
class OneVsRestAuc(NamedTuple):
    """The area under the ROC curve of each class against all others."""

    output: float  # the macro mean over the classes that have an area, NaN if none has
    by_class: Float64[Tensor, "classes"]  # NaN for a class without examples, or that all are of


def roc_auc_ovr(scores: Real[Tensor, "examples classes"], labels: Integer[Tensor, "examples"]) -> OneVsRestAuc:
    """`roc_auc` of every class's scores against the rest, and their mean with equal weights (macro).

    For two classes whose scores add up to a constant, both areas are that of the second class.

    Args:
        scores: Probabilities, or what ranks the examples of each class as they do.
        labels: Class numbers.
    """
    check_shapes("n q, n", scores=scores, labels=labels)
    check_labels(labels, scores.shape[-1])
    counts = torch.bincount(labels.long(), minlength=scores.shape[-1])
    ranked = (counts > 0) & (counts < len(labels))
    by_class = torch.tensor(
        [
            roc_auc(scores[:, label], (labels == label).long()) if there else float("nan")
            for label, there in enumerate(ranked.tolist())
        ],
        dtype=torch.float64,
    )
    return OneVsRestAuc(float(by_class.nanmean()), by_class)


def balanced_accuracy_threshold(probabilities: Real[Tensor, "examples"], labels: Integer[Tensor, "examples"]) -> float:
    """The t for which calling the examples of probability t or more positive has the highest balanced accuracy,
    (TPR + 1 - FPR) / 2; midway between two probabilities, and of equals the one nearest to 1/2.

    Args:
        labels: 1 for positives, 0 for negatives.
    """
    curve = roc_curve(probabilities, labels)
    return _threshold(curve, curve.true_positive_rate - curve.false_positive_rate)


def f1_threshold(probabilities: Real[Tensor, "examples"], labels: Integer[Tensor, "examples"]) -> float:
    """The t for which calling the examples of probability t or more positive has the highest F1 score,
    2 TP / (TP + FP + positives); midway between two probabilities, and of equals the one nearest to 1/2.

    Args:
        labels: 1 for positives, 0 for negatives.
    """
    curve = roc_curve(probabilities, labels)
    positives = int((labels == 1).sum())
    hits, false_alarms = curve.true_positive_rate * positives, curve.false_positive_rate * (len(labels) - positives)
    return _threshold(curve, 2 * hits / (hits + false_alarms + positives))


def _threshold(curve: RocCurve, value: Tensor) -> float:
    """The best cut by `value`, one for each point of the curve but the first, which calls nothing positive."""
    scores, value = curve.thresholds[1:].double(), value[1:]
    middle = (scores + torch.cat([scores[1:], scores[-1:]])) / 2
    # Of neighbouring floats the middle may be the lower one, which is beyond the cut.
    cuts = torch.where(torch.cat([middle[:-1] > scores[1:], middle.new_zeros(1, dtype=torch.bool)]), middle, scores)
    best = cuts[value >= value.max() - 1e-12]  # rates are fractions: equal ones may round apart
    return float(best[(best - 0.5).abs().argmin()])


def _check(scores: Tensor, labels: Tensor) -> None:
    check_shapes("n, n", scores=scores, labels=labels)
    check_labels(labels, 2)
    if scores.isnan().any():
        raise UserError(
            "expected scores to rank by, got NaN; drop those examples or find where the model lost its numbers"
        )
    num_positive = int((labels == 1).sum())
    if not 0 < num_positive < len(labels):
        raise UserError(
            f"expected examples of both labels, got {num_positive} of 1 in {len(labels)}; a ranking needs both"
        )
