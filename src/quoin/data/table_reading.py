"""The columns of a table's files, one file after another: numbers together, the others each by itself."""

import contextlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quoin.data.table_columns import Column, ColumnKind, Place, checked_numbers, decimal_mark, values_of
from quoin.data.table_files import MISSING, TableFile, UnexpectedTypeError, exactly
from quoin.errors import UserError

if TYPE_CHECKING:
    import polars

__all__ = ["RawTable", "ReadColumns", "read_columns_of"]


class RawTable(NamedTuple):
    """Columns as they were read, before any statistic of them is taken."""

    columns: tuple[Column, ...]
    values: np.ndarray  # (n, columns) float64; NaN is a missing cell, a category is the number of its level


class ReadColumns(NamedTuple):
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
        if self.number_names[: len(names)] == list(names) and set(kinds.values()) <= {"number"}:
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
        values = checked_numbers(self.numbers[:, self.number_names.index(name)], self.place(name))
        if kind in (None, "number"):
            return Column(name), values
        wrong = ~np.isnan(values)  # a date is not written as a number, but a boolean may be 0 or 1
        if kind == "boolean":
            wrong &= (values != 0) & (values != 1)
        if wrong.any():
            row = int(wrong.argmax())
            raise UserError(
                f"expected a {kind} {self.place(name).of(row)} as in training, got {values[row]:.15g}: write it as it "
                "was then"
            )
        return Column(name, kind), values


def read_columns_of(
    files: list[TableFile], names: list[str], aims: Sequence[str], as_text: Collection[str] = ()
) -> ReadColumns:
    """The columns `names` and `aims` of all files; text where a later cell is not what the first ones promised."""
    import polars

    types = _types(files, [*names, *aims], as_text)
    text: dict[str, polars.DataType] = dict.fromkeys(types, polars.String())
    for attempt, words in ((types, False), (types, True), (text, True)):
        with contextlib.suppress(UnexpectedTypeError):
            return _read_as(files, attempt, words=words)
    for file in files:  # polars does not see the columns that the header has
        file.read_carefully()
    return _read_as(files, text)


def _types(files: list[TableFile], names: Sequence[str], as_text: Collection[str]) -> "dict[str, polars.DataType]":
    """One type for each column; text where the files disagree."""
    import polars

    found = [file.guessed() for file in files]
    types = {}
    for name in names:
        kinds = [polars.Float64() if guess[name].is_numeric() else guess[name] for guess in found]
        alike = all(kind == kinds[0] for kind in kinds)
        types[name] = kinds[0] if alike and name not in as_text else polars.String()
    return types


def _read_as(files: list[TableFile], types: "dict[str, polars.DataType]", *, words: bool = True) -> ReadColumns:
    import polars

    number_names = [name for name, kind in types.items() if kind == polars.Float64]
    parts, series, starts = [], {name: [] for name in types if name not in number_names}, [0]
    for file in files:
        rows = starts[-1]
        for frame in file.frames(types, words=words):
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
        has_points = "," in files[0].marks and bool((np.abs(numbers - np.round(numbers)) > 0).any())  # not of NaN
    mark = decimal_mark(texts, has_points, files[0].marks)
    return ReadColumns(files, starts[:-1], number_names, numbers, others, mark)


def _stripped(series: "polars.Series") -> "polars.Series":
    """Text without blanks around it, and none that says there is no value."""
    import polars

    return series.str.strip_chars().replace(dict.fromkeys(MISSING)) if series.dtype == polars.String else series
