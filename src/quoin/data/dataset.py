"""What every source gives back: features and targets in memory, with the names a report needs.

A source states its targets in their natural form: text, and whole numbers with few distinct values, are classes; other
numbers are numbers. A recipe then asks for the form it can learn with `as_classes` or `as_regression`. Classes whose
names are numbers serve as both, until there are so many of them, with so few rows each, that only a measurement
explains them.
"""

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from quoin.data.csv_text import finite_number
from quoin.data.dataset_html import dataset_html, describe_dataset
from quoin.data.stored_images import StoredImages
from quoin.data.table_columns import Column
from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.tensor.labels import as_indices

__all__ = [
    "MAX_CLASSES",
    "Dataset",
    "as_classes",
    "as_regression",
    "column_names",
    "number_targets",
    "text_targets",
]

MAX_CLASSES = 1000
_FEW_NUMERALS = 10  # so many classes may be named by numbers however few rows there are
_COUNTED = 1 << 16  # a range of whole numbers that is looked through by counting
_HASHED = 1 << 16  # rows hashed at once
_ROWS_A_NUMERAL = 5  # beyond that, they need so many rows each on average


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of features with one target each; `class_names` is None exactly when the targets are numbers."""

    name: str
    # Of a table or of signals, float64 as in the file or float32; or images scaled to [0, 1], float32,
    # perhaps stored in a file.
    features: (
        Float[Tensor, "samples features"]
        | Float[Tensor, "samples channels length"]
        | Float[Tensor, "samples channels height width"]
    )
    # int64 for classes, float64 or float32 for numbers; several numbers a row where there are several targets.
    targets: Real[Tensor, "samples"] | Float[Tensor, "samples targets"]
    feature_names: tuple[str, ...]  # one a feature; images and signals in the order of their flattened numbers, or none
    class_names: tuple[str, ...] | None
    target_names: tuple[str, ...] = ("target",)
    test_start: int | None = None  # rows from here on are the source's own test split
    validation_start: int | None = None  # and from here, up to those, its own validation split
    # Of a table: what each column of `features` is. NaN is then a missing cell, and a category is the number of its
    # level; `prepare` makes features of them. Empty where the features are numbers, ready to use.
    columns: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        floats = (torch.float32, torch.float64)
        if isinstance(self.target_names, str):
            raise TypeError(f"target_names are a tuple, got {self.target_names!r}")
        if self.features.ndim not in (2, 3, 4) or self.features.dtype not in (
            floats if self.features.ndim < 4 else floats[:1]
        ):
            got = f"{self.features.dtype} {tuple(self.features.shape)}"
            raise ValueError(f"features must be floats (n, d), (n, c, length) or float32 (n, c, h, w), got {got}")
        kinds = floats if self.class_names is None else (torch.int64,)
        shape = (self.num_rows,) if len(self.target_names) == 1 else (self.num_rows, len(self.target_names))
        if self.targets.shape != shape or self.targets.dtype not in kinds:
            raise ValueError(
                f"targets must be {kinds[0]} {shape}, got {self.targets.dtype} {tuple(self.targets.shape)}"
            )
        if len(self.feature_names) != self.num_features and (self.feature_names or self.image_shape is None):
            raise ValueError(f"{self.num_features} features need as many names, got {len(self.feature_names)}")
        if self.test_start is not None and not 0 < self.test_start < self.num_rows:
            raise ValueError(f"test_start must lie inside {self.num_rows} rows, got {self.test_start}")
        end = self.num_rows if self.test_start is None else self.test_start
        if self.validation_start is not None and not 0 < self.validation_start < end:
            raise ValueError(f"validation_start must lie inside {end} rows, got {self.validation_start}")

    def __repr__(self) -> str:
        return f"Dataset({format_value(self.name)}, {describe_dataset(self)})"[:200]

    def _repr_html_(self) -> str:
        return dataset_html(self)

    @property
    def target_name(self) -> str:
        """The target, or all of them in a row, as a message names it."""
        return ", ".join(self.target_names)

    @property
    def num_rows(self) -> int:
        return self.features.shape[0]

    @property
    def num_features(self) -> int:
        return math.prod(self.features.shape[1:])

    @property
    def is_classification(self) -> bool:
        return self.class_names is not None

    @property
    def num_classes(self) -> int:
        if self.class_names is None:
            raise ValueError(f"the targets of {self.name} are numbers and have no classes")
        return len(self.class_names)

    @property
    def image_shape(self) -> tuple[int, int, int] | None:
        """(c, h, w) of one image, or None for a table or signals."""
        if self.features.ndim != 4:
            return None
        _, channels, height, width = self.features.shape
        return channels, height, width

    @property
    def signal_shape(self) -> tuple[int, int] | None:
        """(channels, length) of one signal, or None for a table or images."""
        if self.features.ndim != 3:
            return None
        _, channels, length = self.features.shape
        return channels, length

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content, not of the name: a resumed run sees that its data changed, not that they moved."""
        names = (
            self.feature_names,
            self.class_names,
            self.test_start,
            self.validation_start,
            *(each.levels for each in self.columns if each.levels),
        )
        digest = hashlib.sha256(repr((tuple(self.features.shape), names)).encode("utf-8", "surrogatepass"))
        if isinstance(self.features, StoredImages):  # known since they were decoded
            digest.update(self.features.decoded.content_hash.encode())
        else:
            for rows in self.features.split(_HASHED):  # a table lies by columns: a whole copy would take its size again
                digest.update(rows.contiguous().cpu().numpy().data)
        digest.update(self.targets.contiguous().cpu().numpy().data)
        return digest.hexdigest()

    def take(self, index: Int[Tensor, "rows"]) -> "Dataset":
        """The rows at `index`, in that order; the source's own splits are no longer known."""
        index = as_indices(index)
        features = self.features.take(index) if isinstance(self.features, StoredImages) else self.features[index]
        return dataclasses.replace(
            self, features=features, targets=self.targets[index], test_start=None, validation_start=None
        )


def as_classes(dataset: Dataset) -> Dataset:
    """`dataset` as a classifier needs it, or a UserError when its targets are numbers, of one class or of far too many.

    More than 10 classes named by whole numbers, with fewer than 5 rows each on average, are taken for numbers: the 442
    whole numbers of diabetes have 214 values, 2 rows each, while 40 people with 10 portraits each stay classes.
    """
    target = f"the target {format_value(dataset.target_name)} of {format_value(dataset.name, 200)}"
    if dataset.class_names is None:
        example = f"{dataset.targets.flatten()[0].item():g}"
        raise UserError(
            f"expected classes, but {target} holds numbers such as {example}: "
            "use a regression recipe, such as `quoin train mlp-regression`, or another target"
        )
    if len(dataset.class_names) < 2:
        raise UserError(
            f"expected two or more classes, but {target} has only {format_value(', '.join(dataset.class_names))}: "
            "add rows of another class"
        )
    if len(dataset.class_names) > MAX_CLASSES:
        raise UserError(
            f"expected at most {MAX_CLASSES} classes, but {target} has {len(dataset.class_names)}: choose another "
            "target"
        )
    if _are_measurements(dataset.class_names, dataset.num_rows):
        raise UserError(
            f"expected classes, but {target} holds {len(dataset.class_names)} different whole numbers in "
            f"{dataset.num_rows} rows: "
            "use `quoin train mlp-regression`, or write the classes as words"
        )
    return dataset


def _are_measurements(class_names: tuple[str, ...], num_rows: int) -> bool:
    few_rows = num_rows < _ROWS_A_NUMERAL * len(class_names)
    return (
        len(class_names) > _FEW_NUMERALS and few_rows and all(finite_number(name) is not None for name in class_names)
    )


def as_regression(dataset: Dataset) -> Dataset:
    """`dataset` with numbers as targets: classes whose names are numbers become those numbers, others are a
    UserError."""
    if dataset.class_names is None:
        return dataset
    numbers = [finite_number(name) for name in dataset.class_names]
    values = torch.tensor([math.nan if number is None else number for number in numbers], dtype=torch.float64)[
        dataset.targets
    ]
    if values.isnan().any():
        row = int(values.isnan().nonzero()[0])
        text = format_value(dataset.class_names[int(dataset.targets[row])])
        raise UserError(
            f"expected numbers, but the target {format_value(dataset.target_name)} of "
            f"{format_value(dataset.name, 200)} "
            f"holds {text} (row {row + 1}): "
            "use a classification recipe or another target"
        )
    return dataclasses.replace(dataset, targets=values, class_names=None)


def text_targets(labels: Sequence[str]) -> tuple[Int[Tensor, "samples"], tuple[str, ...]]:
    """Class numbers of text labels, the classes in alphabetical order."""
    names = tuple(sorted(set(labels)))
    numbers = {name: number for number, name in enumerate(names)}
    return torch.tensor([numbers[label] for label in labels], dtype=torch.int64), names


def number_targets(values: np.ndarray) -> tuple[Real[Tensor, "samples"], tuple[str, ...] | None]:
    """Classes, in numerical order, if the values are whole numbers with at most MAX_CLASSES distinct ones; else the
    numbers."""
    low, high = values.min(), values.max()
    whole = max(abs(low), abs(high)) < 2**53 and np.all(values == np.round(values))  # beyond, two may be one
    if whole and high - low < _COUNTED:
        counted = values.astype(np.int64) - int(low)
        found = np.bincount(counted) > 0  # by counting, which sorting a million values takes ten times
        distinct, numbers = np.flatnonzero(found) + low, (found.cumsum() - 1)[counted]
    else:
        distinct, numbers = np.unique(values, return_inverse=True)
    if len(distinct) <= MAX_CLASSES and whole:
        return torch.from_numpy(numbers.astype(np.int64)), tuple(str(int(value)) for value in distinct)
    return torch.from_numpy(values.astype(np.float64)), None


def column_names(shape: Sequence[int]) -> tuple[str, ...]:
    """Names where the source has none.

    >>> column_names((3,)), column_names((1, 1, 2)), column_names((2, 2))
    (('x0', 'x1', 'x2'), ('pixel_0_0', 'pixel_0_1'), ('step_0_0', 'step_0_1', 'step_1_0', 'step_1_1'))
    """
    if len(shape) == 1:
        return tuple(f"x{column}" for column in range(shape[0]))
    channels, *sizes = shape
    what = "pixel" if len(sizes) == 2 else "step"
    indices = ["_".join(map(str, index)) for index in np.ndindex(*sizes)]
    prefixes = [what] if channels == 1 else [f"{what}_{channel}" for channel in range(channels)]
    return tuple(f"{prefix}_{index}" for prefix in prefixes for index in indices)
