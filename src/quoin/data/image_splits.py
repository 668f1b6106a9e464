"""Images to learn a distribution from, as they are: three splits with values in [0, 1], not standardised, and their
data info.

n images, c channels, h height, w width
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from quoin.data.data_info import DataInfo
from quoin.data.dataset import Dataset
from quoin.data.splits import Split
from quoin.data.stored_images import StoredImages
from quoin.display import shown
from quoin.documents import Count, Must, Size
from quoin.errors import UserError, format_value

__all__ = ["ImageInfo", "ImageSplits", "split_images"]

LEVELS = (2, 17, 256)  # ink or none; ink counted from 0 to 16, as in digits; a byte


@shown
@dataclass(frozen=True)
class ImageInfo(DataInfo):
    """What a model of images must know of them, and what a run records of them."""

    num_rows: Count
    image_shape: tuple[Size, Size, Size]  # (c, h, w)
    # Values k / (levels - 1), k from 0, are all there are; 0 where the values are on no such scale.
    levels: Annotated[int, Must("0, 2, 17 or 256", lambda levels: levels in (0, *LEVELS))]
    class_names: tuple[str, ...]

    @property
    def num_pixels(self) -> int:
        """Numbers of an image, every channel counted."""
        return math.prod(self.image_shape)

    @property
    def num_classes(self) -> int:
        return len(self.class_names)


@shown
class ImageSplits(NamedTuple):
    """Images (n, c, h, w) in [0, 1] as features, their classes as targets."""

    data_info: ImageInfo
    train: Dataset
    validation: Dataset
    test: Dataset


def split_images(dataset: Dataset, split: Split, device: torch.device | str = "cpu") -> ImageSplits:
    """Part images with classes, leave their values alone, and put them on the device.

    Args:
        split: Row numbers of the three splits, as `quoin.data.split` or `fold` gives them.
    """
    name = format_value(dataset.name)
    if dataset.image_shape is None or dataset.class_names is None:
        raise UserError(
            f"expected images with classes, got {name}: give --data digits, glyphs, shapes, images:FOLDER, idx:FOLDER, "
            "cifar10:FOLDER or npz:PATH"
        )
    stored = isinstance(dataset.features, StoredImages)
    low, high = (0.0, 1.0) if stored else (float(dataset.features.min()), float(dataset.features.max()))
    if not 0 <= low <= high <= 1:
        raise UserError(
            f"expected images with values in [0, 1], got {low:.4g} to {high:.4g} in {name}: rescale them, or save "
            "them as bytes"
        )
    data_info = ImageInfo(
        source=dataset.name,
        num_rows=dataset.num_rows,
        image_shape=dataset.image_shape,
        levels=dataset.features.levels if isinstance(dataset.features, StoredImages) else _levels(dataset.features),
        class_names=dataset.class_names,
        fingerprint=dataset.fingerprint,
    )

    def ready(rows: Tensor) -> Dataset:
        split = dataset.take(rows)
        features = split.features.to(device)
        features = features.loaded() if isinstance(features, StoredImages) else features
        return dataclasses.replace(split, features=features, targets=split.targets.to(device))

    return ImageSplits(data_info, *map(ready, split))


def _levels(images: Tensor) -> int:
    """The fewest of LEVELS that hold every value, up to the rounding of k / (levels - 1)."""
    for levels in LEVELS:
        counted = images * (levels - 1)
        if torch.allclose(counted, counted.round(), rtol=0, atol=1e-4):
            return levels
    return 0
