"""Bring data in: embedded, generated and file sources; splits and folds; in-memory batches whose position is state."""

import importlib
from typing import TYPE_CHECKING

from quoin.data.sources import SOURCES, check_source_name, load

if TYPE_CHECKING:
    from quoin.data.augment import background, crop, cutout, flip, shift
    from quoin.data.batches import Batches, order
    from quoin.data.dataset import Dataset, as_classes, as_regression
    from quoin.data.folds import Fold, kfold
    from quoin.data.generated import blobs, circles, linear, moons, polynomial
    from quoin.data.graphs import LabelledGraph, karate_club
    from quoin.data.pictures import segment_digits, tiny_pictures
    from quoin.data.predicting import load_like, read_features
    from quoin.data.prepared import Facts, Prepared, prepare
    from quoin.data.scaling import Standardiser
    from quoin.data.seeds import keyed_generator
    from quoin.data.splits import Split, fold, split

__all__ = [
    "SOURCES",
    "Batches",
    "Dataset",
    "Facts",
    "Fold",
    "LabelledGraph",
    "Prepared",
    "Split",
    "Standardiser",
    "as_classes",
    "as_regression",
    "background",
    "blobs",
    "check_source_name",
    "circles",
    "crop",
    "cutout",
    "flip",
    "fold",
    "karate_club",
    "keyed_generator",
    "kfold",
    "linear",
    "load",
    "load_like",
    "moons",
    "order",
    "polynomial",
    "prepare",
    "read_features",
    "segment_digits",
    "shift",
    "split",
    "tiny_pictures",
]

_FILES = (
    "augment", "batches", "dataset", "folds", "generated", "graphs", "pictures",
    "predicting", "prepared", "scaling", "seeds", "splits",
)  # fmt: skip


def __getattr__(name: str) -> object:
    """The names that need torch come when first asked for, so that the command line can check a source's name without it."""
    if name in __all__:
        for file in _FILES:
            module = importlib.import_module(f"quoin.data.{file}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"quoin.data has no {name!r}")
