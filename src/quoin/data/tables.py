"""Tables: `csv:PATH`, `tsv:PATH`, `parquet:PATH` and `jsonl:PATH`, a file, a folder of files or a glob, as a data set.

Text in few different values becomes a category, dates become days since 1970, booleans 0 and 1. Identifiers are
refused, and so are missing cells unless `missing` says what to do with them.
"""

import itertools
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from quoin.data.csv_text import listed
from quoin.data.dataset import Dataset, number_targets
from quoin.data.files import quoted
from quoin.data.table_columns import (
    ColumnKind,
    extremes,
    flag_value,
    level_indices,
    looks_like_id,
    numbers_by_any_mark,
    numbers_in_text,
)
from quoin.data.table_files import MISSING, TableFile, open_files
from quoin.data.table_reading import RawTable, ReadColumns, read_columns_of
from quoin.errors import UserError, did_you_mean, format_value

if TYPE_CHECKING:
    pass

__all__ = ["Missing", "load_table", "load_table_columns", "read_table_columns", "read_table_numbers"]

Missing = Literal["error", "mean"]

_TARGET_NAMES = ("target", "label", "y")  # what the target column may be called when none is named
_ROUNDINGS = 2**12  # a column that varies by fewer roundings of its size is compared as it is written


def load_table(
    form: str,
    path: str,
    target: str | Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    missing: Missing = "error",
) -> Dataset:
    """The table at `path` with the columns `target` to be predicted from all others but those to `ignore`.

    Args:
        form: The format of its files: csv, tsv, parquet or jsonl.
        target: One name, or several for regression; unless given, the one column called `target`, `label` or `y`.
        missing: "error" refuses missing cells; "mean" keeps them as NaN, for `prepare` to fill in.
    """
    files, target = open_files(form, path), _listed_target(target)
    header = files[0].header
    for name in ignore:
        _check_known(files, name)
    for name in target:
        if name in ignore:
            raise UserError(
                f"expected --ignore to spare the target, but {format_value(name)} is both: leave it out of one of them"
            )
    kept = [name for name in header if name not in ignore]
    aims = _target_names(files, kept, target)
    names = [name for name in kept if name not in aims]
    if not names:
        raise UserError(
            f"expected feature columns beside the target {listed(aims)} of {quoted(files[0].path)}, but there are "
            "none: add some"
        )
    read = read_columns_of(files, names, aims)
    table = read.features(names, {})
    if missing == "error":
        _check_complete(read, table)
    for place, column, values in zip(map(read.place, names), table.columns, table.values.T):
        if column.kind == "number" and looks_like_id(column.name, values):
            raise UserError(
                f"expected measurements, but {place.column} looks like an identifier (whole numbers, no two alike): "
                f"leave it out with --ignore {flag_value(column.name)}, or call it otherwise"
            )
    _check_distinguishable(read, table)
    return _dataset(form, path, read, table, aims)


def load_table_columns(
    form: str,
    path: str,
    kinds: dict[str, ColumnKind],
    target: str | Sequence[str] | None,
    usual_target: Sequence[str],
    missing: Missing = "error",
) -> Dataset:
    """The columns that a trained model knows, each read as the `kind` it was in training, and the target: `target`, or
    the usual one if it is there."""
    files, target = open_files(form, path), _listed_target(target)
    if not target and all(name in files[0].header for name in usual_target):
        target = usual_target
    aims = _target_names(files, [name for name in files[0].header if name not in kinds or name in target], target)
    for aim in aims:
        if aim in kinds:
            raise UserError(
                f"expected a target that the model is not given, but {format_value(aim)} is one of its features: "
                "choose another target"
            )
    _check_present(files, kinds)
    read = read_columns_of(files, list(kinds), aims, {name for name, kind in kinds.items() if kind == "category"})
    table = read.features(list(kinds), kinds)
    if missing == "error":
        _check_complete(read, table)
    return _dataset(form, path, read, table, aims)


def read_table_columns(form: str, path: str, kinds: dict[str, ColumnKind], missing: Missing = "error") -> RawTable:
    """The columns that a trained model knows, in its order, each read as the `kind` it was in training; others are
    ignored."""
    files = open_files(form, path)
    _check_present(files, kinds)
    read = read_columns_of(files, list(kinds), [], {name for name, kind in kinds.items() if kind == "category"})
    table = read.features(list(kinds), kinds)
    if missing == "error":
        _check_complete(read, table)
    return table


def read_table_numbers(form: str, path: str, ignore: Sequence[str] = ()) -> RawTable:
    """All columns but those to `ignore`, each of numbers, booleans or dates, with no cell missing."""
    files = open_files(form, path)
    for name in ignore:
        _check_known(files, name)
    names = [name for name in files[0].header if name not in ignore]
    if not names:
        raise UserError(
            f"expected columns of {quoted(files[0].path)} to learn from, but --ignore leaves none: spare some"
        )
    read = read_columns_of(files, names, [])
    table = read.features(names, {})
    if text := [column for column in table.columns if column.kind == "category"]:
        flags = " ".join(flag_value(column.name) for column in text[:8]) + (" ..." if len(text) > 8 else "")
        raise UserError(
            f"expected numbers in {read.place(text[0].name).column}, got text such as "
            f"{format_value(text[0].levels[0])}: leave it out with --ignore {flags}"
        )
    _check_complete(read, table, may_fill=False)
    return table


def _dataset(form: str, path: str, read: ReadColumns, table: RawTable, aims: Sequence[str]) -> Dataset:
    names = tuple(column.name for column in table.columns)
    if len(aims) == 1:
        targets, class_names = _targets(read, aims[0])
    else:
        numbers = [_target_numbers(read, aim) for aim in aims]
        targets, class_names = torch.from_numpy(np.stack(numbers, axis=1)), None
    return Dataset(
        f"{form}:{path}",
        torch.from_numpy(table.values),
        targets,
        names,
        class_names,
        tuple(aims),
        columns=table.columns,
    )


def _targets(read: ReadColumns, name: str) -> "tuple[torch.Tensor, tuple[str, ...] | None]":
    """The target column in its natural form; text is welcome, a missing value is not."""
    import polars

    if name not in read.others:
        return number_targets(_without_gaps(read, name, read.column(name)[1]))
    series = read.others[name]
    if series.dtype == polars.Boolean:
        series = series.cast(polars.String)
    if series.dtype == polars.Categorical or series.dtype == polars.Enum:
        series = series.cast(polars.String)
    if series.dtype != polars.String:
        return torch.from_numpy(_target_numbers(read, name).copy()), None
    _without_gaps(read, name, np.where(series.is_null().to_numpy(), np.nan, 0.0))
    # NaN, an infinity or beyond float32: numbers in form, so no class names, and of no use as numbers.
    numbers = series.cast(polars.Float64, strict=False)
    odd = numbers.is_nan() | (numbers.abs() > torch.finfo(torch.float32).max)
    if odd.any():
        row = int(odd.arg_true()[0])
        raise UserError(
            f"expected a class or a finite number {read.place(name).of(row)}, but got {format_value(series[row])}: "
            "fill it or drop that row"
        )
    if numbers_by_any_mark(series, read.files[0].marks).all():
        numbers = numbers_in_text(series, read.place(name), needed=True)
        assert numbers is not None
        return number_targets(numbers)
    levels, codes = level_indices(series)
    return torch.from_numpy(codes.astype(np.int64)), levels


def _target_numbers(read: ReadColumns, name: str) -> np.ndarray:
    """A target column as numbers, for a regression with several."""
    column, values = read.column(name, None if name in read.others else "number")
    if column.kind == "category":
        raise UserError(
            f"expected numbers as each of several targets, but {read.place(name).column} holds text such as "
            f"{format_value(column.levels[0])}: give --target one column of classes, or columns of numbers"
        )
    return _without_gaps(read, name, values)


def _without_gaps(read: ReadColumns, name: str, values: np.ndarray) -> np.ndarray:
    """The values of a target, none of them missing."""
    gaps = np.isnan(values)
    if gaps.any():
        count = int(gaps.sum())
        raise UserError(
            f"expected a class or a finite number {read.place(name).of(int(gaps.argmax()))}, but the cell has no value"
            + (f" ({count} targets are missing)" if count > 1 else "")
            + f": fill it or drop {'that row' if count == 1 else 'those rows'}"
        )
    return values


def _check_complete(read: ReadColumns, table: RawTable, *, may_fill: bool = True) -> None:
    """Refuse missing cells, counted by column, with the place of the first."""
    if not np.isnan(table.values.min(0)).any():  # one pass where nothing is missing
        return
    gaps = np.isnan(table.values)
    counts = gaps.sum(0)
    row = int(gaps.any(1).argmax())
    place = read.place(table.columns[int(gaps[row].argmax())].name)
    told = [f"{format_value(column.name, 30)} {count}" for column, count in zip(table.columns, counts) if count]
    by_column = ", ".join(told[:8]) + (f" and {len(told) - 8} more" if len(told) > 8 else "")
    raise UserError(
        f"expected a value {place.of(row)}, but the cell has no value (missing cells by column: {by_column}): "
        f"fill them, or {'give --missing mean' if may_fill else 'drop those rows'}"
    )


def _check_distinguishable(read: ReadColumns, table: RawTable) -> None:
    """Refuse a column whose numbers differ as they are written, and not all of them as float64 holds them."""
    import polars

    close = []
    for column, values in zip(table.columns, table.values.T):
        low, high = extremes(values)
        if column.kind == "number" and high - low <= _ROUNDINGS * np.finfo(np.float64).eps * max(abs(low), abs(high)):
            close.append(column)
    written: dict[str, set[str]] = {column.name: set() for column in close}
    for file in read.files if close else ():
        for frame in file.frames(dict.fromkeys(written, polars.String())):
            for name, cells in written.items():
                cells.update(frame[name].drop_nulls().unique().str.strip_chars())
    for column in close:
        numbers = {Decimal(cell.replace(read.mark, ".")) for cell in written[column.name] - set(MISSING)}
        exact = sorted(number for number in numbers if number.is_finite())  # NAN and its like are missing cells
        same = next(((a, b) for a, b in itertools.pairwise(exact) if float(a) == float(b)), None)
        if same is not None:
            raise UserError(
                f"expected numbers that 64 bits can distinguish in {read.place(column.name).column}, "
                f"but {str(same[0])[:30]} and {str(same[1])[:30]} are one there: "
                f"subtract what all have in common, or leave the column out with --ignore"
            )


def _check_present(files: list[TableFile], names: Sequence[str] | dict[str, ColumnKind]) -> None:
    """A UserError that lists the columns which are not there."""
    header = files[0].header
    missing = [name for name in names if name not in header]
    if not missing:
        return
    folded = {name.casefold(): name for name in header}
    twins = [name for name in missing if name.casefold() in folded]
    advice = "add what is missing"
    if twins:
        theirs, ours = folded[twins[0].casefold()], twins[0]
        what = "the column" if len(twins) == 1 else "the columns"
        advice = f"{format_value(theirs, 30)} and {format_value(ours, 30)} differ only in case; rename {what}"
    raise UserError(
        f"expected the column{'s' if len(missing) > 1 else ''} {listed(missing)} in {quoted(files[0].path)}, "
        f"but its columns are {listed(header)}: {advice}"
    )


def _listed_target(target: str | Sequence[str] | None) -> Sequence[str]:
    return (target,) if isinstance(target, str) else target or ()


def _target_names(files: list[TableFile], names: list[str], target: Sequence[str]) -> list[str]:
    if target:
        for name in target:
            _check_known(files, name)
        return list(dict.fromkeys(target))
    usual = [name for name in _TARGET_NAMES if name in names]
    if len(usual) == 1:
        return usual
    # Two usual names: to guess would leave the other one among the features and give the answer away.
    why = f"both {usual[0]!r} and {usual[1]!r}" if usual else f"no {', '.join(_TARGET_NAMES)} among {listed(names)}"
    raise UserError(f"expected to know the target column, but {quoted(files[0].path)} has {why}: name it with --target")


def _check_known(files: list[TableFile], name: str) -> None:
    header = files[0].header
    if name not in header:
        raise UserError(
            f"expected a column {format_value(name)} in {quoted(files[0].path)}, but there is none: "
            f"{did_you_mean(name, header)}"
        )
