"""Files of rows, whatever their format: csv, tsv, parquet and JSON Lines, read by polars a batch at a time.

A file knows its columns, guesses their types from its first rows, and says where a row stands, so that an error can
name the line. polars is imported here alone, and only when a table is read.
"""

import glob
import itertools
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoin.data.csv_text import Table, is_plain_csv, open_table
from quoin.data.files import existing_file, quoted
from quoin.errors import UserError, format_value

if TYPE_CHECKING:
    import polars

__all__ = [
    "FORMATS",
    "MISSING",
    "CsvFile",
    "JsonLinesFile",
    "ParquetFile",
    "TableFile",
    "UnexpectedTypeError",
    "exactly",
    "open_files",
    "table_format",
]

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null")  # a cell that says it has no value
_GUESSED = 1000  # rows from which types are guessed; what comes later may overrule them
_BATCH = 1 << 16  # rows handed out at once


class UnexpectedTypeError(Exception):
    """A cell is not of the type that its column was taken for."""


class TableFile(ABC):
    """One file of rows under column names."""

    def __init__(self, path: Path, header: Sequence[str]) -> None:
        self.path, self.header = path, list(header)

    marks: tuple[str, ...] = (".",)  # decimal marks that numbers written as text may have

    @abstractmethod
    def guessed(self) -> "dict[str, polars.DataType]":
        """The type of each column by the first rows, or as the file states it."""

    @abstractmethod
    def frames(self, types: "dict[str, polars.DataType]", *, words: bool = True) -> "Iterator[polars.DataFrame]":
        """These columns of all rows, batch by batch; a cell that does not fit its type is an UnexpectedTypeError.

        Args:
            words: Whether a word that says there is no value fits a number; to look for them takes a third longer.
        """

    @abstractmethod
    def place(self, row: int) -> str:
        """Where a row stands, as an error says it: "line 3" for row 1 of a CSV with a header."""

    def cells(self, column: str) -> Iterator[str]:
        """The cells of a column as they are written; none where the format keeps numbers as such."""
        return iter(())

    def read_carefully(self) -> None:
        """Read without polars from now on, where there is another way."""
        return


class CsvFile(TableFile):
    """Text with a header line; cells separated by commas, semicolons or tabs."""

    delimiter: str | None = None  # found out where there is none

    def __init__(self, path: Path) -> None:
        self.table: Table = open_table(path, self.delimiter)
        super().__init__(self.table.path, self.table.header)
        self.marks = self.table.marks
        self.polars_agrees = is_plain_csv(self.path, self.table.delimiter)

    def guessed(self) -> "dict[str, polars.DataType]":
        import polars

        rows = [cells for _, cells in itertools.islice(itertools.chain.from_iterable(self.table.blocks()), _GUESSED)]
        columns = {name: polars.Series([row[at] for row in rows]) for at, name in enumerate(self.header)}
        return {name: polars.Float64() if _all_numbers(cells) else polars.String() for name, cells in columns.items()}

    def frames(self, types: "dict[str, polars.DataType]", *, words: bool = True) -> "Iterator[polars.DataFrame]":
        if self.polars_agrees:
            yield from self._by_polars(types, words)
        else:
            yield from self._by_the_reader(types)

    def _by_polars(self, types: "dict[str, polars.DataType]", words: bool) -> "Iterator[polars.DataFrame]":
        import polars

        last = self.header[-1]
        schema = {name: types.get(name, polars.String()) for name in self.header}
        lazy = polars.scan_csv(
            self.path,
            separator=self.table.delimiter,
            has_header=False,  # by the reader's names, which are stripped: polars would compare them with its own
            skip_rows=1,
            schema=schema,
            null_values=list(MISSING) if words else None,
            glob=False,
        )
        wanted, limit, seen = list(types), None, 0
        try:
            for batch in lazy.select(exactly([*wanted, last])).collect_batches(chunk_size=_BATCH, maintain_order=True):
                if limit is None and batch[last].null_count():
                    # polars fills a short row, and takes a blank line for a row of nothing: the reader tells both.
                    limit = sum(len(block) for block in self.table.blocks())
                batch = batch.head(limit - seen) if limit is not None else batch
                seen += len(batch)
                yield batch.select(exactly(wanted))
        except polars.exceptions.PolarsError as error:
            sum(len(block) for block in self.table.blocks())  # a row too long is told with its line
            raise UnexpectedTypeError(str(error)) from None
        if not seen:
            next(self.table.blocks())  # says that there are none

    def _by_the_reader(self, types: "dict[str, polars.DataType]") -> "Iterator[polars.DataFrame]":
        import polars

        at = {name: self.header.index(name) for name in types}
        for block in self.table.blocks():
            cells = {name: [row[column].strip() for _, row in block] for name, column in at.items()}
            frame = polars.DataFrame(cells, schema=dict.fromkeys(types, polars.String))
            frame = frame.with_columns(polars.all().replace(dict.fromkeys(MISSING)))
            try:
                yield frame.cast(types, strict=True)  # type: ignore[arg-type]
            except polars.exceptions.PolarsError as error:
                raise UnexpectedTypeError(str(error)) from None

    def read_carefully(self) -> None:
        self.polars_agrees = False

    def place(self, row: int) -> str:
        lines = (line for block in self.table.blocks() for line, _ in block)
        return f"line {next(itertools.islice(lines, row, None))}"

    def cells(self, column: str) -> Iterator[str]:
        at = self.header.index(column)
        return (row[at].strip() for block in self.table.blocks() for _, row in block)


class TsvFile(CsvFile):
    """Text whose cells are separated by tabs."""

    delimiter = "\t"


class ParquetFile(TableFile):
    """Columns with their types."""

    def __init__(self, path: Path) -> None:
        import polars

        path = existing_file(path)
        with _damage_told(path, "a Parquet file"):
            self.schema: dict[str, Any] = dict(polars.read_parquet_schema(path))
        super().__init__(path, list(self.schema))

    def guessed(self) -> "dict[str, polars.DataType]":
        return self.schema

    def frames(self, types: "dict[str, polars.DataType]", *, words: bool = True) -> "Iterator[polars.DataFrame]":
        import polars

        empty = True
        with _damage_told(self.path, "a Parquet file"):
            lazy = polars.scan_parquet(self.path, glob=False).select(exactly(types))
            for batch in lazy.collect_batches(chunk_size=_BATCH, maintain_order=True):
                empty = empty and not len(batch)
                yield batch.cast(types)  # type: ignore[arg-type]
        if empty:
            raise UserError(f"expected rows in {quoted(self.path)}, but there are none: add data")

    def place(self, row: int) -> str:
        return f"row {row + 1}"


class JsonLinesFile(TableFile):
    """One JSON object a line; a name that a line leaves out is a missing cell."""

    def __init__(self, path: Path) -> None:
        import polars

        path = existing_file(path)
        try:
            self.frame = polars.read_ndjson(path, infer_schema_length=None)
        except BaseException as error:  # a panic of polars is no Exception
            _reraise_interrupt(error)
            raise _json_lines_error(path, error) from None
        if not len(self.frame):
            raise UserError(f"expected rows in {quoted(path)}, but there are none: add data")
        _check_one_type_each(path, self.frame)
        super().__init__(path, self.frame.columns)

    def guessed(self) -> "dict[str, polars.DataType]":
        return dict(self.frame.schema)

    def frames(self, types: "dict[str, polars.DataType]", *, words: bool = True) -> "Iterator[polars.DataFrame]":
        frame = self.frame.select(exactly(types))
        for name, kind in frame.schema.items():
            if kind.is_nested() and types[name] != kind:
                raise UserError(
                    f"expected numbers, text or booleans in column {format_value(name)} of {quoted(self.path)}, got "
                    f"{str(kind).split('(')[0]}: write it as it was in training"
                )
        yield frame.cast(types)  # type: ignore[arg-type]

    def place(self, row: int) -> str:
        with self.path.open(encoding="utf-8") as lines:
            filled = (number for number, line in enumerate(lines, start=1) if line.strip())
            return f"line {next(itertools.islice(filled, row, None))}"


FORMATS: dict[str, Callable[[Path], TableFile]] = {
    "csv": CsvFile,
    "tsv": TsvFile,
    "parquet": ParquetFile,
    "jsonl": JsonLinesFile,
}


def exactly(names: Iterable[str]) -> Any:
    """The columns of these names, in this order: a bare name such as ^a$ would be a pattern to polars."""
    from polars import selectors

    return selectors.by_name(*dict.fromkeys(names))


def table_format(path: str | Path) -> str:
    """The format of a table by the ending of its name; csv where that says nothing."""
    ending = Path(path).suffix.lower().removeprefix(".")
    return ending if ending in FORMATS else "csv"


def open_files(form: str, source_path: str | Path) -> list[TableFile]:
    """The file at `source_path`, or all files of this format in a folder or of a glob, in the order of their names."""
    paths = _matching(form, str(source_path))
    files = [FORMATS[form](path) for path in paths]
    for other in files[1:]:
        if set(other.header) != set(files[0].header):
            odd = next(iter(set(other.header) ^ set(files[0].header)))
            has = "has" if odd in other.header else "lacks"
            raise UserError(
                f"expected the same columns in every file, but {quoted(other.path)} {has} {format_value(odd)}, unlike "
                f"{quoted(files[0].path)}: name the columns alike"
            )
    return files


def _matching(form: str, source_path: str) -> list[Path]:
    place = os.path.expanduser(source_path)
    if any(mark in place for mark in "*?[") and "\0" not in place and not os.path.exists(place):
        paths = sorted(map(Path, glob.glob(place, recursive=True)))
        if not paths:
            raise UserError(f"expected files that match {quoted(source_path)}, but there are none: check the pattern")
        return paths
    if not os.path.isdir(place):
        return [Path(source_path)]
    try:
        inside = sorted(Path(place).iterdir())
    except OSError as error:
        raise UserError(f"{quoted(source_path)} cannot be read ({error.strerror}): check its permissions") from None
    paths = [path for path in inside if path.suffix.lower() == f".{form}" and path.is_file()]
    if not paths:
        raise UserError(
            f"expected .{form} files in the folder {quoted(source_path)}, but there are none: give the folder that "
            "holds them, or a file"
        )
    return paths


def _all_numbers(cells: "polars.Series") -> bool:
    """Whether every cell that has a value is a number, and there is one."""
    import polars

    filled = cells.str.strip_chars().replace(dict.fromkeys(MISSING)).drop_nulls()
    return len(filled) > 0 and not filled.cast(polars.Float64, strict=False).null_count()


class _damage_told:  # noqa: N801
    """A context in which whatever polars raises, panics included, becomes a UserError about `path`."""

    def __init__(self, path: Path, what: str) -> None:
        self.path, self.what = path, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, (UserError, GeneratorExit)):
            return
        _reraise_interrupt(error)
        raise UserError(
            f"expected {self.what}, but {quoted(self.path)} cannot be read ({_reason(error)}): write it again"
        ) from None


def _reraise_interrupt(error: BaseException) -> None:
    if isinstance(error, (KeyboardInterrupt, SystemExit, MemoryError)):
        raise error


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:100] or type(error).__name__


def _json_lines_error(path: Path, error: BaseException) -> UserError:
    """What is wrong with the first line that is no object, or what polars said."""
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    value = json.loads(line, parse_constant=_no_json)
                except (ValueError, RecursionError):
                    return UserError(
                        f"expected a JSON object on line {number} of {quoted(path)}, got {format_value(line.strip())}: "
                        "mend that line"
                    )
                if not isinstance(value, dict):
                    return UserError(
                        f"expected a JSON object on line {number} of {quoted(path)}, got {format_value(line.strip())}: "
                        'write {"column": value, ...}'
                    )
    except UnicodeDecodeError:
        return UserError(
            f"expected UTF-8 text in {quoted(path)}, but it is in another encoding or no text: save it as UTF-8"
        )
    except OSError as unread:
        return UserError(f"{quoted(path)} cannot be read ({unread.strerror}): check its permissions")
    return UserError(f"expected one type a column in {quoted(path)}, but it cannot be read ({_reason(error)}): mend it")


def _no_json(word: str) -> None:
    raise ValueError(word)  # NaN and Infinity are Python's, not JSON's


def _check_one_type_each(path: Path, frame: "polars.DataFrame") -> None:
    """Refuse a name under which some lines have text and others numbers: polars would turn the numbers into text."""
    import polars

    text = {name for name, kind in frame.schema.items() if kind == polars.String}
    first: dict[str, tuple[type, int]] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            for name, value in json.loads(line).items() if text and line.strip() else ():
                if name not in text or value is None:
                    continue
                kind, line_of = first.setdefault(name, (type(value), number))
                if type(value) is not kind:
                    raise UserError(
                        f"expected one type in column {format_value(name)} of {quoted(path)}, but line {line_of} has "
                        f"{kind.__name__} and line {number} {type(value).__name__}: write them alike"
                    )
