"""Read data for a trained model: rows to predict for, and other data to evaluate it on."""

from collections.abc import Sequence
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from quoin.data.dataset import Dataset
from quoin.data.files import quoted
from quoin.data.files_csv import load_csv_columns, read_csv_features
from quoin.data.files_npz import read_npz_features, read_npz_signals
from quoin.data.prepared import TabularInfo
from quoin.data.signals import as_signals, is_archive, one_channel
from quoin.data.sources import check_source_name, load
from quoin.errors import UserError, format_value

__all__ = ["load_like", "read_features", "read_signals"]


def read_features(path: str | Path, feature_names: Sequence[str]) -> Float[Tensor, "samples features"]:
    """The features of a .csv, .tsv or .npz file, float64 (pixels float32), in the order of `feature_names`;
    images come flattened.

    The file may also be named as a source, csv:PATH or npz:PATH, whatever its ending.
    """
    form, colon, source_path = str(path).partition(":")
    if not colon or form not in ("csv", "npz"):
        form, source_path = Path(path).suffix.lower().removeprefix("."), path
    match form:
        case "csv" | "tsv":
            return read_csv_features(source_path, feature_names)
        case "npz":
            return read_npz_features(source_path, feature_names)
        case _:
            raise UserError(f"expected a .csv, .tsv or .npz file, got {quoted(path)}: save the rows in one of these")


def read_signals(path: str | Path, feature_names: Sequence[str]) -> Float[Tensor, "samples channels length"]:
    """The signals of an .npz archive with their own shape, or the columns `feature_names` of a table as one channel.

    The file may also be named as a source, signals:PATH.
    """
    path = str(path).removeprefix("signals:")
    return read_npz_signals(path) if is_archive(path) else one_channel(read_features(path, feature_names))


def load_like(data_info: TabularInfo, source: str, *, target: str | None = None, seed: int = 0) -> Dataset:
    """`load`, for a model that was trained on the data of `data_info`.

    Columns of a CSV go by name: those the model knows, in its order, others are ignored; the target is `target`, else
    the column that was the target in training, else one by a usual name. Other sources have no names to go by, so only
    their number of features is checked.
    """
    check_source_name(source)
    form, _, source_path = source.partition(":")
    if form == "csv" or (form == "signals" and not is_archive(source_path)):
        dataset = load_csv_columns(source_path, data_info.feature_names, target, data_info.target_name)
        return as_signals(dataset) if form == "signals" else dataset
    dataset = load(source, target=target, seed=seed)
    if dataset.num_features != data_info.num_features:
        raise UserError(
            f"expected {data_info.num_features} features as in training, but {format_value(source, 200)} has "
            f"{dataset.num_features}: "
            "give data of the same kind"
        )
    return dataset
