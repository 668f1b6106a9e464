"""The small real data sets that scikit-learn carries inside itself: nothing is fetched."""

from typing import Any

import numpy as np
import torch

from quoin.data.dataset import Dataset, column_names

__all__ = ["load_embedded"]


def load_embedded(name: str) -> Dataset:
    """One of digits, iris, wine, breast-cancer and diabetes, as measured: no statistic of the whole set is used to
    scale it."""
    from sklearn import datasets  # slow to import, so only when needed

    match name:
        case "digits":
            return _digits(datasets.load_digits())
        case "iris":
            return _table(name, datasets.load_iris())
        case "wine":
            return _table(name, datasets.load_wine())
        case "breast-cancer":
            return _table(name, datasets.load_breast_cancer())
        case "diabetes":
            # scaled=True would standardise with the test rows too.
            return _diabetes(datasets.load_diabetes(scaled=False))
        case _:
            raise ValueError(f"scikit-learn carries no data set {name!r}")


def _digits(bunch: Any) -> Dataset:
    images = torch.from_numpy(bunch.images.astype(np.float32))[:, None] / 16  # ink is counted from 0 to 16
    targets = torch.from_numpy(bunch.target.astype(np.int64))
    return Dataset(
        "digits", images, targets, column_names(images.shape[1:]), tuple(str(digit) for digit in range(10)), ("digit",)
    )


def _diabetes(bunch: Any) -> Dataset:
    features, targets = (
        torch.from_numpy(bunch.data.astype(np.float32)),
        torch.from_numpy(bunch.target.astype(np.float32)),
    )
    return Dataset("diabetes", features, targets, tuple(bunch.feature_names), None, ("progression",))


def _table(name: str, bunch: Any) -> Dataset:
    features, targets = torch.from_numpy(bunch.data.astype(np.float32)), torch.from_numpy(bunch.target.astype(np.int64))
    classes = tuple(str(label) for label in bunch.target_names)
    return Dataset(name, features, targets, tuple(str(column) for column in bunch.feature_names), classes, ("class",))
