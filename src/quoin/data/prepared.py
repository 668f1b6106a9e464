"""Data ready to be trained on: parted, put on one scale by the training rows, moved to the device."""

import dataclasses
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from quoin.data.dataset import Dataset
from quoin.data.remembered import RememberedData
from quoin.data.scaling import Standardiser
from quoin.data.splits import Split
from quoin.documents import Count, Size
from quoin.errors import Mistake, shown

__all__ = ["Facts", "Prepared", "prepare"]


@dataclass(frozen=True)
class Facts(RememberedData):
    """What a model must know of its data, and what prediction must remember when the data are gone."""

    source: str
    num_rows: Count
    feature_names: tuple[str, ...]
    feature_shape: tuple[Size, ...]
    target_name: str
    class_names: tuple[str, ...] | None
    fingerprint: str

    def __post_init__(self) -> None:
        if math.prod(self.feature_shape) != len(self.feature_names):
            raise Mistake(f"expected a name for each feature of {shown(self.feature_shape)}, came {len(self.feature_names)}; restore them")

    @property
    def num_features(self) -> int:
        return len(self.feature_names)

    @property
    def num_classes(self) -> int:
        assert self.class_names is not None, "the targets are numbers"
        return len(self.class_names)


@dataclass(frozen=True)
class Prepared:
    """Three parts of one data set on one scale. Raw pictures for a reader are in `test_images`."""

    facts: Facts
    train: Dataset
    validation: Dataset
    test: Dataset
    feature_scale: Standardiser
    target_scale: Standardiser | None  # numbers only: the targets are standardised too
    test_images: Tensor | None = None  # (n, c, h, w), as they were before scaling

    def scale_state(self) -> dict[str, Tensor]:
        """The statistics, for the checkpoint."""
        features, targets = self.feature_scale, self.target_scale
        found = {"feature_mean": features.mean, "feature_std": features.std}
        return found if targets is None else found | {"target_mean": targets.mean, "target_std": targets.std}


def prepare(dataset: Dataset, split: Split, device: torch.device | str = "cpu") -> Prepared:
    """Part the data and standardise every part by the statistics of the training part alone."""
    facts = Facts(
        source=dataset.name,
        num_rows=dataset.num_rows,
        feature_names=dataset.feature_names,
        feature_shape=tuple(dataset.features.shape[1:]),
        target_name=dataset.target_name,
        class_names=dataset.class_names,
        fingerprint=dataset.fingerprint,
    )
    parts = [dataset.take(rows) for rows in split]
    feature_scale = _image_scale(parts[0]) if dataset.image_shape is not None else Standardiser.fit(parts[0].features)
    target_scale = None if dataset.is_classification else Standardiser.fit(parts[0].targets)

    def ready(part: Dataset) -> Dataset:
        targets = part.targets if target_scale is None else target_scale.apply(part.targets)
        return dataclasses.replace(part, features=feature_scale.apply(part.features).to(device), targets=targets.to(device))

    images = parts[2].features if dataset.image_shape is not None else None
    train, validation, test = map(ready, parts)
    return Prepared(facts, train, validation, test, feature_scale, target_scale, images)


def _image_scale(part: Dataset) -> Standardiser:
    """One mean and one spread a channel: scaling pixel by pixel would blow up the corners, where hardly any ink is."""
    pixels = part.features.movedim(1, -1).flatten(0, -2)  # (n h w, c)
    scale = Standardiser.fit(pixels)
    return Standardiser(scale.mean[:, None, None], scale.std[:, None, None])
