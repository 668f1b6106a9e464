"""Tables in text: the header and the rows of a CSV file, with all that can be wrong with either as an error of one
line."""

import csv
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quoin.data.files import existing_file, quoted
from quoin.errors import UserError, format_value

__all__ = ["Block", "Table", "finite_number", "is_plain_csv", "listed", "number_in", "open_table"]

_FLOAT32_MAX = 3.4028234663852886e38
_PIECE = 1 << 23  # bytes looked through at once
_BLOCK = 4096  # rows handed out at once: as text a row takes many times its size as numbers

Row = tuple[int, list[str]]  # the line on which the row ends, and its cells
Block = list[Row]


@dataclass(frozen=True)
class Table:
    """A file whose header is known to be sound; every walk over its rows reads it anew."""

    path: Path
    header: list[str]
    delimiter: str

    @property
    def marks(self) -> tuple[str, ...]:
        """The decimal marks that its numbers may have; only where a semicolon separates the cells is a comma free to be
        one."""
        return _marks(self.delimiter)

    def blocks(self) -> Iterator[Block]:
        """The rows below the header, each as wide as the header; at least one."""
        rows = self._rows()
        first = list(itertools.islice(rows, _BLOCK))
        if not first:
            raise UserError(f"expected rows below the header of {quoted(self.path)}, but there are none: add data")
        yield first
        while block := list(itertools.islice(rows, _BLOCK)):
            yield block

    def _rows(self) -> Iterator[Row]:
        """The rows, or a UserError at the first that is too wide or too narrow; blank lines may only close the file."""
        blank, width = None, len(self.header)
        for line, cells in itertools.islice(_records(self.path, self.delimiter), 1, None):
            if not cells:
                blank = blank or line
                continue
            if blank is not None:
                raise UserError(
                    f"expected a row on line {blank} of {quoted(self.path)}, but the line is blank: remove it or "
                    "fill it"
                )
            if len(cells) != width:
                raise UserError(
                    f"expected {width} cells on line {line} of {quoted(self.path)} as in its header, got "
                    f"{len(cells)}: mend that line"
                )
            yield line, cells


def open_table(source_path: str | Path, delimiter: str | None = None) -> Table:
    """The table at `source_path`, its header checked; the delimiter is found out unless it is given."""
    path = existing_file(source_path)
    delimiter = delimiter or _delimiter(path)
    _, header = next(_records(path, delimiter), (0, []))
    header = [name.strip() for name in header]
    if not header:
        raise UserError(f"expected column names on the first line of {quoted(path)}, but the line is blank: remove it")
    if _looks_like_data(header, _marks(delimiter)):
        raise UserError(
            f"expected column names in {quoted(path)}, but the first line looks like data: add a header line"
        )
    if "" in header:
        raise UserError(
            f"expected a name for every column, but column {header.index('') + 1} of {quoted(path)} has none: "
            "name it, or leave it out (pandas: index=False)"
        )
    twice = next((name for name, group in itertools.groupby(sorted(header)) if len(list(group)) > 1), None)
    if twice is not None:
        raise UserError(
            f"expected different column names, but {quoted(path)} has {format_value(twice)} twice: rename one"
        )
    return Table(path, header, delimiter)


def finite_number(cell: str) -> float | None:
    """The number that `cell` writes if float32 can hold it, else None; Python's 1_000 is not a number in a data
    file."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if abs(value) <= _FLOAT32_MAX and "_" not in cell else None


def number_in(cell: str, mark: str) -> float | None:
    """The number that `cell` writes with this decimal mark, or None.

    >>> number_in("1,5", ","), number_in("1.5", ","), number_in("2", ",")
    (1.5, None, 2.0)
    """
    if mark == ",":
        return None if "." in cell else finite_number(cell.replace(",", "."))
    return finite_number(cell)


def listed(names: Sequence[str]) -> str:
    """Names in a message: the first eight, and how many more."""
    shortened = [format_value(name, 30) for name in names[:8]]
    return ", ".join(shortened) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _looks_like_data(header: list[str], marks: tuple[str, ...]) -> bool:
    """Only numbers, or numbers for half of it or more; but whole ones that rise (0, 1, 2 or 2019, 2020) are names
    beside others."""
    numbers = [name for name in header if any(number_in(name, mark) is not None for mark in marks)]
    if len(numbers) == len(header):
        return True
    whole = all(name.isdecimal() for name in numbers)
    names = whole and all(float(left) < float(right) for left, right in itertools.pairwise(numbers))
    return 2 * len(numbers) >= len(header) and not names


def _marks(delimiter: str) -> tuple[str, ...]:
    return (".", ",") if delimiter == ";" else (".",)


def _records(path: Path, delimiter: str) -> Iterator[Row]:
    """Every record of the file as its cells, with all that can be wrong with text as a UserError."""
    line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(_without_nul(path, file), delimiter=delimiter, skipinitialspace=True, strict=True)
            for cells in reader:
                line = reader.line_num
                yield line, cells
    except UnicodeDecodeError:
        raise UserError(
            f"expected UTF-8 text in {quoted(path)}, but it is in another encoding or no text: save it as UTF-8"
        ) from None
    except csv.Error as error:
        raise UserError(
            f"expected a well-formed table, but {quoted(path)} is not, after line {line} ({error}): mend that row"
        ) from None
    except OSError as error:
        raise UserError(f"{quoted(path)} cannot be read ({error.strerror}): check its permissions") from None


def _without_nul(path: Path, lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            raise UserError(
                f"expected text, but line {number} of {quoted(path)} has a NUL byte: this is a binary or damaged file"
            )
        yield line


def _delimiter(path: Path) -> str:
    """Semicolon, comma or tab: one that splits the header, rather evenly with the first rows, into the most columns.

    The semicolon wins a tie: cells with a comma inside, such as 1,5, are far more common than cells with a semicolon.
    """
    best, best_score = ",", (False, 1)
    for delimiter in (";", ",", "\t"):
        try:
            widths = [len(cells) for _, cells in itertools.islice(_records(path, delimiter), 4) if cells]
        except UserError:
            continue  # reported again, with its line, when the table itself is read
        score = (len(set(widths)) == 1, widths[0]) if widths else (False, 0)
        if score[1] > 1 and score > best_score:
            best, best_score = delimiter, score
    return best


def is_plain_csv(path: Path, delimiter: str) -> bool:
    """Whether polars reads this text as the careful reader does: no NUL, no line that ends in a lone carriage return,
    quotes only around whole cells."""
    ends, inside, before = (ord(delimiter), 10, 13), False, 10
    try:
        with path.open("rb") as file:
            piece = file.read(_PIECE).removeprefix(b"\xef\xbb\xbf")
            while piece:
                while piece[-1:] in b'"\r' and (more := file.read(1)):  # what these mean, the next byte says
                    piece += more
                if b"\0" in piece or (b"\r" in piece and piece.count(b"\r") != piece.count(b"\r\n")):
                    return False
                at = piece.find(b'"')
                while at >= 0:
                    ahead = piece[at + 1] if at + 1 < len(piece) else 10
                    if inside and ahead == ord('"'):
                        at += 1  # a doubled quote inside a cell
                    elif (ahead if inside else piece[at - 1] if at else before) not in ends:
                        return False
                    else:
                        inside = not inside
                    at = piece.find(b'"', at + 1)
                before, piece = piece[-1], file.read(_PIECE)
    except OSError:
        return False  # the reader says why
    return not inside
