"""From options to splits: the data on the device (loaded, split or folded, standardised), and the task that learns from
it."""

import re
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from quoin.data import (
    Dataset,
    ImageSplits,
    PreparedData,
    Split,
    as_classes,
    as_regression,
    fold,
    load,
    prepare,
    split,
    split_images,
)
from quoin.errors import UserError, format_value
from quoin.layers import check_batch_norm
from quoin.tasks.classifier_loss import training_loss
from quoin.tasks.lr_schedule import make_lr_schedule
from quoin.tasks.options import ClassifierOptions, OptimizerOptions
from quoin.tasks.supervised import Classification, SupervisedTask
from quoin.tasks.threshold import check_no_classifier_options, threshold_rule
from quoin.train import DeviceContext

__all__ = [
    "DataChoice",
    "load_classification_data",
    "load_image_data",
    "load_raw_images",
    "load_regression_data",
    "supervised_task",
]

VALIDATION = 0.1

Kind = TypeVar("Kind", bound=SupervisedTask)


class DataChoice(Protocol):
    """Options that name data: those of `DataOptions`, and the seed of the split."""

    @property
    def data(self) -> str: ...

    @property
    def target(self) -> str | None: ...

    @property
    def ignore(self) -> tuple[str, ...]: ...

    @property
    def fold(self) -> str: ...

    @property
    def seed(self) -> int: ...


def load_classification_data(options: DataChoice, device_context: DeviceContext) -> PreparedData:
    """The data that `options` name, for a classifier."""
    return _prepare_splits(as_classes(_loaded(options)), options, device_context)


def load_image_data(options: DataChoice, device_context: DeviceContext) -> PreparedData:
    """The images that `options` name, for a classifier that must know which pixels are neighbours."""
    return _prepare_splits(_loaded_images(options), options, device_context)


def load_raw_images(options: DataChoice, device_context: DeviceContext) -> ImageSplits:
    """The images that `options` name, as they are, for a generative model."""
    dataset = _loaded_images(options)
    return split_images(dataset, _rows(dataset, options), device_context.device)


def load_regression_data(options: DataChoice, device_context: DeviceContext) -> PreparedData:
    """The data that `options` name, for a regression."""
    return _prepare_splits(as_regression(_loaded(options)), options, device_context)


def _loaded(options: DataChoice) -> Dataset:
    return load(options.data, target=options.target, ignore=options.ignore, seed=options.seed)


def _loaded_images(options: DataChoice) -> Dataset:
    dataset = _loaded(options)
    if dataset.image_shape is None:
        raise UserError(
            f"expected images, got {format_value(dataset.name)[1:-1]} with rows of {dataset.num_features} numbers: "
            "give --data digits, idx:FOLDER, cifar10:FOLDER, or npz:PATH with an array (n, h, w) or (n, c, h, w)"
        )
    return as_classes(dataset)


def _prepare_splits(dataset: Dataset, options: DataChoice, device_context: DeviceContext) -> PreparedData:
    return prepare(dataset, _rows(dataset, options), device_context.device)


def _rows(dataset: Dataset, options: DataChoice) -> Split:
    """The rows of the train, validation and test splits."""
    if not options.fold:
        return split(dataset, options.seed, validation=VALIDATION)
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", options.fold)
    if not found:
        raise UserError(f"--fold expects INDEX/FOLDS such as 0/5, got {options.fold!r}")
    index, num_folds = map(int, found.groups())
    return fold(dataset, num_folds, index, options.seed, validation=VALIDATION)


def supervised_task(
    kind: type[Kind],
    model: nn.Module,
    loss_fn: Callable[[Tensor, Tensor], Tensor],
    optimizer: torch.optim.Optimizer,
    data: PreparedData,
    options: Any,  # those of an optimizer and of a run
    device_context: DeviceContext,
    *,
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
) -> Kind:
    """A supervised task of this kind, run as the shared options say."""
    if _fewest_rows(data.train.num_rows, options) == 1:  # batch norm may not take it: an error before the run begins
        check_batch_norm(model, data.train.features[:1])
    train_loss_fn, mixup, choose_threshold = _classifier_settings(options, data)
    task = kind(
        model,
        loss_fn,
        optimizer,
        data,
        batch_size=options.batch_size,
        epochs=options.epochs,
        seed=options.seed,
        device_context=device_context,
        schedule=make_lr_schedule(options),
        max_grad_norm=options.max_grad_norm,
        micro_batch_size=options.micro_batch_size,
        augment=augment,
        train_loss_fn=train_loss_fn,
        mixup=mixup,
    )
    task.test_name = "held-out fold" if getattr(options, "fold", "") else "test"
    if isinstance(task, Classification):
        task.choose_threshold = choose_threshold
        # It costs a sort for each class and epoch, so only where it is asked for.
        if getattr(options, "monitor", "") == "validation_auc":
            task.auc_splits = ("validation", "test")
    return task


def _classifier_settings(
    options: Any, data: PreparedData
) -> tuple[Callable[[Tensor, Tensor], Tensor] | None, float, Callable[[Tensor, Tensor], float] | None]:
    """The training loss, the alpha of mixup and the rule for a threshold, where `options` have any."""
    if not isinstance(options, ClassifierOptions):
        return None, 0.0, None
    names = data.data_info.class_names
    if names is None:
        check_no_classifier_options(options)
        return None, 0.0, None
    loss_fn = training_loss(options, data.train.targets, names, soft_targets=options.mixup > 0)
    return loss_fn, options.mixup, threshold_rule(options, data)


def _fewest_rows(num_rows: int, options: OptimizerOptions) -> int:
    """The rows of the smallest piece that the model will see at once while it trains."""
    whole = max(1, min(options.batch_size, num_rows))
    sizes = {whole, num_rows % whole} - {0}
    piece = options.micro_batch_size or whole
    return min(size % piece or min(size, piece) for size in sizes)
