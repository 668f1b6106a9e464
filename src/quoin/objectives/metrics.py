"""Numbers to watch, not to differentiate. Labels are predicted labels: take `logits.argmax(-1)` first.

`zero_one_loss` (per example) and `confusion_matrix` (counts) may be added up over batches and ranks; the others are of a whole
data set.   n examples, q classes
"""

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.objectives.squared import squared_loss
from quoin.tensor import as_floating, check_labels, check_shapes

__all__ = ["accuracy", "confusion_matrix", "r_squared", "root_mean_squared_error", "zero_one_loss"]


def zero_one_loss(predicted: Tensor, labels: Tensor) -> Tensor:  # (...), (...) -> (...)
    """1 where the predicted label is not the true one, else 0.

    Notes: D1.3-10.
    """
    check_shapes("..., ...", predicted=predicted, labels=labels)
    return (predicted != labels).to(torch.get_default_dtype())


def accuracy(predicted: Tensor, labels: Tensor) -> float:
    """The share of examples whose label is right: 1 - mean zero-one loss.

    >>> accuracy(torch.tensor([0, 2, 1, 1]), torch.tensor([0, 2, 2, 1]))
    0.75

    Notes: D1.3-10.
    """
    _some(predicted)
    return 1 - float(zero_one_loss(predicted, labels).double().mean())


def confusion_matrix(predicted: Tensor, labels: Tensor, num_classes: int) -> Tensor:  # (n,), (n,) -> (q, q)
    """How often true class i (row) was taken for class j (column).

    Notes: D1.3-10.
    """
    check_shapes("n, n", predicted=predicted, labels=labels)
    check_labels(predicted, num_classes)
    check_labels(labels, num_classes)
    pairs = labels.long() * num_classes + predicted.long()
    return torch.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def root_mean_squared_error(prediction: Tensor, target: Tensor) -> float:
    """sqrt((1/n) sum_i (prediction_i - target_i)^2): the typical error, in the target's unit."""
    _some(prediction)
    return float((2 * squared_loss(prediction.detach(), target)).mean().sqrt())


def r_squared(prediction: Tensor, target: Tensor) -> float:
    """The share of the target's variance that is explained: 1 - sum_i (y_i - prediction_i)^2 / sum_i (y_i - mean y)^2."""
    _some(prediction)
    target = as_floating(target, prediction)
    residual = squared_loss(prediction.detach(), target).sum()
    total = squared_loss(target.mean().expand_as(target), target).sum()
    if not total > 0:
        raise Mistake(f"expected targets that vary, came {target.numel()} of one value; R^2 is undefined there, use the RMSE")
    return 1 - float(residual / total)


def _some(examples: Tensor) -> None:
    if examples.numel() == 0:
        raise Mistake("expected at least one example to measure, came none; leave out empty data sets")
