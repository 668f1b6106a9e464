"""Data ready to be trained on: split, put on one scale by the training rows, moved to the device."""

import dataclasses
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data.csv_text import listed
from quoin.data.data_info import DataInfo
from quoin.data.dataset import Dataset
from quoin.data.encoding import ColumnEncoding, TableEncoder
from quoin.data.scaling import StandardScaler
from quoin.data.splits import Split
from quoin.data.stored_images import StoredImages
from quoin.data.tables import Missing
from quoin.display import shown
from quoin.documents import Count, Size
from quoin.errors import UserError, format_value
from quoin.tensor.labels import as_indices

__all__ = ["PreparedData", "TabularInfo", "prepare"]


@shown
@dataclass(frozen=True)
class TabularInfo(DataInfo):
    """What a model must know of its data, and what prediction needs when the data are gone."""

    num_rows: Count
    feature_names: tuple[str, ...]
    feature_shape: tuple[Size, ...]
    target_names: tuple[str, ...]
    class_names: tuple[str, ...] | None
    columns: tuple[ColumnEncoding, ...] = ()  # of a table: how each of its columns becomes features

    def __post_init__(self) -> None:
        is_image = len(self.feature_shape) == 3  # whose pixels may go without names
        if self.num_features != len(self.feature_names) and (self.feature_names or not is_image):
            raise UserError(
                f"expected a name for each feature of {format_value(self.feature_shape)}, got "
                f"{len(self.feature_names)}; restore them"
            )

    @property
    def num_features(self) -> int:
        return math.prod(self.feature_shape)

    @property
    def num_targets(self) -> int:
        return len(self.target_names)

    @property
    def target_name(self) -> str:
        """The target, or all of them in a row, as a message names it."""
        return ", ".join(self.target_names)

    @property
    def missing(self) -> Missing:
        """Whether missing cells are filled in or refused."""
        return "mean" if any(column.mean is not None or column.has_missing for column in self.columns) else "error"

    @property
    def remarks(self) -> list[str]:
        """How the columns of a table became features, where that is not plain."""
        dates = [column.name for column in self.columns if column.kind == "date"]
        categories = [column for column in self.columns if column.kind == "category"]
        gaps = [column.name for column in self.columns if column.has_missing]
        told = [f"{listed(dates)} as days since 1970-01-01"] if dates else []
        told += [f"{format_value(column.name, 30)} one-hot ({len(column.levels)} levels)" for column in categories[:8]]
        told += [f"{len(categories) - 8} more columns one-hot"] if len(categories) > 8 else []
        told += [f"missing cells of {listed(gaps)} by the training mean, with an indicator"] if gaps else []
        return [f"{len(self.columns)} columns give {self.num_features} features: {'; '.join(told)}"] if told else []

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(c, h, w) of one image."""
        assert len(self.feature_shape) == 3, "the features are no images"
        return self.feature_shape

    @property
    def signal_shape(self) -> tuple[int, int]:
        """(channels, length) of one signal."""
        assert len(self.feature_shape) == 2, "the features are no signals"
        return self.feature_shape

    @property
    def num_classes(self) -> int:
        assert self.class_names is not None, "the targets are numbers"
        return len(self.class_names)


@shown
@dataclass(frozen=True)
class PreparedData:
    """Three splits of one data set on one scale. Raw images to show are in `test_images`."""

    data_info: TabularInfo
    train: Dataset
    validation: Dataset
    test: Dataset
    feature_scaler: StandardScaler
    target_scaler: StandardScaler | None  # numbers only: the targets are standardised too
    test_images: Float[Tensor, "samples channels height width"] | None = None  # as they were before scaling

    def scale_state(self) -> dict[str, Float[Tensor, "..."]]:
        """The statistics, for the checkpoint."""
        features, targets = self.feature_scaler, self.target_scaler
        found = {"feature_mean": features.mean, "feature_std": features.std}
        return found if targets is None else found | {"target_mean": targets.mean, "target_std": targets.std}


def prepare(
    dataset: Dataset,
    split: Split,
    device: torch.device | str = "cpu",
    missing: Missing = "error",
    *,
    feature_scaler: StandardScaler | None = None,
) -> PreparedData:
    """Split the data and standardise every split by the statistics of the training split alone.

    Args:
        split: Row numbers of the three splits, as `quoin.data.split` or `fold` gives them.
        missing: "mean" fills missing cells of a table with the mean of the training rows, and adds a feature that says
            where they were.
        feature_scaler: The scale of the features, where it is not to be learnt from the training split.
    """
    train, validation, test = map(as_indices, split)
    columns: tuple[ColumnEncoding, ...] = ()
    fingerprint = dataset.fingerprint  # of the data as they came
    if dataset.columns:
        encoder = TableEncoder.fit(dataset.columns, dataset.features, train, missing)
        features = encoder.transform(dataset.columns, dataset.features)
        dataset = dataclasses.replace(dataset, features=features, feature_names=encoder.feature_names, columns=())
        columns = encoder.columns
    data_info = TabularInfo(
        source=dataset.name,
        num_rows=dataset.num_rows,
        feature_names=dataset.feature_names,
        feature_shape=tuple(dataset.features.shape[1:]),
        target_names=dataset.target_names,
        class_names=dataset.class_names,
        fingerprint=fingerprint,
        columns=columns,
    )
    is_image = dataset.image_shape is not None
    # Scaling images pixel by pixel would blow up the corners, where hardly any ink is; signals may begin at any step.
    stored = dataset.features if isinstance(dataset.features, StoredImages) else None
    if feature_scaler is None and stored is not None:
        feature_scaler = stored.fit_scaler(train)
    elif feature_scaler is None:
        feature_scaler = StandardScaler.fit(dataset.features, train, per_channel=dataset.features.ndim > 2)
    target_scaler = None if dataset.is_classification else StandardScaler.fit(dataset.targets, train)

    def ready(rows: Tensor) -> Dataset:
        if stored is not None:
            features = stored.to(device).take(rows, feature_scaler).loaded()
        else:
            features = feature_scaler.transform(dataset.features, rows)
        targets = dataset.targets[rows] if target_scaler is None else target_scaler.transform(dataset.targets, rows)
        return dataclasses.replace(
            dataset,
            features=features.to(device),
            targets=targets.to(device),
            test_start=None,
            validation_start=None,
        )

    images = stored.take(test) if stored is not None else dataset.features[test] if is_image else None
    return PreparedData(data_info, ready(train), ready(validation), ready(test), feature_scaler, target_scaler, images)
