"""From options to parts: the data on the device (loaded, split or folded, standardised), and the task that learns from it."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from quoin.data import Dataset, ImageParts, Prepared, Split, as_classes, as_regression, fold, load, part_images, prepare, split
from quoin.errors import Mistake, shown
from quoin.layers import check_batch_norm
from quoin.tasks.lr_schedule import schedule
from quoin.tasks.options import OptimizerOptions
from quoin.tasks.supervised import SupervisedTask
from quoin.train import Place

__all__ = ["classes", "images", "learner", "numbers", "raw_images"]

VALIDATION = 0.1

Kind = TypeVar("Kind", bound=SupervisedTask)


def classes(options, place: Place) -> Prepared:
    """The data that `options` name, for a classifier."""
    return _parted(as_classes(_loaded(options)), options, place)


def images(options, place: Place) -> Prepared:
    """The images that `options` name, for a classifier that must know which pixels are neighbours."""
    return _parted(_loaded_images(options), options, place)


def raw_images(options, place: Place) -> ImageParts:
    """The images that `options` name, as they are, for a model that draws others like them."""
    dataset = _loaded_images(options)
    return part_images(dataset, _rows(dataset, options), place.device)


def numbers(options, place: Place) -> Prepared:
    """The data that `options` name, for a regression."""
    return _parted(as_regression(_loaded(options)), options, place)


def _loaded(options) -> Dataset:
    return load(options.data, target=options.target, ignore=options.ignore, seed=options.seed)


def _loaded_images(options) -> Dataset:
    dataset = _loaded(options)
    if dataset.image_shape is None:
        raise Mistake(
            f"expected images, got {shown(dataset.name)[1:-1]} with rows of {dataset.num_features} numbers: "
            "give --data digits, idx:FOLDER, cifar10:FOLDER, or npz:PATH with an array (n, h, w) or (n, c, h, w)"
        )
    return as_classes(dataset)


def _parted(dataset: Dataset, options, place: Place) -> Prepared:
    return prepare(dataset, _rows(dataset, options), place.device)


def _rows(dataset: Dataset, options) -> Split:
    """Which rows train, choose and judge."""
    if not options.fold:
        return split(dataset, options.seed, validation=VALIDATION)
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", options.fold)
    if not found:
        raise Mistake(f"--fold expects INDEX/FOLDS such as 0/5, got {options.fold!r}")
    index, num_folds = map(int, found.groups())
    return fold(dataset, num_folds, index, options.seed, validation=VALIDATION)


def learner(
    kind: type[Kind],
    model: nn.Module,
    objective: Callable[[Tensor, Tensor], Tensor],
    optimiser: torch.optim.Optimizer,
    data: Prepared,
    options: Any,  # those of an optimizer and of a run
    place: Place,
    *,
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
) -> Kind:
    """A supervised task of this kind, run as the shared options say."""
    if _fewest_rows(data.train.num_rows, options) == 1:  # what batch norm may not bear is told before the run begins
        check_batch_norm(model, data.train.features[:1])
    return kind(
        model,
        objective,
        optimiser,
        data,
        batch_size=options.batch_size,
        epochs=options.epochs,
        seed=options.seed,
        place=place,
        schedule=schedule(options),
        clip=options.clip,
        micro_batch=options.micro_batch,
        augment=augment,
    )


def _fewest_rows(num_rows: int, options: OptimizerOptions) -> int:
    """The rows of the smallest piece that the model will see at once while it trains."""
    whole = max(1, min(options.batch_size, num_rows))
    sizes = {whole, num_rows % whole} - {0}
    piece = options.micro_batch or whole
    return min(size % piece or min(size, piece) for size in sizes)
