"""How well a score ranks positives above negatives: the ROC curve and the area under it. Labels are 0 and 1."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Float64, Integer, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor import check_labels, check_shapes

__all__ = ["RocCurve", "roc_auc", "roc_auc_definition", "roc_curve"]


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
