"""Tables: `csv:PATH`, `tsv:PATH`, `parquet:PATH` and `jsonl:PATH`, a file, a folder of files or a glob, as a data set.

Text in few different values becomes a category, dates become days since 1970, booleans 0 and 1. Identifiers are
refused, and so are missing cells unless `missing` says what to do with them.
"""

import itertools
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import torch

from quoin.data.csv_text import listed
from quoin.data.dataset import Dataset, number_targets
from quoin.data.files import quoted
from quoin.data.table_columns import (
    Column,
    ColumnKind,
    Place,
    checked_numbers,
    codes_of,
    decimal_mark,
    extremes,
    flag_value,
    looks_like_id,
    numbers_by_any_mark,
    numbers_in_text,
    values_of,
)
from quoin.data.table_files import MISSING, TableFile, UnexpectedTypeError, exactly, open_files
from quoin.errors import UserError, did_you_mean, format_value

if TYPE_CHECKING:
    import polars

__all__ = ["Missing", "RawTable", "load_table", "load_table_columns", "read_table_columns", "read_table_numbers"]

Missing = Literal["error", "mean"]

_TARGET_NAMES = ("target", "label", "y")  # what the target column may be called when none is named
_ROUNDINGS = 2**12  # a column that varies by fewer roundings of its size is compared as it is written


class RawTable(NamedTuple):
    """Columns as they were read, before any statistic of them is taken."""

    columns: tuple[Column, ...]
    values: np.ndarray  # (n, columns) float64; NaN is a missing cell, a category is the number of its level


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
    read = _read(files, names, aims)
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
    read = _read(files, list(kinds), aims, {name for name, kind in kinds.items() if kind == "category"})
    table = read.features(list(kinds), kinds)
    if missing == "error":
        _check_complete(read, table)
    return _dataset(form, path, read, table, aims)


def read_table_columns(form: str, path: str, kinds: dict[str, ColumnKind], missing: Missing = "error") -> RawTable:
    """The columns that a trained model knows, in its order, each read as the `kind` it was in training; others are
    ignored."""
    files = open_files(form, path)
    _check_present(files, kinds)
    read = _read(files, list(kinds), [], {name for name, kind in kinds.items() if kind == "category"})
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
    read = _read(files, names, [])
    table = read.features(names, {})
    if text := [column for column in table.columns if column.kind == "category"]:
        flags = " ".join(flag_value(column.name) for column in text[:8]) + (" ..." if len(text) > 8 else "")
        raise UserError(
            f"expected numbers in {read.place(text[0].name).column}, got text such as "
            f"{format_value(text[0].levels[0])}: leave it out with --ignore {flags}"
        )
    _check_complete(read, table, may_fill=False)
    return table


class _Read(NamedTuple):
    """Columns of all files, one after another: numbers together, the others each by itself."""

    files: list[TableFile]
    starts: list[int]
    number_names: list[str]
    numbers: np.ndarray  # (n, number columns) float64
    others: "dict[str, polars.Series]"
    mark: str

    def place(self, name: str) -> Place:
        return Place(self.files, self.starts, name, self.mark)

    def features(self, names: Sequence[str], kinds: dict[str, ColumnKind]) -> RawTable:
        """These columns as one array; it is the numbers' own where all are numbers."""
        if self.number_names[: len(names)] == list(names):
            values = self.numbers[:, : len(names)]
            for name, column in zip(names, values.T):
                checked_numbers(column, self.place(name))
            return RawTable(tuple(map(Column, names)), values)
        columns, values = [], np.empty((len(self.numbers), len(names)), order="F")
        for at, name in enumerate(names):
            column, values[:, at] = self.column(name, kinds.get(name))
            columns.append(column)
        return RawTable(tuple(columns), values)

    def column(self, name: str, kind: ColumnKind | None = None) -> tuple[Column, np.ndarray]:
        if name in self.others:
            return values_of(self.others[name], self.place(name), kind)
        return Column(name), checked_numbers(self.numbers[:, self.number_names.index(name)], self.place(name))


def _read(files: list[TableFile], names: list[str], aims: Sequence[str], as_text: set[str] = frozenset()) -> _Read:  # type: ignore[assignment]
    """The columns `names` and `aims` of all files; text where a later cell is not what the first ones promised."""
    import polars

    types = _types(files, [*names, *aims], as_text)
    try:
        return _read_as(files, types)
    except UnexpectedTypeError:
        return _read_as(files, dict.fromkeys(types, polars.String()))


def _types(files: list[TableFile], names: Sequence[str], as_text: set[str]) -> "dict[str, polars.DataType]":
    """One type for each column; text where the files disagree."""
    import polars

    found = [file.guessed() for file in files]
    types = {}
    for name in names:
        kinds = [polars.Float64() if guess[name].is_numeric() else guess[name] for guess in found]
        alike = all(kind == kinds[0] for kind in kinds)
        types[name] = kinds[0] if alike and name not in as_text else polars.String()
    return types


def _read_as(files: list[TableFile], types: "dict[str, polars.DataType]") -> _Read:
    import polars

    number_names = [name for name, kind in types.items() if kind == polars.Float64]
    parts, series, starts = [], {name: [] for name in types if name not in number_names}, [0]
    for file in files:
        rows = starts[-1]
        for frame in file.frames(types):
            rows += len(frame)
            parts.append(frame.select(exactly(number_names)))
            for name, each in series.items():
                each.append(frame[name])
        starts.append(rows)
    numbers = np.empty((starts[-1], len(number_names)), order="F")  # by columns, as polars has them
    parts.reverse()
    row = 0
    while parts:  # each is let go as it is copied: the array and its parts never lie beside each other whole
        part = parts.pop()
        for at, name in enumerate(number_names):
            numbers[row : row + len(part), at] = part.get_column(name).to_numpy()
        row += len(part)
    others = {name: _stripped(polars.concat(each)) for name, each in series.items()}
    texts = (each for each in others.values() if each.dtype == polars.String)
    with np.errstate(invalid="ignore"):
        has_points = "," in files[0].marks and bool((numbers != np.round(numbers)).any())
    mark = decimal_mark(texts, has_points, files[0].marks)
    return _Read(files, starts[:-1], number_names, numbers, others, mark)


def _stripped(series: "polars.Series") -> "polars.Series":
    """Text without blanks around it, and none that says there is no value."""
    import polars

    return series.str.strip_chars().replace(dict.fromkeys(MISSING)) if series.dtype == polars.String else series


def _dataset(form: str, path: str, read: _Read, table: RawTable, aims: Sequence[str]) -> Dataset:
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


def _targets(read: _Read, name: str) -> "tuple[torch.Tensor, tuple[str, ...] | None]":
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
        return torch.from_numpy(_target_numbers(read, name)), None
    _without_gaps(read, name, np.where(series.is_null().to_numpy(), np.nan, 0.0))
    odd = series.str.to_lowercase().is_in(["inf", "-inf", "+inf", "infinity", "-infinity", "-nan", "+nan"])
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
    levels, codes = codes_of(series)
    return torch.from_numpy(codes.astype(np.int64)), levels


def _target_numbers(read: _Read, name: str) -> np.ndarray:
    """A target column as numbers, for a regression with several."""
    column, values = read.column(name, None if name in read.others else "number")
    if column.kind == "category":
        raise UserError(
            f"expected numbers as each of several targets, but {read.place(name).column} holds text such as "
            f"{format_value(column.levels[0])}: give --target one column of classes, or columns of numbers"
        )
    return _without_gaps(read, name, values)


def _without_gaps(read: _Read, name: str, values: np.ndarray) -> np.ndarray:
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


def _check_complete(read: _Read, table: RawTable, *, may_fill: bool = True) -> None:
    """Refuse missing cells, counted by column, with the place of the first."""
    gaps = np.isnan(table.values)
    counts = gaps.sum(0)
    if not counts.any():
        return
    row = int(gaps.any(1).argmax())
    place = read.place(table.columns[int(gaps[row].argmax())].name)
    told = [f"{format_value(column.name, 30)} {count}" for column, count in zip(table.columns, counts) if count]
    by_column = ", ".join(told[:8]) + (f" and {len(told) - 8} more" if len(told) > 8 else "")
    raise UserError(
        f"expected a value {place.of(row)}, but the cell has no value (missing cells by column: {by_column}): "
        f"fill them, or {'give --missing mean' if may_fill else 'drop those rows'}"
    )


def _check_distinguishable(read: _Read, table: RawTable) -> None:
    """Refuse a column whose numbers differ as they are written, and not all of them as float64 holds them."""
    for column, values in zip(table.columns, table.values.T):
        low, high = extremes(values)
        if column.kind != "number" or high - low > _ROUNDINGS * np.finfo(np.float64).eps * max(abs(low), abs(high)):
            continue
        written = {cell.replace(read.mark, ".") for file in read.files for cell in file.cells(column.name)}
        exact = sorted({Decimal(cell) for cell in written - set(MISSING)})
        same = next(((a, b) for a, b in itertools.pairwise(exact) if float(a) == float(b)), None)
        if same is not None:
            raise UserError(
                f"expected numbers that 64 bits can distinguish in {read.place(column.name).column}, "
                f"but {format_value(same[0], 30)} and {format_value(same[1], 30)} are one there: "
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
