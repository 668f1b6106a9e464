"""Numbers to watch of predicted labels: take `logits.argmax(-1)` first.

`zero_one_loss` (per example) and `confusion_matrix` (counts) may be added up over batches and ranks; `accuracy` is of a whole
data set.   n examples, q classes
"""

import torch
from torch import Tensor

from quoin.metrics.regression import check_some
from quoin.tensor import check_labels, check_shapes

__all__ = ["accuracy", "confusion_matrix", "zero_one_loss"]


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
    check_some(predicted)
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
