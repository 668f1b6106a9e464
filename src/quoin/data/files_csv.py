"""Tables in text: `csv:PATH`, and the columns that a trained model needs of one.

One header line that names the columns, then numbers; only the target column, and columns that are left out, may hold text.
Cells are parted by commas, semicolons or tabs; where semicolons part them, numbers may have decimal commas throughout.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from quoin.data.dataset import Dataset, number_targets, text_targets
from quoin.data.files import quoted
from quoin.data.files_csv_cells import Cells, read_cells
from quoin.data.files_csv_text import Table, listed, open_table
from quoin.errors import Mistake, nearest, shown

__all__ = ["load_csv", "load_csv_columns", "read_csv_features"]

_TARGET_NAMES = ("target", "label", "y")  # what the target column may be called when none is named


def load_csv(place: str, target: str | None, ignore: Sequence[str] = ()) -> Dataset:
    """The table at `place` with the column `target` to be predicted from all others but those to `ignore`."""
    table = open_table(place)
    for name in ignore:
        _check_known(table, name)
    if target is not None and target in ignore:
        raise Mistake(f"expected --ignore to spare the target, but {shown(target)} is both: leave it out of one of them")
    kept = [name for name in table.header if name not in ignore]
    aim = _target_name(table, kept, target)
    names = [name for name in kept if name != aim]
    if not names:
        raise Mistake(f"expected feature columns beside the target {shown(aim)} of {quoted(table.path)}, but there are none: add some")
    return _dataset(place, table, names, aim, may_ignore=True)


def load_csv_columns(place: str, feature_names: Sequence[str], target: str | None, usual_target: str) -> Dataset:
    """The columns `feature_names` of the table at `place`, in that order, and its target: `target`, or the usual one if it is there."""
    table = open_table(place)
    if target is None and usual_target in table.header:
        target = usual_target
    aim = _target_name(table, [name for name in table.header if name not in feature_names or name == target], target)
    if aim in feature_names:
        raise Mistake(f"expected a target that the model is not given, but {shown(aim)} is one of its features: choose another target")
    _places(table, feature_names)
    return _dataset(place, table, feature_names, aim, may_ignore=False)


def read_csv_features(place: str | Path, feature_names: Sequence[str]) -> Tensor:
    """The columns `feature_names` of the table at `place`, in that order, (n, d) float64; other columns are not looked at."""
    table = open_table(place)
    return torch.from_numpy(read_cells(table, _places(table, feature_names), None, may_ignore=False).features)


def _dataset(place: str, table: Table, names: Sequence[str], aim: str, *, may_ignore: bool) -> Dataset:
    cells = read_cells(table, _places(table, names), table.header.index(aim), may_ignore=may_ignore)
    targets, class_names = _targets(table, aim, cells)
    return Dataset(f"csv:{place}", torch.from_numpy(cells.features), targets, tuple(names), class_names, aim)


def _places(table: Table, names: Sequence[str]) -> list[int]:
    """Where the columns `names` stand, or a Mistake that lists the missing ones."""
    places = {name: column for column, name in enumerate(table.header)}
    missing = [name for name in names if name not in places]
    if missing:
        folded = {name.casefold(): name for name in table.header}
        twins = [name for name in missing if name.casefold() in folded]
        advice = "add what is missing"
        if twins:
            theirs, ours = folded[twins[0].casefold()], twins[0]
            what = "the column" if len(twins) == 1 else "the columns"
            advice = f"{shown(theirs, 30)} and {shown(ours, 30)} differ only in case; rename {what}"
        raise Mistake(
            f"expected the column{'s' if len(missing) > 1 else ''} {listed(missing)} in {quoted(table.path)}, "
            f"but its columns are {listed(table.header)}: {advice}"
        )
    return [places[name] for name in names]


def _target_name(table: Table, names: list[str], target: str | None) -> str:
    if target is not None:
        _check_known(table, target)
        return target
    usual = [name for name in _TARGET_NAMES if name in names]
    if len(usual) == 1:
        return usual[0]
    # Two usual names: to guess would leave the other one among the features and give the answer away.
    why = f"both {usual[0]!r} and {usual[1]!r}" if usual else f"no {', '.join(_TARGET_NAMES)} among {listed(names)}"
    raise Mistake(f"expected to know the target column, but {quoted(table.path)} has {why}: name it with --target")


def _check_known(table: Table, name: str) -> None:
    if name not in table.header:
        raise Mistake(f"expected a column {shown(name)} in {quoted(table.path)}, but there is none: {nearest(name, table.header)}")


def _targets(table: Table, name: str, cells: Cells) -> tuple[Tensor, tuple[str, ...] | None]:
    """The target column in its natural form; text is welcome, a missing value is not."""
    if cells.numbers is not None:
        return number_targets(cells.numbers)
    for line, label in zip(cells.lines, cells.labels):
        if not label or _is_boundless(label):
            came = f"got {shown(label)}" if label else "the cell is empty"
            raise Mistake(
                f"expected a class or a finite number on line {line}, column {shown(name)} of {quoted(table.path)}, but {came}: "
                "fill it or drop that row"
            )
    return text_targets(cells.labels)


def _is_boundless(label: str) -> bool:
    """NaN, an infinity or beyond float32: a number in form, so no class name, and of no use as a number."""
    try:
        return not abs(float(label)) <= float(np.finfo(np.float32).max)  # as numpy's own, comparing would warn
    except ValueError:
        return False
