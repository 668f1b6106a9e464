"""Tables in text: `csv:PATH`, and the columns that a trained model needs of one.

One header line that names the columns, then numbers; only the target column, and columns that are left out, may hold
text. Cells are separated by commas, semicolons or tabs; where semicolons separate them, numbers may have decimal commas
throughout.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from quoin.data.dataset import Dataset, number_targets, text_targets
from quoin.data.files import quoted
from quoin.data.files_csv_cells import Cells, read_cells
from quoin.data.files_csv_text import Table, listed, open_table
from quoin.errors import UserError, did_you_mean, format_value

__all__ = ["load_csv", "load_csv_columns", "read_csv_features", "read_csv_points"]

_TARGET_NAMES = ("target", "label", "y")  # what the target column may be called when none is named


def load_csv(path: str, target: str | None, ignore: Sequence[str] = ()) -> Dataset:
    """The table at `path` with the column `target` to be predicted from all others but those to `ignore`."""
    table = open_table(path)
    for name in ignore:
        _check_known(table, name)
    if target is not None and target in ignore:
        raise UserError(
            f"expected --ignore to spare the target, but {format_value(target)} is both: leave it out of one of them"
        )
    kept = [name for name in table.header if name not in ignore]
    aim = _target_name(table, kept, target)
    names = [name for name in kept if name != aim]
    if not names:
        raise UserError(
            f"expected feature columns beside the target {format_value(aim)} of {quoted(table.path)}, but there "
            "are none: add some"
        )
    return _dataset(path, table, names, aim, may_ignore=True)


def load_csv_columns(path: str, feature_names: Sequence[str], target: str | None, usual_target: str) -> Dataset:
    """The columns `feature_names` of the table at `path`, in that order, and its target: `target`, or the usual one if
    it is there."""
    table = open_table(path)
    if target is None and usual_target in table.header:
        target = usual_target
    aim = _target_name(table, [name for name in table.header if name not in feature_names or name == target], target)
    if aim in feature_names:
        raise UserError(
            f"expected a target that the model is not given, but {format_value(aim)} is one of its features: "
            "choose another target"
        )
    _column_indices(table, feature_names)
    return _dataset(path, table, feature_names, aim, may_ignore=False)


def read_csv_features(path: str | Path, feature_names: Sequence[str]) -> Float64[Tensor, "samples features"]:
    """The columns `feature_names` of the table at `path`, in that order; other columns are ignored."""
    table = open_table(path)
    return torch.from_numpy(read_cells(table, _column_indices(table, feature_names), None, may_ignore=False).features)


def read_csv_points(path: str | Path, ignore: Sequence[str] = ()) -> tuple[tuple[str, ...], np.ndarray]:
    """The names and the numbers (n, d) of all columns of the table at `path` but those to `ignore`."""
    table = open_table(path)
    for name in ignore:
        _check_known(table, name)
    names = [name for name in table.header if name not in ignore]
    if not names:
        raise UserError(f"expected columns of {quoted(table.path)} to learn from, but --ignore leaves none: spare some")
    return tuple(names), read_cells(table, _column_indices(table, names), None, may_ignore=True).features


def _dataset(path: str, table: Table, names: Sequence[str], aim: str, *, may_ignore: bool) -> Dataset:
    cells = read_cells(table, _column_indices(table, names), table.header.index(aim), may_ignore=may_ignore)
    targets, class_names = _targets(table, aim, cells)
    return Dataset(f"csv:{path}", torch.from_numpy(cells.features), targets, tuple(names), class_names, aim)


def _column_indices(table: Table, names: Sequence[str]) -> list[int]:
    """Where the columns `names` stand, or a UserError that lists the missing ones."""
    indices = {name: column for column, name in enumerate(table.header)}
    missing = [name for name in names if name not in indices]
    if missing:
        folded = {name.casefold(): name for name in table.header}
        twins = [name for name in missing if name.casefold() in folded]
        advice = "add what is missing"
        if twins:
            theirs, ours = folded[twins[0].casefold()], twins[0]
            what = "the column" if len(twins) == 1 else "the columns"
            advice = f"{format_value(theirs, 30)} and {format_value(ours, 30)} differ only in case; rename {what}"
        raise UserError(
            f"expected the column{'s' if len(missing) > 1 else ''} {listed(missing)} in {quoted(table.path)}, "
            f"but its columns are {listed(table.header)}: {advice}"
        )
    return [indices[name] for name in names]


def _target_name(table: Table, names: list[str], target: str | None) -> str:
    if target is not None:
        _check_known(table, target)
        return target
    usual = [name for name in _TARGET_NAMES if name in names]
    if len(usual) == 1:
        return usual[0]
    # Two usual names: to guess would leave the other one among the features and give the answer away.
    why = f"both {usual[0]!r} and {usual[1]!r}" if usual else f"no {', '.join(_TARGET_NAMES)} among {listed(names)}"
    raise UserError(f"expected to know the target column, but {quoted(table.path)} has {why}: name it with --target")


def _check_known(table: Table, name: str) -> None:
    if name not in table.header:
        raise UserError(
            f"expected a column {format_value(name)} in {quoted(table.path)}, but there is none: "
            f"{did_you_mean(name, table.header)}"
        )


def _targets(table: Table, name: str, cells: Cells) -> tuple[Tensor, tuple[str, ...] | None]:
    """The target column in its natural form; text is welcome, a missing value is not."""
    if cells.numbers is not None:
        return number_targets(cells.numbers)
    for line, label in zip(cells.lines, cells.labels):
        if not label or _is_boundless(label):
            got = f"got {format_value(label)}" if label else "the cell is empty"
            raise UserError(
                f"expected a class or a finite number on line {line}, column {format_value(name)} of "
                f"{quoted(table.path)}, but {got}: "
                "fill it or drop that row"
            )
    return text_targets(cells.labels)


def _is_boundless(label: str) -> bool:
    """NaN, an infinity or beyond float32: a number in form, so no class name, and of no use as a number."""
    try:
        return not abs(float(label)) <= float(np.finfo(np.float32).max)  # as numpy's own, comparing would warn
    except ValueError:
        return False
