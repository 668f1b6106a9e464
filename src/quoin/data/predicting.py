"""Read data for a trained model: rows to predict for, and other data to evaluate it on."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data.dataset import Dataset, column_names
from quoin.data.encoding import TableEncoder
from quoin.data.files import existing_file, quoted
from quoin.data.files_images import Pictures, load_images, read_pictures
from quoin.data.files_npz import read_npz_features, read_npz_signals
from quoin.data.image_cache import ImageSettings
from quoin.data.image_decoding import SUFFIXES
from quoin.data.prepared import TabularInfo
from quoin.data.signals import as_signals, is_archive, one_channel
from quoin.data.sources import check_source_name, load
from quoin.data.table_columns import ColumnKind
from quoin.data.table_files import FORMATS, table_format
from quoin.data.tables import load_table_columns, read_table_columns
from quoin.display import shown
from quoin.errors import UserError, format_value

__all__ = ["FeatureRows", "load_like", "read_features", "read_pictures_like", "read_rows", "read_signals"]


@shown
class FeatureRows(NamedTuple):
    """Rows as a trained model takes them, before they are scaled."""

    features: Float[Tensor, "samples features"] | Float[Tensor, "samples channels length"]
    remarks: list[str]  # what the user should know of them


def read_features(path: str | Path, data_info: TabularInfo) -> FeatureRows:
    """The features of a .csv, .tsv, .parquet, .jsonl or .npz file, float64 (pixels float32), as a model trained on
    `data_info` takes them; images come flattened.

    The file may also be named as a source, csv:PATH or npz:PATH, whatever its ending.
    """
    form, source_path = _form(path)
    if form in FORMATS and data_info.columns:
        table = read_table_columns(form, source_path, _kinds(data_info), data_info.missing)
        values, encoder = torch.from_numpy(table.values), TableEncoder(data_info.columns)
        return FeatureRows(encoder.transform(table.columns, values), encoder.remarks(table.columns, values))
    return FeatureRows(read_rows(path, data_info.feature_names or column_names(data_info.feature_shape)), [])


def read_rows(path: str | Path, feature_names: Sequence[str]) -> Float[Tensor, "samples features"]:
    """The columns `feature_names` of such a file as numbers, in that order; an archive has no names to go by."""
    form, source_path = _form(path)
    if form in FORMATS:
        kinds: dict[str, ColumnKind] = dict.fromkeys(feature_names, "number")
        return torch.from_numpy(read_table_columns(form, source_path, kinds).values)
    if form == "npz":
        return read_npz_features(source_path, feature_names)
    raise UserError(
        f"expected a .csv, .tsv, .parquet, .jsonl or .npz file, got {quoted(path)}: save the rows in one of these"
    )


def _form(path: str | Path) -> tuple[str, str]:
    """The format of a file and its path, named as a source or by its ending."""
    form, colon, source_path = str(path).partition(":")
    if colon and form in (*FORMATS, "npz"):
        return form, source_path
    return Path(path).suffix.lower().removeprefix("."), str(path)


def read_pictures_like(data_info: TabularInfo, path: str | Path) -> Pictures | None:
    """A folder of pictures or one picture, as images like those of `data_info`; None if `path` is neither.

    A folder may also be named as a source, images:FOLDER.
    """
    form, colon, source_path = str(path).partition(":")
    named = bool(colon) and form == "images"
    place = Path(source_path if named else path).expanduser()
    if not named and not os.path.isdir(place) and place.suffix.lower() not in SUFFIXES:
        return None
    settings = _settings(data_info, f"predicts from tables, and {quoted(path)} holds pictures")
    if not os.path.isdir(place):
        existing_file(place)
    return read_pictures(str(place), settings)


def _settings(data_info: TabularInfo, otherwise: str) -> ImageSettings:
    if len(data_info.feature_shape) != 3:
        raise UserError(f"the run {otherwise}: give a table or a .npz file, or a run that was trained on images")
    channels, height, width = data_info.feature_shape
    if channels not in (1, 3):
        raise UserError(
            f"the run was trained on images of {channels} channels, and pictures have 1 or 3: give a .npz file"
        )
    return ImageSettings((height, width), channels)


def read_signals(path: str | Path, data_info: TabularInfo) -> FeatureRows:
    """The signals of an .npz archive with their own shape, or the columns of a table as one channel.

    The file may also be named as a source, signals:PATH.
    """
    path = str(path).removeprefix("signals:")
    if is_archive(path):
        return FeatureRows(read_npz_signals(path), [])
    found = read_features(path, data_info)
    return FeatureRows(one_channel(found.features), found.remarks)


def _kinds(data_info: TabularInfo) -> dict[str, ColumnKind]:
    """The columns that a model knows and what each is; features without a table's columns are numbers."""
    if data_info.columns:
        return {column.name: column.kind for column in data_info.columns}
    return dict.fromkeys(data_info.feature_names, "number")


def load_like(
    data_info: TabularInfo, source: str, *, target: str | Sequence[str] | None = None, seed: int = 0
) -> Dataset:
    """`load`, for a model that was trained on the data of `data_info`; the features are encoded as then.

    Pictures are made as large as the model's. Columns of a table go by name: those the model knows, in its order,
    others are ignored; the target is `target`, else the column that was the target in training, else one by a usual
    name. Other sources have no names to go by, so only their number of features is checked.
    """
    check_source_name(source)
    form, _, source_path = source.partition(":")
    if form in FORMATS or (form == "signals" and not is_archive(source_path)):
        table = table_format(source_path) if form == "signals" else form
        found = load_table_columns(
            table, source_path, _kinds(data_info), target, data_info.target_names, data_info.missing
        )
        if not data_info.columns:
            found = dataclasses.replace(found, columns=())
            return as_signals(found) if form == "signals" else found
        features = TableEncoder(data_info.columns).transform(found.columns, found.features)
        return dataclasses.replace(found, features=features, feature_names=data_info.feature_names, columns=())
    if form == "images":
        return load_images(source_path, _settings(data_info, "was trained on tables, not on images"))
    dataset = load(source, target=target, seed=seed)
    if dataset.num_features != data_info.num_features:
        raise UserError(
            f"expected {data_info.num_features} features as in training, but {format_value(source, 200)} has "
            f"{dataset.num_features}: "
            "give data of the same kind"
        )
    return dataset
