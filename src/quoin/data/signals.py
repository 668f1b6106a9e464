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
from quoin.data.files_npz import load_npz_signals
from quoin.data.table_files import table_format
from quoin.data.tables import load_table
from quoin.errors import UserError, format_value

__all__ = ["as_signals", "load_signals"]


def load_signals(path: str, target: str | Sequence[str] | None = None, ignore: Sequence[str] = ()) -> Dataset:
    """The signals in the table or the .npz archive at `path`.

    Args:
        target: The target column of a table; unless given, as for a table that is none of signals.
        ignore: Columns of a table to leave out.
    """
    if not is_archive(path):
        table = load_table(table_format(path), path, target, ignore)
        return as_signals(dataclasses.replace(table, name=f"signals:{path}"))
    if target or ignore:
        flag = "--target" if target else "--ignore"
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
    if odd := [column for column in dataset.columns if column.kind != "number"]:
        raise UserError(
            f"expected numbers in every column of a signal, but {format_value(odd[0].name)} of "
            f"{format_value(dataset.name, 200)} is a {odd[0].kind}: leave it out with --ignore"
        )
    if dataset.columns and dataset.features.isnan().any():
        raise UserError(
            f"expected a number at every step, but signals of {format_value(dataset.name, 200)} have gaps: fill them, "
            "or drop those rows"
        )
    return dataclasses.replace(dataset, features=one_channel(dataset.features), columns=())


def one_channel(rows: Float[Tensor, "samples length"]) -> Float[Tensor, "samples 1 length"]:
    """Rows of numbers as signals of one channel; a view, no copy."""
    return rows.unsqueeze(1)
