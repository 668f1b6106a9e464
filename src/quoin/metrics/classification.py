"""Numbers to watch of predicted labels: take `logits.argmax(-1)` first.

`zero_one_loss` (per example) and `confusion_matrix` (counts) may be added up over batches and ranks; `accuracy` is of a
whole data set.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Float64, Int, Integer, Shaped
from torch import Tensor

from quoin.display import shown
from quoin.metrics.regression import check_some
from quoin.tensor import check_labels, check_shapes

__all__ = [
    "PrecisionRecallFscore",
    "accuracy",
    "balanced_accuracy",
    "confusion_matrix",
    "precision_recall_fscore_support",
    "zero_one_loss",
]


def zero_one_loss(prediction: Shaped[Tensor, "*shape"], labels: Shaped[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 where the predicted label is not the true one, else 0.

    Notes: D1.3-10.
    """
    check_shapes("..., ...", prediction=prediction, labels=labels)
    return (prediction != labels).to(torch.get_default_dtype())


def accuracy(prediction: Shaped[Tensor, "*shape"], labels: Shaped[Tensor, "*shape"]) -> float:
    """The fraction of examples whose label is right: 1 - mean zero-one loss.

    >>> accuracy(torch.tensor([0, 2, 1, 1]), torch.tensor([0, 2, 2, 1]))
    0.75

    Notes: D1.3-10.
    """
    check_some(prediction)
    return 1 - float(zero_one_loss(prediction, labels).double().mean())


def confusion_matrix(
    prediction: Integer[Tensor, "examples"], labels: Integer[Tensor, "examples"], num_classes: int
) -> Int[Tensor, "{num_classes} {num_classes}"]:
    """How often true class i (row) was taken for class j (column).

    Notes: D1.3-10.
    """
    check_shapes("n, n", prediction=prediction, labels=labels)
    check_labels(prediction, num_classes)
    check_labels(labels, num_classes)
    pairs = labels.long() * num_classes + prediction.long()
    return torch.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


@shown
class PrecisionRecallFscore(NamedTuple):
    """How well each class is found; NaN where there is nothing to divide by."""

    precision: Float64[Tensor, "classes"]  # of what was called the class, the fraction that is
    recall: Float64[Tensor, "classes"]  # of the class, the fraction that was called so
    fscore: Float64[Tensor, "classes"]  # F1, their harmonic mean: 2 TP / (2 TP + FP + FN)
    support: Int[Tensor, "classes"]  # examples of the class


def precision_recall_fscore_support(
    prediction: Integer[Tensor, "examples"], labels: Integer[Tensor, "examples"], num_classes: int
) -> PrecisionRecallFscore:
    """Precision TP / (TP + FP), recall TP / (TP + FN) and F1 score of each class, and how many examples it has.

    Precision is NaN for a class that was never predicted, recall for one without examples, F1 where it is both.
    """
    counts = confusion_matrix(prediction, labels, num_classes)
    hits, called, support = counts.diagonal().double(), counts.sum(dim=0), counts.sum(dim=1)
    return PrecisionRecallFscore(hits / called, hits / support, 2 * hits / (called + support), support)


def balanced_accuracy(
    prediction: Integer[Tensor, "examples"], labels: Integer[Tensor, "examples"], num_classes: int
) -> float:
    """The mean recall over the classes that have examples: accuracy as if all of them were equally frequent.

    >>> balanced_accuracy(torch.tensor([0, 0, 0, 0]), torch.tensor([0, 0, 0, 1]), 2)
    0.5
    """
    check_some(prediction)
    return float(precision_recall_fscore_support(prediction, labels, num_classes).recall.nanmean())
