"""Columns of words from a file: csv:PATH with a header line, jsonl:PATH with an object in each line, tsv:PATH with or
without a header.

A tsv file has no quotes: a tab ends a cell. Its first line is a header where a column was named by a flag or where it
names all columns that are needed; otherwise it is data, and the columns count from the first. Tables of numbers are
read elsewhere.
"""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from quoin.data.files import quoted
from quoin.data.text import text_pieces
from quoin.errors import UserError, did_you_mean, format_value

__all__ = ["ColumnCells", "TextColumn", "read_columns"]

FORMS = ("csv", "tsv", "jsonl")
LONGEST_CELL = 2**31 - 1  # Python's csv stops at 131,072 characters, which a document may well have


class TextColumn(NamedTuple):
    """A column to look for: the one of this `name`, else the `preferred` one, else the only one with a usual name."""

    holds: str  # what a cell is, in messages
    flag: str  # the option that names the column
    usual: tuple[str, ...]  # in lower case
    name: str | None = None  # as the user gave it
    preferred: str | None = None  # as the training data had it
    required: bool = True


class ColumnCells(NamedTuple):
    """The cells of the columns that were asked for, row by row; an optional column that is not there has None."""

    names: tuple[str | None, ...]  # as the header has them
    rows: list[tuple[str | None, ...]]
    lines: list[int]  # where each row begins


class _Table(NamedTuple):
    header: list[str] | None
    records: Iterator[tuple[int, list[Any]]]


def read_columns(form: str, path: str, columns: Sequence[TextColumn], *, headed: bool = False) -> ColumnCells:
    """The cells of these columns without the blanks around them; one that is empty is an error with its line.

    Args:
        form: "csv", "tsv" or "jsonl".
        path: A file in UTF-8, gzipped where its name ends in .gz.
        headed: Take the first line of a tsv file for its header, whatever it says.
    """
    text = "".join(text_pieces(path))
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise UserError(
            f"expected text, but line {line} of {quoted(path)} has a NUL byte: this is a binary or damaged file"
        )
    if not text.strip():
        raise UserError(f"expected rows in {quoted(path)}, but all its lines are blank: give another file")
    with _long_cells():
        table = (
            _tsv(text, path, columns, headed)
            if form == "tsv"
            else _csv(text, path)
            if form == "csv"
            else _jsonl(text, path)
        )
        return _chosen(table, path, columns)


def _chosen(table: _Table, path: str, columns: Sequence[TextColumn]) -> ColumnCells:
    if table.header is None:
        indices: list[int | None] = [index if each.required else None for index, each in enumerate(columns)]
        names: list[str | None] = [None] * len(columns)
    else:
        indices = _find(table.header, path, columns)
        names = [None if index is None else table.header[index] for index in indices]
    rows, lines = [], []
    for line, cells in table.records:
        found: list[str | None] = []
        for index, column, name in zip(indices, columns, names):
            cell = None if index is None else _words(cells[index], line, path, column)
            if cell == "":
                where = f"line {line}{f', column {format_value(name)}' if name else ''} of {quoted(path)}"
                raise UserError(
                    f"expected a {column.holds} in {where}, but its {column.holds} is empty: fill it in or remove "
                    "the line"
                )
            found.append(cell)
        rows.append(tuple(found))
        lines.append(line)
    if not rows:
        raise UserError(f"expected rows below the header of {quoted(path)}, but there are none: add data")
    return ColumnCells(tuple(names), rows, lines)


def _words(cell: Any, line: int, path: str, column: TextColumn) -> str:
    """A cell as text; JSON may have numbers, true, false and null."""
    if isinstance(cell, str):
        return cell.strip()
    if cell is None:
        return ""
    if isinstance(cell, (list, dict)):
        raise UserError(
            f"expected a {column.holds} in line {line} of {quoted(path)}, got {format_value(cell)}: write it as text"
        )
    return json.dumps(cell)


def _find(header: list[str], path: str, columns: Sequence[TextColumn]) -> list[int | None]:
    """Where each column stands."""
    found = [_index(header, path, column) for column in columns]
    needed = [number for number, column in enumerate(columns) if column.required]
    missing = [number for number in needed if found[number] is None]
    if missing and len(header) == len(needed) == len(columns):
        taken = {index for index in found if index is not None}
        free = [index for index in range(len(header)) if index not in taken]
        if len(missing) == 1 or (not any(columns[number].name for number in needed) and _pairs(columns)):
            for number, index in zip(missing, free):
                found[number] = index
            missing = []
    if missing:
        column = columns[missing[0]]
        raise UserError(
            f"expected a column called {' or '.join(column.usual[:4])} in the first line of {quoted(path)}, got "
            f"{_listed(header)}: name the column of each {column.holds} with {column.flag}"
        )
    for number, index in enumerate(found):
        if index is not None and index in found[:number]:
            flags = f"{columns[found.index(index)].flag} and {columns[number].flag}"
            raise UserError(
                f"expected different columns for {flags}, got {format_value(header[index])} for both: name another"
            )
    return found


def _pairs(columns: Sequence[TextColumn]) -> bool:
    """Whether two columns without a usual name may be taken in their order: a source, then its target."""
    return [column.holds for column in columns] == ["source", "target"]


def _index(header: list[str], path: str, column: TextColumn) -> int | None:
    wanted = column.name if column.name is not None else column.preferred if column.preferred in header else None
    if wanted is not None:
        alike = [index for index, name in enumerate(header) if name == wanted]
        if not alike:
            raise UserError(
                f"{column.flag} {format_value(wanted)} is no column of {quoted(path)}: {did_you_mean(wanted, header)}"
            )
    else:
        alike = [index for index, name in enumerate(header) if name.lower() in column.usual]
    if len(alike) > 1:
        names = " and ".join(format_value(header[index]) for index in alike)
        raise UserError(
            f"expected one {column.holds} column in {quoted(path)}, got {names}: "
            + ("rename one" if len({header[index] for index in alike}) == 1 else f"choose with {column.flag}")
        )
    return alike[0] if alike else None


def _listed(header: Sequence[str]) -> str:
    shown = ", ".join(format_value(name, 30) for name in header[:6])
    return shown + (f" and {len(header) - 6} more" if len(header) > 6 else "")


def _csv(text: str, path: str) -> _Table:
    delimiter = max(",;\t", key=lambda mark: len(_first_record(text, mark)))  # the comma wins a tie
    records = _csv_records(text, path, delimiter)
    _, names = next(records)
    header = [name.strip() for name in names]
    return _Table(header, _of_one_width(records, len(header), path, "put a cell with the separator inside in quotes"))


def _first_record(text: str, delimiter: str) -> list[str]:
    try:
        return next(filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)), [])
    except csv.Error:
        return []


def _csv_records(text: str, path: str, delimiter: str) -> Iterator[tuple[int, list[Any]]]:
    reader, begins = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), 1
    try:
        for cells in reader:
            if cells:
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"expected a well-formed table, but the row from line {begins} of {quoted(path)} on is not ({error}): "
            "close its quotes, and double those inside"
        ) from None


def _tsv(text: str, path: str, columns: Sequence[TextColumn], headed: bool) -> _Table:
    lines = ((number, line.split("\t")) for number, line in enumerate(text.split("\n"), 1) if line.strip())
    first = next(lines)
    names = [cell.strip() for cell in first[1]]
    needed = [column for column in columns if column.required]
    usual = all(_can_be(names, column) for column in needed)
    if headed or usual or any(column.name is not None for column in columns):
        return _Table(names, _of_one_width(lines, len(names), path, "a tab ends a cell, also inside quotes"))
    return _Table(None, _wide_enough([first], len(needed), path, columns, lines))


def _can_be(names: Sequence[str], column: TextColumn) -> bool:
    return column.preferred in names or any(name.lower() in column.usual for name in names)


def _wide_enough(
    first: list[tuple[int, list[Any]]],
    width: int,
    path: str,
    columns: Sequence[TextColumn],
    lines: Iterator[tuple[int, list[Any]]],
) -> Iterator[tuple[int, list[Any]]]:
    """What stands behind the cells that are needed, such as who wrote it, is left out."""
    for records in (first, lines):
        for line, cells in records:
            if len(cells) < width:
                wanted = ", a tab and a ".join(column.holds for column in columns if column.required)
                raise UserError(
                    f"expected a {wanted} in line {line} of {quoted(path)}, got no tab in {format_value(cells[0])}: "
                    "separate the two by a tab"
                )
            yield line, cells


def _of_one_width(
    records: Iterator[tuple[int, list[Any]]], width: int, path: str, remedy: str
) -> Iterator[tuple[int, list[Any]]]:
    for line, cells in records:
        if len(cells) != width:
            raise UserError(
                f"expected {width} cells in line {line} of {quoted(path)} as in its header, got {len(cells)}: {remedy}"
            )
        yield line, cells


def _jsonl(text: str, path: str) -> _Table:
    objects = _objects(text, path)
    first = next(objects)
    header = list(first[1])

    def cells() -> Iterator[tuple[int, list[Any]]]:
        yield first[0], list(first[1].values())
        for line, values in objects:
            yield line, [values.get(name) for name in header]

    return _Table(header, cells())


def _objects(text: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(
                f"expected a JSON object in line {number} of {quoted(path)}, got {format_value(line)} ({error}): "
                "mend or remove that line"
            ) from None
        if not isinstance(value, dict):
            raise UserError(
                f"expected a JSON object in line {number} of {quoted(path)}, got {format_value(line)}: write it as "
                '{"name": value, ...}'
            )
        yield number, value


@contextmanager
def _long_cells() -> Iterator[None]:
    """Python's csv has one limit for the whole process: it is put back."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)
