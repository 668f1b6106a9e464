"""The columns of a table as numbers: measurements, booleans, dates as days, categories as the number of their level.

A missing cell is NaN. What a model learns from (means, the levels that become features) is another matter, and is
learnt from training rows alone: see `TableEncoder`.
"""

import functools
import itertools
import operator
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import torch

from quoin.data.files import quoted
from quoin.data.table_files import TableFile
from quoin.display import shown
from quoin.errors import UserError, format_value

if TYPE_CHECKING:
    import polars

__all__ = [
    "MAX_LEVELS",
    "Column",
    "ColumnKind",
    "Place",
    "checked_numbers",
    "decimal_mark",
    "extremes",
    "flag_value",
    "level_indices",
    "looks_like_id",
    "numbers_by_any_mark",
    "numbers_in_text",
    "values_of",
]

ColumnKind = Literal["number", "boolean", "date", "category"]

MAX_LEVELS = 100  # of one category: more of them are names, codes or free text
_ID_ROWS = 20  # so many rows it takes to tell an identifier from a category
_ID_NAME = re.compile(r"(?:^|[\W_])(?i:id|uuid|guid|key|index|idx|row|rownum)$|(?<=[a-z])I[dD]$")
_DATE_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
_TIME_FORMATS = tuple(
    f"%Y-%m-%d{gap}%H:%M{rest}"
    for gap in ("T", " ")
    for rest in ("", "Z", ":%S", ":%SZ", ":%S%:z", ":%S%.f", ":%S%.fZ", ":%S%.f%:z")
)
_SECONDS_A_DAY = 86_400
_THOUSANDS = r"^[+-]?\d{1,3}(?:[,.' ]\d{3})+(?:[.,]\d+)?$"


@shown
class Column(NamedTuple):
    """One column of a table, and what its numbers are."""

    name: str
    kind: ColumnKind = "number"
    levels: tuple[str, ...] = ()  # of a category: those of the file, sorted; its numbers count them


class Place(NamedTuple):
    """Where a column was read from, for errors."""

    files: list[TableFile]
    starts: list[int]  # the first row of each file
    name: str
    mark: str  # the decimal mark of the table's numbers

    def of(self, row: int) -> str:
        """A cell as an error names it."""
        at = max(index for index, start in enumerate(self.starts) if start <= row)
        file = self.files[at]
        return f"on {file.place(row - self.starts[at])}, column {format_value(self.name)} of {quoted(file.path)}"

    def written(self, row: int) -> str | None:
        """A cell as it is written, where the format keeps that."""
        at = max(index for index, start in enumerate(self.starts) if start <= row)
        return next(itertools.islice(self.files[at].cells(self.name), row - self.starts[at], None), None)

    @property
    def column(self) -> str:
        return f"column {format_value(self.name, 40)} of {quoted(self.files[0].path)}"


def values_of(series: "polars.Series", place: Place, kind: ColumnKind | None = None) -> tuple[Column, np.ndarray]:
    """A column and its numbers (n,) float64.

    Args:
        kind: What a trained model takes the column for; found out unless given.
    """
    import polars

    name, given = place.name, series.dtype
    if kind == "category" or (given.is_numeric() and kind == "boolean"):
        series = series.cast(polars.String)
        given = series.dtype
    if given == polars.Categorical or given == polars.Enum:
        series = series.cast(polars.String)
        given = series.dtype
    if given.is_numeric():
        _expect(kind, ("number",), place, series)
        return Column(name), checked_numbers(series.cast(polars.Float64).to_numpy(), place)
    if given == polars.Boolean:
        _expect(kind, ("number", "boolean"), place, series)
        return Column(name, "boolean"), series.cast(polars.Float64).to_numpy()
    if given in (polars.Date, polars.Datetime):
        _expect(kind, ("date",), place, series)
        return Column(name, "date"), _days(series)
    if given == polars.Null:
        raise UserError(f"expected values in {place.column}, but every cell is missing: leave it out with --ignore")
    if given != polars.String:
        raise UserError(
            f"expected numbers, text, dates or booleans in {place.column}, got {str(given).split('(')[0]}: leave it "
            "out with --ignore"
        )
    return _values_of_text(series, place, kind)


def _values_of_text(cells: "polars.Series", place: Place, kind: ColumnKind | None) -> tuple[Column, np.ndarray]:
    import polars

    filled = cells.drop_nulls()
    if not len(filled) and kind is None:
        raise UserError(f"expected values in {place.column}, but every cell is missing: leave it out with --ignore")
    if kind == "category":
        return _category(cells, place)
    if kind in (None, "boolean") and not filled.str.to_lowercase().is_in(["true", "false"]).not_().any():
        values = (cells.str.to_lowercase() == "true").cast(polars.Float64).to_numpy()
        return Column(place.name, "boolean"), values
    if kind in (None, "number"):
        numbers = numbers_in_text(cells, place, needed=kind == "number")
        if numbers is not None:
            return Column(place.name), numbers
    if kind in (None, "date") and (days := _dates(cells, place)) is not None:
        return Column(place.name, "date"), days
    if kind is not None:
        wrong = cells.is_not_null()
        if kind == "boolean":
            wrong &= ~cells.str.to_lowercase().is_in(["true", "false"])
        row = int(wrong.arg_true()[0])
        raise UserError(
            f"expected a {kind} {place.of(row)} as in training, got {format_value(cells[row])}: write it as it was then"
        )
    _check_no_identifier(filled, place)
    return _category(cells, place)


def numbers_in_text(cells: "polars.Series", place: Place, *, needed: bool) -> np.ndarray | None:
    """The cells as numbers, all with one decimal mark; None if they are text; a UserError if most are numbers and not
    all.

    Args:
        needed: Whether text is a UserError too.
    """
    parsed, marks = _parsed(cells, place.mark), place.files[0].marks
    filled, wrong = cells.drop_nulls(), parsed.null_count() - cells.null_count()
    if not wrong:
        return checked_numbers(parsed.to_numpy(), place, cells)
    if "," not in marks and not _parsed(filled, ",").null_count():
        row = int(cells.str.contains(",", literal=True).fill_null(False).arg_true()[0])
        raise UserError(
            f"expected a number with a decimal point {place.of(row)}, but got {format_value(cells[row])}: write a "
            "point, or separate the cells by semicolons"
        )
    if filled.str.contains(_THOUSANDS).all():
        raise UserError(
            f"expected a plain number {place.of(int(cells.is_not_null().arg_true()[0]))}, but got "
            f"{format_value(filled[0])}: write it without separators of thousands"
        )
    with_any = numbers_by_any_mark(cells, marks)
    if not needed and 2 * int(with_any.sum()) < len(filled):
        return None
    row = int((parsed.is_null() & cells.is_not_null()).arg_true()[0])
    got = f"got {format_value(cells[row])}"
    if wrong > 1:
        got += f" ({wrong} cells of the column are not numbers)"
    if with_any[row]:
        advice = (
            f"the other numbers have a decimal {'comma' if place.mark == ',' else 'point'}; use one mark throughout"
        )
    elif needed:
        advice = "the model needs this column as numbers; mend or drop those rows"
    else:
        advice = f"mend or drop {'it' if wrong == 1 else 'them'}"
    raise UserError(f"expected a finite number {place.of(row)}, but {got}: {advice}")


def numbers_by_any_mark(cells: "polars.Series", marks: Sequence[str]) -> "polars.Series":
    """Which cells are numbers with one of these decimal marks."""
    return functools.reduce(operator.or_, (_parsed(cells, mark).is_not_null() for mark in marks))


def decimal_mark(texts: "Iterable[polars.Series]", has_points: bool, marks: Sequence[str]) -> str:
    """The mark that most numbers of a table are written with, whole ones aside; a point where there are none.

    Args:
        texts: Its columns that were read as text.
        has_points: Whether columns that were read as numbers have decimal points.
    """
    if "," not in marks:
        return "."
    points, commas = int(has_points), 0
    for cells in texts:
        cells = cells.filter(numbers_by_any_mark(cells, marks))
        points += int(cells.str.contains(".", literal=True).sum())
        commas += int(cells.str.contains(",", literal=True).sum())
    return "," if commas > points else "."


def _parsed(cells: "polars.Series", mark: str) -> "polars.Series":
    import polars

    if mark == ",":
        cells = polars.select(
            polars.when(cells.str.contains(".", literal=True)).then(None).otherwise(cells)
        ).to_series()
        cells = cells.str.replace(",", ".", literal=True)
    return cells.cast(polars.Float64, strict=False)


def checked_numbers(values: np.ndarray, place: Place, written: "polars.Series | None" = None) -> np.ndarray:
    """The values themselves, none of them infinite or beyond float32; NaN is a missing cell."""
    low, high = extremes(values)
    most = torch.finfo(torch.float32).max
    if low < -most or high > most:
        with np.errstate(invalid="ignore"):
            row = int((np.abs(values) > most).argmax())
        got = format_value(place.written(row) or f"{values[row]:g}" if written is None else written[row])
        raise UserError(f"expected a finite number {place.of(row)}, but got {got}: mend or drop it")
    return values


def extremes(values: np.ndarray) -> tuple[float, float]:
    """The least and the largest value, missing ones aside; zeros where there is none."""
    if not len(values):
        return 0.0, 0.0
    low, high = values.min(), values.max()
    if np.isnan(low):  # the quick way cannot pass over what is missing
        known = values[~np.isnan(values)]
        return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    return float(low), float(high)


def _category(cells: "polars.Series", place: Place) -> tuple[Column, np.ndarray]:
    levels, codes = level_indices(cells)
    return Column(place.name, "category", levels), codes


def level_indices(cells: "polars.Series") -> tuple[tuple[str, ...], np.ndarray]:
    """The different texts in alphabetical order, and the number of each cell's (n,) float64; NaN where it is
    missing."""
    import polars

    levels = sorted(cells.drop_nulls().unique().to_list())
    codes = cells.replace_strict(levels, list(range(len(levels))), return_dtype=polars.Float64, default=None)
    return tuple(levels), codes.to_numpy()


def _check_no_identifier(filled: "polars.Series", place: Place) -> None:
    different = filled.n_unique()
    ignore = f"leave it out with --ignore {flag_value(place.name)}"
    if different > _ID_ROWS and different > 0.9 * len(filled):
        raise UserError(
            f"expected a category, but {place.column} looks like an identifier or free text ({different} different "
            f"values in {len(filled)} rows): {ignore}"
        )
    if different > MAX_LEVELS:
        raise UserError(
            f"expected at most {MAX_LEVELS} categories, but {place.column} has {different}: {ignore}, or group them"
        )


def looks_like_id(name: str, values: np.ndarray) -> bool:
    """Whether a column of numbers names its rows rather than measures them: called so, whole, and never twice the
    same."""
    if not _ID_NAME.search(name):
        return False
    values = values[~np.isnan(values)]
    if len(values) < _ID_ROWS:
        return False
    return bool(np.all(values == np.round(values)) and len(np.unique(values)) == len(values))


def flag_value(name: str) -> str:
    """A column name as a command line takes it: bare where it can be."""
    return name if re.fullmatch(r"\w[\w.-]{0,40}", name) else format_value(name, 42)


def _dates(cells: "polars.Series", place: Place) -> np.ndarray | None:
    """The cells as days since 1970, if all of them are dates, or times, in one form; else None."""
    import polars

    fits, most, best = [], 0, None
    for format in (*_DATE_FORMATS, *_TIME_FORMATS):
        kind = polars.Date if format in _DATE_FORMATS else polars.Datetime("us")
        try:
            parsed = cells.str.strptime(kind, format, strict=False)
        except polars.exceptions.PolarsError:
            continue
        parsed = parsed.set(parsed.dt.year() < 1000, None)  # 05.06.24 is no date of the year 24
        if parsed.null_count() == cells.null_count():
            fits.append((format, _days(parsed)))
        elif parsed.count() > most:
            most, best = parsed.count(), parsed
    if not fits:
        if best is not None and 2 * most >= cells.count():
            row = int((best.is_null() & cells.is_not_null()).arg_true()[0])
            raise UserError(
                f"expected a date {place.of(row)} written as most of its column, but got {format_value(cells[row])}: "
                "mend or drop it"
            )
        return None
    if any(not np.array_equal(days, fits[0][1], equal_nan=True) for _, days in fits[1:]):
        raise UserError(
            f"expected dates that are clear in {place.column}, but {format_value(cells.drop_nulls()[0])} may begin "
            "with the day or the month: write them as 2024-12-31"
        )
    return fits[0][1]


def _days(series: "polars.Series") -> np.ndarray:
    import polars

    seconds = series.cast(polars.Datetime("us")).dt.epoch("us").cast(polars.Float64) / 1e6
    return (seconds / _SECONDS_A_DAY).to_numpy()


def _expect(kind: ColumnKind | None, fitting: tuple[str, ...], place: Place, series: "polars.Series") -> None:
    if kind is not None and kind not in fitting:
        raise UserError(
            f"expected a {kind} in {place.column} as in training, got {str(series.dtype).split('(')[0]}: give it as it "
            "was then"
        )
