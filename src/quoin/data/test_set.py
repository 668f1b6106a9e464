"""A test set of one's own: rows that are never seen in training, scaling or choosing."""

import dataclasses

import torch
from jaxtyping import Real
from torch import Tensor

from quoin.data.dataset import Dataset, as_regression
from quoin.data.files_images import load_images
from quoin.data.image_cache import ImageSettings
from quoin.data.signals import is_archive
from quoin.data.sources import load
from quoin.data.stored_images import MAX_NUMBERS, StoredImages
from quoin.data.table_columns import Column, ColumnKind
from quoin.data.table_files import FORMATS, table_format
from quoin.data.tables import Missing, load_table_columns
from quoin.errors import UserError, format_value

__all__ = ["with_test_set"]


def with_test_set(dataset: Dataset, source: str, *, missing: Missing = "error", seed: int = 0) -> Dataset:
    """`dataset` with the rows of `source` as its test split; a test split that it had of its own is dropped.

    Columns of a table go by name, and so do classes; a class that `dataset` does not have is a UserError.
    """
    form, _, path = source.partition(":")
    if form == "signals" and not is_archive(path):  # by the names of its columns, as any table
        form = table_format(path)
    if form in FORMATS:
        kinds: dict[str, ColumnKind] = {column.name: column.kind for column in dataset.columns}
        kinds = kinds or dict.fromkeys(dataset.feature_names, "number")
        test = load_table_columns(form, path, kinds, dataset.target_names, dataset.target_names, missing)
        if not dataset.columns:
            shape = dataset.features.shape[1:]
            test = dataclasses.replace(test, features=test.features.reshape(-1, *shape), columns=())
    elif form == "images" and dataset.image_shape is not None:
        channels, height, width = dataset.image_shape
        test = load_images(path, ImageSettings((height, width), channels))
    else:
        test = load(source, seed=seed)
    if test.features.shape[1:] != dataset.features.shape[1:]:
        raise UserError(
            f"expected test rows of shape {tuple(dataset.features.shape[1:])} as in {format_value(dataset.name, 200)}, "
            f"but {format_value(source, 200)} has {tuple(test.features.shape[1:])}: give data of the same kind"
        )
    for each in (dataset, test):
        if isinstance(each.features, StoredImages) and each.features.numel() > MAX_NUMBERS:
            raise UserError(
                f"expected images that fit in memory beside --test-data, but {format_value(each.name, 200)} are too "
                "many: put them into one folder, with train/ and test/ in it"
            )
    kept = dataset.num_rows if dataset.test_start is None else dataset.test_start
    columns, features = _joined_columns(dataset, test)
    return dataclasses.replace(
        dataset,
        features=torch.cat([dataset.features[:kept], features.to(dataset.features.dtype)]),
        targets=torch.cat([dataset.targets[:kept], _targets_like(dataset, test).to(dataset.targets.dtype)]),
        columns=columns,
        test_start=kept,
    )


def _joined_columns(dataset: Dataset, test: Dataset) -> tuple[tuple[Column, ...], Tensor]:
    """The columns of both, and the test rows with levels counted as there; levels of the test alone come last."""
    columns, features = [], test.features.clone() if dataset.columns else test.features
    for at, (ours, theirs) in enumerate(zip(dataset.columns, test.columns)):
        levels = ours.levels + tuple(level for level in theirs.levels if level not in ours.levels)
        if ours.kind == "category":
            numbers = torch.tensor([levels.index(level) for level in theirs.levels], dtype=features.dtype)
            known = ~features[:, at].isnan()
            features[known, at] = numbers[features[known, at].long()]
        columns.append(Column(ours.name, ours.kind, levels))
    return tuple(columns), features


def _targets_like(dataset: Dataset, test: Dataset) -> Real[Tensor, "samples ..."]:
    if dataset.class_names is None:
        return as_regression(test).targets
    if test.class_names is None:
        raise UserError(
            f"expected the classes of {format_value(dataset.name, 200)}, but {format_value(test.name, 200)} has "
            "numbers: give data of the same kind"
        )
    strange = [name for name in test.class_names if name not in dataset.class_names]
    if strange:
        raise UserError(
            f"expected the classes of {format_value(dataset.name, 200)}, but {format_value(test.name, 200)} has "
            f"{format_value(strange[0])}: leave those rows out, or add such to the training data"
        )
    return torch.tensor([dataset.class_names.index(name) for name in test.class_names])[test.targets]
