"""A table of the reader's own, small enough for a page: the numbers of its columns."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError, format_value

__all__ = ["OwnTable", "read_table"]

MOST_ROWS = 20_000


@dataclass(frozen=True)
class OwnTable:
    """The columns of a CSV file by their names: those of numbers, and those of words."""

    numbers: dict[str, Float[Tensor, " row"]]
    words: dict[str, list[str]]
    num_rows: int

    def first_numbers(self, count: int) -> tuple[tuple[str, ...], Float[Tensor, "row column"]]:
        """The names and values of its first columns of numbers; too few are an error."""
        if len(self.numbers) < count:
            raise UserError(
                f"expected at least {count} columns of numbers, got {len(self.numbers)}; choose another file"
            )
        names = tuple(self.numbers)[:count]
        return names, torch.stack([self.numbers[name] for name in names], dim=-1)


def read_table(content: bytes) -> OwnTable:
    """The table in a CSV file with a header. Empty and non-finite cells are errors that name their line."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError("expected a CSV file in UTF-8, got other bytes; save it as UTF-8") from None
    try:
        delimiter = csv.Sniffer().sniff(text[:4000], ",;\t").delimiter
    except csv.Error:
        delimiter = ","
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter, strict=True) if row]
    except csv.Error as error:
        raise UserError(f"expected a CSV file, got {error}; choose another file") from None
    if len(rows) < 3:
        raise UserError(f"expected a header and at least two rows, got {len(rows)} lines; choose another file")
    if len(rows) > MOST_ROWS + 1:
        raise UserError(f"expected at most {MOST_ROWS:,} rows, got {len(rows) - 1:,}; choose a smaller file")
    header, *body = rows
    for line, row in enumerate(body, start=2):
        if len(row) != len(header):
            raise UserError(f"expected {len(header)} cells in line {line}, got {len(row)}; mend that line")
    numbers, words = {}, {}
    for column, name in enumerate(header):
        cells = [row[column].strip() for row in body]
        parsed = [_number(cell) for cell in cells]
        if all(value is None for value in parsed):
            words[name] = cells
            continue
        for line, (cell, value) in enumerate(zip(cells, parsed), start=2):
            if value is None or not math.isfinite(value):
                raise UserError(f"expected a number in line {line}, column {name!r}, got {format_value(cell)}; mend it")
        numbers[name] = torch.tensor([value for value in parsed if value is not None], dtype=torch.float32)
    return OwnTable(numbers, words, len(body))


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
