"""What a face is given, checked by scikit-learn's own checks and turned into tensors: examples, targets and weights.

n examples, d features
"""

from typing import NamedTuple

import numpy as np
import torch
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, validate_data
from torch import Tensor

from quoin.errors import Mistake

__all__ = ["Examples", "as_tensor", "given_classes", "given_numbers", "given_rows", "hold"]

KINDS = (np.float64, np.float32)


class Examples(NamedTuple):
    """Rows to fit, less their mean where there is a bias: it then stands apart from the weights."""

    X: Tensor  # (n, d)
    centre: Tensor  # (d,)
    weights: Tensor  # (n,), which sum to one

    def bias_for(self, weight: Tensor, bias: Tensor) -> Tensor:  # (d, ...), (...) -> (...)
        """The bias for rows as they came, given the one for centred rows."""
        return bias - self.centre.double() @ weight


def given_numbers(face, X, y, sample_weight) -> tuple[Examples, Tensor]:
    """Examples and numbers y (n,), as they came."""
    rows, y = _validated(face, X, y, y_numeric=True)
    return _examples(face, rows, sample_weight), as_tensor(np.asarray(y, dtype=rows.dtype))


def given_classes(face, X, y, sample_weight, class_weight=None, *, binary: bool = False) -> tuple[Examples, Tensor]:
    """Examples and the numbers of their classes (n,); `classes_` of the face is set to the labels in order."""
    rows, y = _validated(face, X, y, y_numeric=False)
    check_classification_targets(y)
    face.classes_, labels = np.unique(y, return_inverse=True)
    if len(face.classes_) < 2:
        raise Mistake(f"expected at least two classes, came one class only ({face.classes_[0]!r}); give examples of another too")
    if binary and len(face.classes_) > 2:
        kind = type_of_target(y)
        # The first sentence is the one that scikit-learn's checks listen for.
        raise Mistake(f"Only binary classification is supported. Came a {kind} target; take SoftmaxClassifier")
    if class_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, rows) * compute_sample_weight(class_weight, y)
    examples = _examples(face, rows, sample_weight)
    weights = torch.bincount(torch.from_numpy(labels), weights=examples.weights, minlength=len(face.classes_))
    if (weights > 0).sum() < 2:
        raise Mistake("expected examples of at least two classes with a weight above 0, came one class only; weigh another too")
    return examples, torch.from_numpy(labels)


def given_rows(face, X) -> Tensor:
    """Rows to predict for, of as many features as were fitted."""
    return as_tensor(np.asarray(validate_data(face, X, dtype=KINDS, reset=False)))


def as_tensor(values: np.ndarray) -> Tensor:
    """The same numbers without a copy where they lie in order and may be written to."""
    values = np.ascontiguousarray(values)
    return torch.from_numpy(values if values.flags.writeable else values.copy())


def hold(name: str, value: float, *, above: float | None = None, at_least: float | None = None) -> None:
    """Refuse a number that is out of its range, when it is used: scikit-learn asks that constructors check nothing.

    A bound that is a whole number, 1 and not 1.0, asks for whole numbers.
    """
    kinds = (int, np.integer) if isinstance(at_least, int) else (int, float, np.integer, np.floating)
    number = isinstance(value, kinds) and np.isfinite(value)
    if not number or (above is not None and not value > above) or (at_least is not None and not value >= at_least):
        bound = f"above {above}" if above is not None else f"of at least {at_least}"
        bound += ", a whole number" if isinstance(at_least, int) else ""
        raise Mistake(f"expected {name} {bound}, came {value!r}; give such a number")


def _validated(face, X, y, *, y_numeric: bool) -> tuple[np.ndarray, np.ndarray]:
    rows, targets = validate_data(face, X, y, dtype=KINDS, y_numeric=y_numeric)
    return np.asarray(rows), np.asarray(targets)


def _examples(face, X: np.ndarray, sample_weight) -> Examples:
    rows = as_tensor(X)
    weights = as_tensor(_check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True))
    total = weights.sum(dtype=torch.float64)
    if not total > 0:
        raise Mistake("expected at least one example with a weight above 0, came none; give sample_weight with positive entries")
    weights = (weights / total).to(rows.dtype)
    if not face.fit_intercept:
        return Examples(rows, rows.new_zeros(rows.shape[1]), weights)
    centre = weights @ rows
    return Examples(rows - centre, centre, weights)
