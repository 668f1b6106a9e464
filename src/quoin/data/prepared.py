"""Data ready to be trained on: split, put on one scale by the training rows, moved to the device."""

import dataclasses
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data.data_info import DataInfo
from quoin.data.dataset import Dataset
from quoin.data.scaling import StandardScaler
from quoin.data.splits import Split
from quoin.data.stored_images import StoredImages
from quoin.documents import Count, Size
from quoin.errors import UserError, format_value
from quoin.tensor.labels import as_indices

__all__ = ["PreparedData", "TabularInfo", "prepare"]


@dataclass(frozen=True)
class TabularInfo(DataInfo):
    """What a model must know of its data, and what prediction needs when the data are gone."""

    num_rows: Count
    feature_names: tuple[str, ...]
    feature_shape: tuple[Size, ...]
    target_name: str
    class_names: tuple[str, ...] | None

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
    def image_shape(self) -> tuple[int, int, int]:
        """(c, h, w) of one image."""
        assert len(self.feature_shape) == 3, "the features are no images"
        return self.feature_shape

    @property
    def num_classes(self) -> int:
        assert self.class_names is not None, "the targets are numbers"
        return len(self.class_names)


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


def prepare(dataset: Dataset, split: Split, device: torch.device | str = "cpu") -> PreparedData:
    """Split the data and standardise every split by the statistics of the training split alone.

    Args:
        split: Row numbers of the three splits, as `quoin.data.split` or `fold` gives them.
    """
    data_info = TabularInfo(
        source=dataset.name,
        num_rows=dataset.num_rows,
        feature_names=dataset.feature_names,
        feature_shape=tuple(dataset.features.shape[1:]),
        target_name=dataset.target_name,
        class_names=dataset.class_names,
        fingerprint=dataset.fingerprint,
    )
    train, validation, test = map(as_indices, split)
    is_image = dataset.image_shape is not None
    # Scaling images pixel by pixel would blow up the corners, where hardly any ink is.
    stored = dataset.features if isinstance(dataset.features, StoredImages) else None
    if stored is not None:
        feature_scaler = stored.fit_scaler(train)
    else:
        feature_scaler = StandardScaler.fit(dataset.features, train, per_channel=is_image)
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
