"""Numbers to watch of predicted labels: take `logits.argmax(-1)` first.

`zero_one_loss` (per example) and `confusion_matrix` (counts) may be added up over batches and ranks; `accuracy` is of a
whole data set.
"""

import torch
from jaxtyping import Float, Int, Integer, Shaped
from torch import Tensor

from quoin.metrics.regression import check_some
from quoin.tensor import check_labels, check_shapes

__all__ = ["accuracy", "confusion_matrix", "zero_one_loss"]


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
