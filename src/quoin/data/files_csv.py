"""Tables in text: `csv:PATH`, and the columns that a prediction needs.

One header line that names the columns, then numbers; only the target column may hold text. Rows are parsed by the csv
module and turned to numbers a block at a time by numpy; a block that fails is searched cell by cell for the line to name.
"""

import csv
import difflib
import itertools
import operator
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor

from quoin.data.dataset import Dataset, finite_number, number_targets, text_targets
from quoin.data.files import existing_file, quoted
from quoin.errors import Mistake, shown

__all__ = ["load_csv", "read_csv_features"]

_BLOCK = 4096  # rows turned to numbers at once: as text a row takes many times its size as numbers
_TARGET_NAMES = ("target", "label", "y")  # what the target column may be called when none is named

Row = tuple[int, list[str]]  # the line on which the row ends, and its cells


def load_csv(place: str, target: str | None) -> Dataset:
    """The table at `place` with the column `target` to be predicted from all others."""
    path = existing_file(place)
    header, rows = _table(path)
    aim = header.index(_target_name(path, header, target))
    columns = [column for column in range(len(header)) if column != aim]
    if not columns:
        raise Mistake(f"expected feature columns beside the target, but {quoted(path)} has only {shown(header[aim])}: add some")
    blocks, labels, lines = [], [], []
    for block in _blocks(rows):
        blocks.append(_numbers(path, header, columns, block))
        labels += [cells[aim].strip() for _, cells in block]
        lines += [line for line, _ in block]
    if not blocks:
        _refuse_no_rows(path)
    targets, class_names = _targets(path, header[aim], labels, lines)
    names = tuple(header[column] for column in columns)
    return Dataset(f"csv:{place}", torch.from_numpy(np.concatenate(blocks)), targets, names, class_names, header[aim])


def read_csv_features(place: str | Path, feature_names: Sequence[str]) -> Tensor:
    """The columns `feature_names` of the table at `place`, in that order, (n, d) float32; other columns are not looked at."""
    path = existing_file(place)
    header, rows = _table(path)
    places = {name: column for column, name in enumerate(header)}
    missing = [name for name in feature_names if name not in places]
    if missing:
        raise Mistake(
            f"expected a column {_listed(missing)} in {quoted(path)}, but its columns are {_listed(header)}: "
            "add what is missing"
        )
    columns = [places[name] for name in feature_names]
    blocks = [_numbers(path, header, columns, block) for block in _blocks(rows)]
    if not blocks:
        _refuse_no_rows(path)
    return torch.from_numpy(np.concatenate(blocks))


def _table(path: Path) -> tuple[list[str], Iterator[Row]]:
    """The checked header, and the rows below it, each as wide as the header."""
    delimiter = _delimiter(path)
    records = _records(path, delimiter)
    _, header = next(records, (0, []))
    header = [name.strip() for name in header]
    if not header:
        raise Mistake(f"expected column names on the first line of {quoted(path)}, but the line is blank: remove it")
    if "" in header:
        raise Mistake(
            f"expected a name for every column, but column {header.index('') + 1} of {quoted(path)} has none: "
            "name it, or leave it out (pandas: index=False)"
        )
    if all(finite_number(name) is not None for name in header):
        raise Mistake(f"expected column names on the first line of {quoted(path)}, but it holds numbers: add a header line")
    twice = next((name for name, group in itertools.groupby(sorted(header)) if len(list(group)) > 1), None)
    if twice is not None:
        raise Mistake(f"expected different column names, but {quoted(path)} has {shown(twice)} twice: rename one")
    return header, _even(path, len(header), records)


def _even(path: Path, width: int, records: Iterator[Row]) -> Iterator[Row]:
    """The rows, or a Mistake at the first that is not `width` cells wide; blank lines may only close the file."""
    blank = None
    for line, cells in records:
        if not cells:
            blank = blank or line
            continue
        if blank is not None:
            raise Mistake(f"expected a row on line {blank} of {quoted(path)}, but the line is blank: remove it or fill it")
        if len(cells) != width:
            raise Mistake(
                f"expected {width} cells on line {line} of {quoted(path)} as in its header, got {len(cells)}: "
                "mend that line"
            )
        yield line, cells


def _records(path: Path, delimiter: str) -> Iterator[Row]:
    """Every record of the file as its cells, with all that can be wrong with text told as a Mistake."""
    line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(_without_nul(path, file), delimiter=delimiter, skipinitialspace=True, strict=True)
            for cells in reader:
                line = reader.line_num
                yield line, cells
    except UnicodeDecodeError:
        raise Mistake(
            f"expected UTF-8 text in {quoted(path)}, but it is in another encoding or no text: "
            "save it as UTF-8"
        ) from None
    except csv.Error as error:
        raise Mistake(
            f"expected a well-formed table, but {quoted(path)} is not, after line {line} ({error}): "
            "mend that row"
        ) from None
    except OSError as error:
        raise Mistake(f"{quoted(path)} cannot be read ({error.strerror}): check its permissions") from None


def _without_nul(path: Path, lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            raise Mistake(f"expected text, but line {number} of {quoted(path)} has a NUL byte: this is a binary or damaged file")
        yield line


def _delimiter(path: Path) -> str:
    """Comma, semicolon or tab: one that parts the header, rather evenly with the first rows, into the most columns."""
    best, best_score = ",", (False, 1)
    for delimiter in (",", ";", "\t"):
        try:
            widths = [len(cells) for _, cells in itertools.islice(_records(path, delimiter), 4) if cells]
        except Mistake:
            continue  # told again, with its line, when the table itself is read
        score = (len(set(widths)) == 1, widths[0]) if widths else (False, 0)
        if score[1] > 1 and score > best_score:
            best, best_score = delimiter, score
    return best


def _target_name(path: Path, header: list[str], target: str | None) -> str:
    if target is not None:
        if target in header:
            return target
        near = difflib.get_close_matches(target, header, n=len(header), cutoff=0)
        raise Mistake(f"expected a column {shown(target)} in {quoted(path)}, but there is none: choose from {_listed(near)}")
    usual = [name for name in _TARGET_NAMES if name in header]
    if len(usual) == 1:
        return usual[0]
    # Two usual names: to guess would leave the other one among the features and give the answer away.
    why = f"both {usual[0]!r} and {usual[1]!r}" if usual else f"no {', '.join(_TARGET_NAMES)} among {_listed(header)}"
    raise Mistake(f"expected to know the target column, but {quoted(path)} has {why}: name it with --target")


def _blocks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while block := list(itertools.islice(rows, _BLOCK)):
        yield block


def _numbers(path: Path, header: list[str], columns: list[int], block: list[Row]) -> np.ndarray:
    """The cells of `columns` as float32 (n, d), or a Mistake that names the first cell which is no finite number."""
    # itemgetter picks in C, but gives a lone column as a bare cell.
    pick = operator.itemgetter(*columns) if len(columns) > 1 else operator.itemgetter(slice(columns[0], columns[0] + 1))
    values = _as_float32(list(itertools.chain.from_iterable(pick(cells) for _, cells in block)))
    if values is None:
        for line, cells in block:
            for column in columns:
                _check_number(path, line, header[column], cells[column])
        raise AssertionError("a block fails only when one of its cells does")
    return values.reshape(len(block), len(columns))


def _as_float32(cells: Sequence[str]) -> np.ndarray | None:
    """All cells at once, or None if one of them is not a number that float32 can hold; the fast form of `finite_number`."""
    if "_" in "".join(cells):
        return None
    try:
        with np.errstate(over="ignore"):
            values = np.fromiter(map(float, cells), np.float64, len(cells)).astype(np.float32)
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def _check_number(path: Path, line: int, name: str, cell: str) -> None:
    if finite_number(cell) is None:
        came = "the cell is empty" if not cell.strip() else f"got {shown(cell)}"
        raise Mistake(
            f"expected a finite number on line {line}, column {shown(name)} of {quoted(path)}, but {came}: "
            "mend or drop it"
        )


def _targets(path: Path, name: str, labels: list[str], lines: list[int]) -> tuple[Tensor, tuple[str, ...] | None]:
    """The target column in its natural form; text is welcome, a missing value is not."""
    if _as_float32(labels) is not None:
        return number_targets(np.array(labels, dtype=np.float64))
    for line, label in zip(lines, labels):
        if not label or _is_boundless(label):
            _check_number(path, line, name, label)
    return text_targets(labels)


def _is_boundless(label: str) -> bool:
    """NaN, an infinity or beyond float32: a number in form, so no class name, and of no use as a number."""
    try:
        return not abs(float(label)) <= float(np.finfo(np.float32).max)  # as numpy's own, comparing would warn
    except ValueError:
        return False


def _listed(names: Sequence[str]) -> str:
    shortened = [shown(name, 30) for name in names[:8]]
    return ", ".join(shortened) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _refuse_no_rows(path: Path) -> NoReturn:
    raise Mistake(f"expected rows below the header of {quoted(path)}, but there are none: add data")
