"""Errors on data held out from a fit: by folds, by the number of examples, and over the epochs.

`fit(x, y)` gives back a model, a function of x. Rows come from `quoin.data.kfold` or anywhere else.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float64, Int, Integer, Shaped
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.metrics.risk import held_out_loss
from quoin.tensor.labels import as_indices

__all__ = ["CrossValidation", "EarlyStop", "LearningCurve", "cross_validate", "early_stop", "learning_curve"]

Fit = Callable[[Tensor, Tensor], Callable[[Tensor], Tensor]]
Loss = Callable[[Tensor, Tensor], Tensor]


@shown
class CrossValidation(NamedTuple):
    """The errors of each fold and their means."""

    training_error: float
    validation_error: float
    training_errors: Float64[Tensor, "folds"]
    validation_errors: Float64[Tensor, "folds"]


@shown
class LearningCurve(NamedTuple):
    """Errors of fits to the first few examples and to more of them."""

    sizes: Int[Tensor, "sizes"]
    training_errors: Float64[Tensor, "sizes"]
    test_errors: Float64[Tensor, "sizes"]


@shown
class EarlyStop(NamedTuple):
    """Epochs are counted from 0."""

    best_epoch: int
    last_epoch: int  # after which training stops
    stopped: bool  # before the errors ran out


def cross_validate(
    fit: Fit,
    loss: Loss,
    x: Shaped[Tensor, "examples ..."],
    y: Shaped[Tensor, "examples ..."],
    folds: Iterable[tuple[Integer[Tensor, "_train"], Integer[Tensor, "_validation"]]],
) -> CrossValidation:
    """Fit on each fold's training rows, measure there and on its validation rows, and average both errors over the
    folds.

    Args:
        fit: Takes x and y to a fitted model, itself a function of x.
        loss: Takes predictions and targets to one number for each example, not to their mean.
        folds: Training and validation rows of each, as `quoin.data.kfold` gives them.

    >>> from quoin.losses import squared_loss
    >>> x, y = torch.zeros(4), torch.tensor([1.0, 2.0, 3.0, 4.0])
    >>> folds = [(torch.tensor([2, 3]), torch.tensor([0, 1])), (torch.tensor([0, 1]), torch.tensor([2, 3]))]
    >>> result = cross_validate(lambda x, y: lambda x, mean=y.mean(): mean.expand(len(x)), squared_loss, x, y, folds)
    >>> result.training_error, result.validation_error
    (0.125, 2.125)

    Notes: Z3.28, Z3.26.
    """
    errors = []
    for number, rows in enumerate(folds):
        train, validation = (as_indices(each, "the rows of a fold") for each in rows)
        if len(both := set(train.tolist()) & set(validation.tolist())):
            raise UserError(
                "expected disjoint train and validation rows in a fold, "
                f"got row {min(both)} in both of fold {number}; drop one"
            )
        model = fit(x[train], y[train])
        errors.append([held_out_loss(model, loss, x[rows], y[rows]) for rows in (train, validation)])
    if not errors:
        raise UserError("expected at least one fold, got none; make them with quoin.data.kfold")
    training, validation = torch.tensor(errors, dtype=torch.float64).T
    return CrossValidation(float(training.mean()), float(validation.mean()), training, validation)


def learning_curve(
    fit: Fit,
    loss: Loss,
    train: tuple[Shaped[Tensor, "train ..."], Shaped[Tensor, "train ..."]],
    test: tuple[Shaped[Tensor, "test ..."], Shaped[Tensor, "test ..."]],
    sizes: Sequence[int],
) -> LearningCurve:
    """Training and test error of fits to the first m training examples, for each m of `sizes`; shuffle them first if
    they are sorted.

    Args:
        fit: Takes x and y to a fitted model, itself a function of x.
        loss: Takes predictions and targets to one number for each example, not to their mean.

    Notes: Z3.29.
    """
    x, y = train
    if not sizes or not all(1 <= size <= len(y) for size in sizes):
        raise UserError(
            f"expected numbers of examples from 1 to {len(y)}, got {list(sizes)}; choose among those there are"
        )
    errors = []
    for size in sizes:
        model = fit(x[:size], y[:size])
        errors.append([held_out_loss(model, loss, x[:size], y[:size]), held_out_loss(model, loss, *test)])
    training, unseen = torch.tensor(errors, dtype=torch.float64).T
    return LearningCurve(torch.tensor(list(sizes)), training, unseen)


def early_stop(validation_errors: Sequence[float], patience: int) -> EarlyStop:
    """Stop after `patience` epochs in a row without a smaller validation error, and go back to the epoch of the
    smallest.

    The rule of `quoin train --patience`, on errors already known.

    >>> early_stop([0.9, 0.5, 0.6, 0.7, 0.1], patience=2)
    EarlyStop(best_epoch=1, last_epoch=3, stopped=True)

    Notes: Z5.21.
    """
    if patience < 1 or not validation_errors or any(map(math.isnan, validation_errors)):
        raise UserError(
            "expected a patience of at least 1 and errors that are numbers, "
            f"got {patience} and {len(validation_errors)} errors"
        )
    best = 0
    for epoch, error in enumerate(validation_errors):
        if error < validation_errors[best]:
            best = epoch
        elif epoch - best >= patience:
            return EarlyStop(best, epoch, epoch < len(validation_errors) - 1)
    return EarlyStop(best, len(validation_errors) - 1, False)
