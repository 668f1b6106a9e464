"""From a table's columns to a model's features: levels one-hot, missing cells filled in; all learnt from training rows
alone."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from quoin.data.table_columns import Column, ColumnKind, flag_value
from quoin.data.tables import Missing
from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.tensor.labels import as_indices

__all__ = ["ColumnEncoding", "TableEncoder"]

_ROWS = 1 << 16  # encoded at once


@shown
@dataclass(frozen=True)
class ColumnEncoding:
    """What the training rows say of a column, and so how its cells become features."""

    name: str
    kind: ColumnKind
    levels: tuple[str, ...] = ()  # of a category: those of the training rows, one feature each
    # Of the training rows: what a missing cell becomes, no level of a category; None where such are refused.
    mean: float | None = None
    has_missing: bool = False  # among the training rows; a feature of its own then says which cells are missing

    @property
    def feature_names(self) -> tuple[str, ...]:
        values = tuple(f"{self.name}={level}" for level in self.levels) if self.kind == "category" else (self.name,)
        return (*values, f"{self.name} missing") if self.has_missing else values


@shown
class TableEncoder(NamedTuple):
    """Numbers as they are, categories one-hot, missing cells by the mean and an indicator.

    A level that no training row has is a row of zeros.
    """

    columns: tuple[ColumnEncoding, ...]

    @classmethod
    def fit(
        cls,
        columns: tuple[Column, ...],
        values: Float64[Tensor, "samples columns"],
        rows: Int[Tensor, "selected"],
        missing: Missing = "error",
    ) -> "TableEncoder":
        """What the training `rows` say of each column."""
        found = []
        for at, column in enumerate(columns):
            cells = values[as_indices(rows), at]
            known = cells[~cells.isnan()]
            has_missing = len(known) < len(cells)
            if column.kind == "category":
                levels = tuple(column.levels[code] for code in known.unique().long().tolist())
                filled = 0.0 if missing == "mean" else None
                found.append(ColumnEncoding(column.name, "category", levels, filled, has_missing))
                continue
            if not len(known):
                raise UserError(
                    f"expected values of {format_value(column.name)} in the training rows, but every cell there is "
                    f"missing: leave it out with --ignore {flag_value(column.name)}"
                )
            filled = float(known.mean()) if missing == "mean" else None
            found.append(ColumnEncoding(column.name, column.kind, (), filled, has_missing))
        return cls(tuple(found))

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def is_identity(self) -> bool:
        """Whether every feature is a column as it is, unless a cell is missing."""
        return all(column.kind != "category" and not column.has_missing for column in self.columns)

    def transform(
        self, columns: tuple[Column, ...], values: Float64[Tensor, "samples columns"]
    ) -> Float64[Tensor, "samples features"]:
        """The features of rows whose columns are these, in the order of fitting."""
        if self.is_identity and not values.isnan().any():
            return values
        features = values.new_empty(len(values), len(self.feature_names))
        for start in range(0, len(values), _ROWS):
            piece, place = values[start : start + _ROWS], features[start : start + _ROWS]
            at = 0
            for encoding, column, cells in zip(self.columns, columns, piece.unbind(1), strict=True):
                gaps = cells.isnan()
                if encoding.kind == "category":
                    for level in encoding.levels:
                        code = column.levels.index(level) if level in column.levels else -1
                        place[:, at] = cells == code
                        at += 1
                else:
                    place[:, at] = torch.where(gaps, encoding.mean or 0.0, cells)
                    at += 1
                if encoding.has_missing:
                    place[:, at] = gaps
                    at += 1
        return features

    def remarks(self, columns: tuple[Column, ...], values: Float64[Tensor, "samples columns"]) -> list[str]:
        """What a user should know of rows that are new to the model: levels it never saw, cells it fills in."""
        told = []
        for encoding, column, cells in zip(self.columns, columns, values.unbind(1), strict=True):
            strange = [code for code, level in enumerate(column.levels) if level not in encoding.levels]
            if count := int(torch.isin(cells, torch.tensor(strange, dtype=cells.dtype)).sum()):
                names = ", ".join(format_value(column.levels[code], 30) for code in strange[:3])
                more = f" and {len(strange) - 3} more" if len(strange) > 3 else ""
                told.append(
                    f"{count} of {len(cells)} rows have a level of {format_value(column.name, 30)} that training did "
                    f"not ({names}{more}): they count as none of its levels"
                )
            if (count := int(cells.isnan().sum())) and not encoding.has_missing:
                filled = "no level" if encoding.kind == "category" else f"the training mean {encoding.mean:.6g}"
                told.append(
                    f"{count} of {len(cells)} rows have no {format_value(column.name, 30)}, as no training row had: "
                    f"{filled} stands in"
                )
        return told
