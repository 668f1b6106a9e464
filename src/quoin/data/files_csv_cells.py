"""From a table's cells to numbers: a block at a time where all is well, cell by cell only to report what is not."""

import itertools
import operator
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from quoin.data.files import quoted
from quoin.data.files_csv_text import Block, Table, number_in
from quoin.errors import UserError, format_value

__all__ = ["Cells", "read_cells"]


_ROUNDINGS = 2**12  # a column that varies by fewer roundings of its size is compared as it is written


class Cells(NamedTuple):
    """The cells of the columns to read; `numbers` are the target's, None where it is text or there is none."""

    features: np.ndarray  # (n, d) float64, so that what is large keeps its last digits until it is centred
    numbers: np.ndarray | None  # (n,) float64
    labels: list[str]  # the target as it is written
    lines: list[int]  # where each row ends


def read_cells(table: Table, columns: list[int], aim: int | None, *, may_ignore: bool) -> Cells:
    """The columns as numbers and the target `aim` as it comes, all with one decimal mark; or a UserError that counts
    what is none.

    `may_ignore` says whether a column could be left out, as in training, or is needed, as a trained model's are.
    """
    for mark in table.marks:
        found = _read_with(table, mark, columns, aim)
        if found is not None:
            if may_ignore:  # to learn from; rows to predict for may well be alike
                _check_distinguishable(table, mark, columns, aim, found)
            return found
    raise _refusal(table, columns, aim, may_ignore)


def _read_with(table: Table, mark: str, columns: list[int], aim: int | None) -> Cells | None:
    """The cells if every feature, and a target that holds nothing but numbers, is written with `mark`."""
    # itemgetter picks in C, but gives a lone column as a bare cell.
    pick = operator.itemgetter(*columns) if len(columns) > 1 else operator.itemgetter(slice(columns[0], columns[0] + 1))
    features, labels, lines = [], [], []
    for block in table.blocks():
        values = _numbers(list(itertools.chain.from_iterable(pick(cells) for _, cells in block)), mark)
        if values is None:
            return None
        features.append(values.reshape(len(block), len(columns)))
        labels += _column(block, aim) if aim is not None else []
        lines += [line for line, _ in block]
    numbers = _numbers(labels, mark) if aim is not None else None
    if aim is not None and numbers is None and all(_is_number(label, table.marks) for label in labels):
        return None  # numbers, but written with another mark
    return Cells(np.concatenate(features), numbers, labels, lines)


def _check_distinguishable(table: Table, mark: str, columns: list[int], aim: int | None, found: Cells) -> None:
    """Refuse a column whose numbers differ as they are written, and not all of them as float64 holds them."""
    given = [(column, found.features[:, index]) for index, column in enumerate(columns)]
    if aim is not None and found.numbers is not None:
        given.append((aim, found.numbers))
    for column, values in given:
        if np.ptp(values) > _ROUNDINGS * np.finfo(np.float64).eps * np.abs(values).max():
            continue
        written = {cell.replace(mark, ".") for block in table.blocks() for cell in _column(block, column)}
        exact = sorted({Decimal(cell) for cell in written})
        same = next(((a, b) for a, b in itertools.pairwise(exact) if float(a) == float(b)), None)
        if same is not None:
            raise UserError(
                f"expected numbers that 64 bits can distinguish in column {format_value(table.header[column], 40)} "
                f"of {quoted(table.path)}, "
                f"but {format_value(same[0], 30)} and {format_value(same[1], 30)} are one there: "
                f"subtract what all have in common{'' if column == aim else ', or leave the column out with --ignore'}"
            )


def _numbers(cells: Sequence[str], mark: str) -> np.ndarray | None:
    """All cells at once, or None if one of them is not a number that float32 can hold; the fast form of `number_in`."""
    joined = "".join(cells)
    if "_" in joined or (mark == "," and "." in joined):
        return None
    if mark == "," and "," in joined:
        cells = [cell.replace(",", ".") for cell in cells]
    try:
        values = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        return None
    with np.errstate(over="ignore"):
        return values if np.isfinite(values.astype(np.float32)).all() else None


def _column(block: Block, column: int) -> list[str]:
    return [cells[column].strip() for _, cells in block]


def _is_number(cell: str, marks: tuple[str, ...]) -> bool:
    return any(number_in(cell, mark) is not None for mark in marks)


class _Wrong(NamedTuple):
    """What is no number in a table: how many cells a column, and the first of each with its line."""

    counts: Counter[int]
    first: dict[int, tuple[int, str]]


def _refusal(table: Table, columns: list[int], aim: int | None, may_ignore: bool) -> UserError:
    """Names the first cell that is no number, by the decimal mark which most cells have, and counts all of them."""
    found, num_rows = _searched(table, columns, aim)
    mark = min(found, key=lambda mark: found[mark].counts.total())
    counts, first = found[mark]
    assert counts, "a table is searched only when one of its cells is no number"
    line, index = min(
        (line, columns.index(column) if column != aim else len(columns)) for column, (line, _) in first.items()
    )
    column = [*columns, aim][index]
    assert column is not None
    cell, total = first[column][1], counts.total()
    where = f"on line {line}, column {format_value(table.header[column])} of {quoted(table.path)}"
    got = "the cell is empty" if not cell else f"got {format_value(cell)}"
    if total > 1:
        got += f" ({total} cells in {_several(len(counts), 'column')} are not numbers)"
    text = [table.header[each] for each in columns if 2 * counts[each] > num_rows and first[each][1]]
    if _is_number(cell, table.marks):
        advice = f"the other numbers have a decimal {'comma' if mark == ',' else 'point'}; use one mark throughout"
    elif not may_ignore:
        advice = "the model needs this column as numbers; mend or drop those rows"
    elif text:
        it, what = ("it", "text column") if len(text) == 1 else ("them", "text columns")
        advice = f"{what}: leave {it} out with --ignore {_words(text)} or encode {it} as numbers"
    else:
        advice = "mend or drop it" if total == 1 else "mend or drop them"
    return UserError(f"expected a finite number {where}, but {got}: {advice}")


def _searched(table: Table, columns: list[int], aim: int | None) -> tuple[dict[str, _Wrong], int]:
    """For every decimal mark, what is no number with it; the target counts where it holds nothing but numbers."""
    found = {mark: _Wrong(Counter(), {}) for mark in table.marks}
    num_rows, target_is_text = 0, False
    for block in table.blocks():
        num_rows += len(block)
        for column in columns if aim is None else [*columns, aim]:
            cells = _column(block, column)
            for mark, wrong in found.items():
                if _numbers(cells, mark) is None:
                    bad = [(line, cell) for (line, _), cell in zip(block, cells) if number_in(cell, mark) is None]
                    wrong.counts[column] += len(bad)
                    wrong.first.setdefault(column, bad[0])
            if column == aim and not target_is_text:
                target_is_text = not all(_is_number(cell, table.marks) for cell in cells)
    if aim is not None and target_is_text:
        for wrong in found.values():
            wrong.counts.pop(aim, None)
            wrong.first.pop(aim, None)
    return found, num_rows


def _several(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _words(names: list[str]) -> str:
    """Column names as a command line takes them: bare where they can be, at most eight."""
    bare = [name if re.fullmatch(r"\w[\w.-]{0,40}", name) else format_value(name, 42) for name in names[:8]]
    return " ".join(bare) + (" ..." if len(names) > 8 else "")
