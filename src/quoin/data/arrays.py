"""Arrays, data frames and lists as tensors: what a program has in memory before it is a tensor.

A data frame is anything with `columns` whose columns have `to_numpy`, as those of pandas and polars do; neither is
imported here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from quoin.data.dataset import text_targets
from quoin.errors import UserError, did_you_mean, format_value

__all__ = ["TargetColumns", "as_tensors", "frame_features", "is_frame", "split_frame", "target_tensor"]


class TargetColumns(NamedTuple):
    """Targets, and the names of their classes where they were text."""

    targets: Any
    class_names: tuple[str, ...] | None


def is_frame(value: object) -> bool:
    """Whether this is a data frame."""
    return hasattr(value, "columns") and hasattr(value, "to_numpy") and hasattr(value, "__getitem__")


def as_tensors(value: Any, dtype: torch.dtype, what: str) -> Any:
    """The tensors of an input: arrays and frames converted, floating-point ones to `dtype`; tensors as they are.

    Args:
        what: What it is called in an error, such as "the inputs".
    """
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, Mapping):
        return {name: as_tensors(each, dtype, f"{what} {name!r}") for name, each in value.items()}
    if isinstance(value, tuple):
        return tuple(as_tensors(each, dtype, f"{what} {number}") for number, each in enumerate(value))
    if is_frame(value):
        return frame_features(value, [str(name) for name in value.columns], dtype)
    return _tensor(_array(value, what), dtype, what)


def target_tensor(value: Any, dtype: torch.dtype, class_names: tuple[str, ...] | None = None) -> TargetColumns:
    """The targets as tensors; text becomes class numbers, in alphabetical order or that of `class_names`."""
    if isinstance(value, (Tensor, Mapping, tuple)):
        return TargetColumns(as_tensors(value, dtype, "the targets"), None)
    if is_frame(value):
        names = [str(name) for name in value.columns]
        if len(names) > 1:
            return TargetColumns(frame_features(value, names, dtype), None)
        value = value[value.columns[0]]
    array = _array(value, "the targets")
    if array.dtype.kind in "UO" and array.ndim == 1 and all(isinstance(each, str) for each in array.tolist()):
        return TargetColumns(*_classes(array.tolist(), class_names))
    found = _tensor(array, dtype, "the targets")
    return TargetColumns(found.long() if found.dtype is torch.uint8 else found, None)


def _classes(labels: list[str], class_names: tuple[str, ...] | None) -> tuple[Tensor, tuple[str, ...]]:
    if class_names is None:
        return text_targets(labels)
    known = {name: number for number, name in enumerate(class_names)}
    if strange := [label for label in labels if label not in known]:
        raise UserError(
            f"class {format_value(strange[0])} is none of the training data: {did_you_mean(strange[0], class_names)}"
        )
    return torch.tensor([known[label] for label in labels]), class_names


def split_frame(
    frame: Any,
    target: str | Sequence[str] | None,
    dtype: torch.dtype,
    *,
    feature_names: Sequence[str] = (),
    class_names: tuple[str, ...] | None = None,
) -> tuple[Shaped[Tensor, "rows columns"], TargetColumns]:
    """Features and targets of a data frame, whose target columns are named; the features are all others, unless they
    are named too."""
    names = [str(name) for name in frame.columns]
    if target is None:
        raise UserError("expected a target column of the data frame, got none: say which with target='...'")
    targets = [target] if isinstance(target, str) else list(target)
    if strange := [each for each in targets if each not in names]:
        raise UserError(f"the data frame has no column {format_value(strange[0])}: {did_you_mean(strange[0], names)}")
    features = frame_features(frame, feature_names or [name for name in names if name not in targets], dtype)
    if len(targets) > 1:
        return features, TargetColumns(frame_features(frame, targets, dtype), None)
    return features, target_tensor(frame[_column(frame, targets[0])], dtype, class_names)


def frame_features(frame: Any, names: Sequence[str], dtype: torch.dtype) -> Shaped[Tensor, "rows columns"]:
    """These columns of a frame side by side, as numbers."""
    if not names:
        raise UserError("expected columns to learn from, got none beside the target: give a frame with more columns")
    there = [str(name) for name in frame.columns]
    if missing := [name for name in names if name not in there]:
        raise UserError(f"the data frame has no column {format_value(missing[0])}: {did_you_mean(missing[0], there)}")
    columns = [_numbers(frame[_column(frame, name)], name) for name in names]
    return torch.from_numpy(np.stack(columns, axis=1)).to(dtype)


def _column(frame: Any, name: str) -> Any:
    """The column's own name, which need not be text."""
    return next(each for each in frame.columns if str(each) == name)


def _numbers(column: Any, name: str) -> np.ndarray:
    values = np.asarray(column.to_numpy())
    if values.dtype.kind not in "fiub":
        raise UserError(
            f"column {format_value(name)} holds {_kind(values)}, expected numbers: encode it as numbers or leave it out"
        )
    numbers = values.astype(np.float64)
    if np.isnan(numbers).any():
        row = int(np.isnan(numbers).argmax())
        raise UserError(
            f"column {format_value(name)} has a missing cell in row {row}: fill it or leave the row out before the fit"
        )
    return numbers


def _array(value: Any, what: str) -> np.ndarray:
    found = value.to_numpy() if hasattr(value, "to_numpy") else value
    try:
        return np.asarray(found)
    except (ValueError, TypeError) as error:
        raise UserError(f"expected {what} as an array or tensor, got {type(value).__name__} ({error})") from None


def _tensor(array: np.ndarray, dtype: torch.dtype, what: str) -> Tensor:
    if array.dtype.kind not in "fiub" or array.ndim == 0:
        got = f"{_kind(array)} of shape {array.shape}" if array.ndim else f"a single {type(array[()]).__name__}"
        raise UserError(f"expected {what} as an array of numbers or a tensor, got {got}: convert it first")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    if array.dtype.kind in "iu" and array.dtype != np.uint8:
        array = array.astype(np.int64)
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    found = torch.from_numpy(array)
    return found.to(dtype) if found.is_floating_point() else found


def _kind(array: np.ndarray) -> str:
    return {"U": "text", "O": "objects", "M": "dates", "m": "durations"}.get(array.dtype.kind, str(array.dtype))
