"""Read rows that have no target: what `quoin predict` is given."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from quoin.data.files import quoted
from quoin.data.files_csv import read_csv_features
from quoin.data.files_npz import read_npz_features
from quoin.errors import Mistake

__all__ = ["read_features"]


def read_features(path: str | Path, feature_names: Sequence[str]) -> Tensor:
    """The features of a .csv, .tsv or .npz file, (n, d) float32, in the order of `feature_names`; images come flattened."""
    match Path(path).suffix.lower():
        case ".csv" | ".tsv":
            return read_csv_features(path, feature_names)
        case ".npz":
            return read_npz_features(path, feature_names)
        case _:
            raise Mistake(f"expected a .csv, .tsv or .npz file, got {quoted(path)}: save the rows in one of these")
