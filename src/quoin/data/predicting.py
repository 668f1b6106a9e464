"""Read data for a trained model: rows to predict for, and other data to evaluate it on."""

from collections.abc import Sequence
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from quoin.data.dataset import Dataset
from quoin.data.files import existing_file, quoted
from quoin.data.files_csv import load_csv_columns, read_csv_features
from quoin.data.files_images import Pictures, load_images, read_pictures
from quoin.data.files_npz import read_npz_features
from quoin.data.image_cache import ImageSettings
from quoin.data.image_decoding import SUFFIXES
from quoin.data.prepared import TabularInfo
from quoin.data.sources import check_source_name, load
from quoin.errors import UserError, format_value

__all__ = ["load_like", "read_features", "read_pictures_like"]


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


def read_pictures_like(data_info: TabularInfo, path: str | Path) -> Pictures | None:
    """A folder of pictures or one picture, as images like those of `data_info`; None if `path` is neither.

    A folder may also be named as a source, images:FOLDER.
    """
    form, colon, source_path = str(path).partition(":")
    named = bool(colon) and form == "images"
    place = Path(source_path if named else path).expanduser()
    if not named and not place.is_dir() and place.suffix.lower() not in SUFFIXES:
        return None
    settings = _settings(data_info, f"predicts from tables, and {quoted(path)} holds pictures")
    if not place.is_dir():
        existing_file(place)
    return read_pictures(str(place), settings)


def _settings(data_info: TabularInfo, otherwise: str) -> ImageSettings:
    if len(data_info.feature_shape) != 3:
        raise UserError(f"the run {otherwise}: give a .csv, .tsv or .npz file, or a run that was trained on images")
    channels, height, width = data_info.feature_shape
    if channels not in (1, 3):
        raise UserError(
            f"the run was trained on images of {channels} channels, and pictures have 1 or 3: give a .npz file"
        )
    return ImageSettings((height, width), channels)


def load_like(data_info: TabularInfo, source: str, *, target: str | None = None, seed: int = 0) -> Dataset:
    """`load`, for a model that was trained on the data of `data_info`.

    Pictures are made as large as the model's. Columns of a CSV go by name: those the model knows, in its order, others
    are ignored; the target is `target`, else
    the column that was the target in training, else one by a usual name. Other sources have no names to go by, so only
    their number of features is checked.
    """
    check_source_name(source)
    form, _, source_path = source.partition(":")
    if form == "csv":
        return load_csv_columns(source_path, data_info.feature_names, target, data_info.target_name)
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
