"""Signals: rows of numbers in order, of one or several channels and all of one length; `signals:PATH`.

A table is read as signals of one channel, its feature columns in their order the steps. An archive holds `features`
(n, channels, length), or (n, length) of one channel; as npz:PATH the same array would be grey images.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from quoin.data.dataset import Dataset
from quoin.data.files_csv import load_csv
from quoin.data.files_npz import load_npz_signals
from quoin.errors import UserError, format_value

__all__ = ["as_signals", "load_signals"]


def load_signals(path: str, target: str | None = None, ignore: Sequence[str] = ()) -> Dataset:
    """The signals in the table or the .npz archive at `path`.

    Args:
        target: The target column of a table; unless given, as for a table that is none of signals.
        ignore: Columns of a table to leave out.
    """
    if not is_archive(path):
        return as_signals(dataclasses.replace(load_csv(path, target, ignore), name=f"signals:{path}"))
    if target is not None or ignore:
        flag = "--target" if target is not None else "--ignore"
        raise UserError(
            f"columns can be named of a table only, but {format_value(path, 200)} is an archive: leave {flag} out"
        )
    return as_signals(load_npz_signals(path))


def is_archive(path: str | Path) -> bool:
    """Whether signals are read from `path` as arrays, not as a table."""
    return Path(path).suffix.lower() == ".npz"


def as_signals(dataset: Dataset) -> Dataset:
    """`dataset` as a model of signals needs it: a table becomes signals of one channel, its columns in order the steps;
    images, and signals of a single step, are a UserError.
    """
    if dataset.image_shape is not None:
        raise UserError(
            f"expected signals, got images {dataset.image_shape} in {format_value(dataset.name, 200)}: use an image "
            "recipe such as lenet, or give a 3-D array as signals:PATH"
        )
    if dataset.features.shape[-1] < 2:
        raise UserError(
            f"expected signals of two steps or more, got {dataset.features.shape[-1]} in "
            f"{format_value(dataset.name, 200)}: put all steps of a signal into its row"
        )
    if dataset.signal_shape is not None:
        return dataset
    return dataclasses.replace(dataset, features=one_channel(dataset.features))


def one_channel(rows: Float[Tensor, "samples length"]) -> Float[Tensor, "samples 1 length"]:
    """Rows of numbers as signals of one channel; a view, no copy."""
    return rows.unsqueeze(1)
