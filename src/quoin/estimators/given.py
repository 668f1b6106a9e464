"""What an estimator is given, checked by scikit-learn's own checks and made into tensors: examples, targets and
weights.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import validation
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from quoin.errors import UserError

__all__ = [
    "ClassWeight",
    "Examples",
    "HasClasses",
    "HasIntercept",
    "RandomState",
    "as_tensor",
    "check_classification_input",
    "check_predict_input",
    "check_range",
    "check_regression_input",
    "validate_data",
]

KINDS = (np.float64, np.float32)
validate_data: Callable[..., Any] = validation.validate_data  # without types, and its defaults suggest wrong ones

ClassWeight = dict[Any, float] | Literal["balanced"] | None  # by label
RandomState = int | np.random.RandomState | None


class HasIntercept(Protocol):
    """An estimator that says whether its rows are to be centred."""

    fit_intercept: bool


class HasClasses(HasIntercept, Protocol):
    """An estimator that keeps the labels of its classes in order."""

    classes_: np.ndarray


class Examples(NamedTuple):
    """Rows to fit, less their mean where there is a bias: it then stands apart from the weights."""

    X: Float[Tensor, "examples features"]
    center: Float[Tensor, "features"]
    weights: Float[Tensor, "examples"]  # which sum to one

    def bias_for(
        self, weight: Float[Tensor, "features *outputs"], bias: Float[Tensor, "*outputs"]
    ) -> Float[Tensor, "*outputs"]:
        """The bias for rows as given, given the one for centred rows."""
        return bias - self.center.double() @ weight


def check_regression_input(
    estimator: HasIntercept, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Examples, Float[Tensor, "examples"]]:
    """Examples and numbers y, as given."""
    rows, y = _validated(estimator, X, y, y_numeric=True)
    return _examples(estimator, rows, sample_weight), as_tensor(np.asarray(y, dtype=rows.dtype))


def check_classification_input(
    estimator: HasClasses,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    class_weight: ClassWeight = None,
    *,
    binary: bool = False,
) -> tuple[Examples, Int[Tensor, "examples"]]:
    """Examples and the numbers of their classes; `classes_` of the estimator is set to the labels in order."""
    rows, y = _validated(estimator, X, y, y_numeric=False)
    check_classification_targets(y)
    estimator.classes_, labels = np.unique(y, return_inverse=True)
    if len(estimator.classes_) < 2:
        raise UserError(
            f"expected at least two classes, got one class only ({estimator.classes_[0]!r}); give examples of "
            "another too"
        )
    if binary and len(estimator.classes_) > 2:
        kind = type_of_target(y)
        # The first sentence is the one that scikit-learn's checks listen for.
        raise UserError(f"Only binary classification is supported. Came a {kind} target; take SoftmaxClassifier")
    if class_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, rows) * compute_sample_weight(class_weight, y)
    examples = _examples(estimator, rows, sample_weight)
    weights = torch.bincount(torch.from_numpy(labels), weights=examples.weights, minlength=len(estimator.classes_))
    if (weights > 0).sum() < 2:
        raise UserError(
            "expected examples of at least two classes with a weight above 0, got one class only; weigh another too"
        )
    return examples, torch.from_numpy(labels)


def check_predict_input(estimator: BaseEstimator, X: ArrayLike) -> Float[Tensor, "examples features"]:
    """Rows to predict for, of as many features as were fitted."""
    return as_tensor(np.asarray(validate_data(estimator, X, dtype=KINDS, reset=False)))


def as_tensor(values: np.ndarray) -> Shaped[Tensor, "..."]:
    """The same numbers without a copy where they lie in order and may be written to."""
    values = np.ascontiguousarray(values)
    return torch.from_numpy(values if values.flags.writeable else values.copy())


def check_range(name: str, value: float, *, above: float | None = None, at_least: float | None = None) -> None:
    """Raise an error for a number that is out of its range, when it is used: scikit-learn asks that constructors check
    nothing.

    A bound that is a whole number, 1 and not 1.0, asks for whole numbers.
    """
    kinds = (int, np.integer) if isinstance(at_least, int) else (int, float, np.integer, np.floating)
    number = isinstance(value, kinds) and np.isfinite(value)
    if not number or (above is not None and not value > above) or (at_least is not None and not value >= at_least):
        bound = f"above {above}" if above is not None else f"of at least {at_least}"
        bound += ", a whole number" if isinstance(at_least, int) else ""
        raise UserError(f"expected {name} {bound}, got {value!r}; give such a number")


def _validated(
    estimator: HasIntercept, X: ArrayLike, y: ArrayLike, *, y_numeric: bool
) -> tuple[np.ndarray, np.ndarray]:
    rows, targets = validate_data(estimator, X, y, dtype=KINDS, y_numeric=y_numeric)
    return np.asarray(rows), np.asarray(targets)


def _examples(estimator: HasIntercept, X: np.ndarray, sample_weight: ArrayLike | None) -> Examples:
    rows = as_tensor(X)
    weights = as_tensor(_check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True))
    total = weights.sum(dtype=torch.float64)
    if not total > 0:
        raise UserError(
            "expected at least one example with a weight above 0, got none; give sample_weight with positive entries"
        )
    weights = (weights / total).to(rows.dtype)
    if not estimator.fit_intercept:
        return Examples(rows, rows.new_zeros(rows.shape[1]), weights)
    center = weights @ rows
    return Examples(rows - center, center, weights)
