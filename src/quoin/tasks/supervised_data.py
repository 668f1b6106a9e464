"""From options to splits: the data on the device (loaded, split or folded, standardised), and the task that learns from
it."""

import re
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar

import torch
from torch import Tensor, nn

from quoin.data import (
    Dataset,
    ImageSplits,
    PreparedData,
    RowNoise,
    Split,
    StandardScaler,
    as_classes,
    as_regression,
    as_signals,
    fold,
    load,
    prepare,
    split,
    split_images,
    with_test_set,
)
from quoin.errors import UserError, format_value
from quoin.layers import check_batch_norm
from quoin.options import flag_name
from quoin.tasks.classifier_loss import training_loss
from quoin.tasks.lr_schedule import make_lr_schedule
from quoin.tasks.options import ClassifierOptions, OptimizerOptions
from quoin.tasks.own_training import OwnLoss, own_loss
from quoin.tasks.supervised import Classification, SupervisedTask
from quoin.tasks.threshold import check_no_classifier_options, threshold_rule
from quoin.tensor.eval_mode import eval_mode
from quoin.train import DeviceContext

__all__ = [
    "DataChoice",
    "load_classification_data",
    "load_image_data",
    "load_raw_images",
    "load_regression_data",
    "load_signal_data",
    "supervised_task",
]

VALIDATION = 0.1
TRIED_ROWS = 8  # on which a loss of the user's own is tried

Kind = TypeVar("Kind", bound=SupervisedTask)


class DataChoice(Protocol):
    """Options that name data: those of `DataOptions`, and the seed of the split."""

    @property
    def data(self) -> str: ...

    @property
    def target(self) -> tuple[str, ...]: ...

    @property
    def ignore(self) -> tuple[str, ...]: ...

    @property
    def missing(self) -> Literal["error", "mean"]: ...

    @property
    def test_data(self) -> str: ...

    @property
    def image_size(self) -> int: ...

    @property
    def image_channels(self) -> int | None: ...

    @property
    def skip_broken(self) -> bool: ...

    @property
    def fold(self) -> str: ...

    @property
    def seed(self) -> int: ...


def load_classification_data(options: DataChoice, device_context: DeviceContext) -> PreparedData:
    """The data that `options` name, for a classifier."""
    return _prepare_splits(_loaded(options, as_classes), options, device_context)


def load_image_data(
    options: DataChoice,
    device_context: DeviceContext,
    scaler_for: Callable[[int], StandardScaler | None] = lambda channels: None,
) -> PreparedData:
    """The images that `options` name, for a classifier that must know which pixels are neighbours.

    Args:
        scaler_for: The scale of images of so many channels; None has it learnt from the training images.
    """
    dataset = _loaded_images(options)
    scaler = scaler_for(dataset.features.shape[1])
    return prepare(dataset, _rows(dataset, options), device_context.device, feature_scaler=scaler)


def load_raw_images(options: DataChoice, device_context: DeviceContext) -> ImageSplits:
    """The images that `options` name, as they are, for a generative model."""
    dataset = _loaded_images(options)
    return split_images(dataset, _rows(dataset, options), device_context.device)


def load_regression_data(
    options: DataChoice, device_context: DeviceContext, *, several_targets: bool = False
) -> PreparedData:
    """The data that `options` name, for a regression.

    Args:
        several_targets: Whether the recipe can predict more than one number.
    """
    dataset = _loaded(options, as_regression)
    if len(dataset.target_names) > 1 and not several_targets:
        raise UserError(
            f"expected one target, got {format_value(dataset.target_name)}: give one, or use `quoin train "
            "mlp-regression`, which predicts several"
        )
    return _prepare_splits(dataset, options, device_context)


def load_signal_data(options: DataChoice, device_context: DeviceContext) -> PreparedData:
    """The signals that `options` name, for a classifier that must know the order of the steps; a table has one
    channel."""
    return _prepare_splits(_loaded(options, _signals_of_classes), options, device_context)


def _signals_of_classes(dataset: Dataset) -> Dataset:
    return as_classes(as_signals(dataset))


def _loaded(options: DataChoice, form: Callable[[Dataset], Dataset]) -> Dataset:
    """The data that `options` name, with the targets in the form that the recipe learns."""
    dataset = form(
        load(
            options.data,
            target=options.target,
            ignore=options.ignore,
            missing=options.missing,
            seed=options.seed,
            image_size=options.image_size,
            image_channels=options.image_channels,
            skip_broken=options.skip_broken,
        )
    )
    if not options.test_data:
        return dataset
    if options.fold:
        raise UserError(
            "expected folds or a test set, got --test-data with --folds: each fold is the test of its own run"
        )
    return with_test_set(dataset, options.test_data, missing=options.missing, seed=options.seed)


def _loaded_images(options: DataChoice) -> Dataset:
    return _loaded(options, _images_of_classes)


def _images_of_classes(dataset: Dataset) -> Dataset:
    if dataset.image_shape is None:
        raise UserError(
            f"expected images, got {format_value(dataset.name)[1:-1]} with rows of {dataset.num_features} numbers: "
            "give --data digits, glyphs, images:FOLDER, idx:FOLDER, cifar10:FOLDER, or npz:PATH with (n, h, w) "
            "or (n, c, h, w)"
        )
    return as_classes(dataset)


def _prepare_splits(dataset: Dataset, options: DataChoice, device_context: DeviceContext) -> PreparedData:
    return prepare(dataset, _rows(dataset, options), device_context.device, options.missing)


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
    augment: Callable[[Tensor, RowNoise], Tensor] | None = None,
) -> Kind:
    """A supervised task of this kind, run as the shared options say."""
    if _fewest_rows(data.train.num_rows, options) == 1:  # batch norm may not take it: an error before the run begins
        check_batch_norm(model, data.train.features[:1])
    train_loss_fn, mixup, choose_threshold = _classifier_settings(options, data)
    if reference := getattr(options, "loss", ""):
        loss_fn, train_loss_fn = _own_loss(reference, model, data, options), None
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


def _own_loss(reference: str, model: nn.Module, data: PreparedData, options: Any) -> OwnLoss:
    """The user's loss, tried on the model's outputs for the first training rows."""
    for name in ("label_smoothing", "class_weight", "mixup"):
        if (value := getattr(options, name, None)) != getattr(type(options), name, None):
            raise UserError(
                f"{flag_name(name)} {value} is of the recipe's own loss, got --loss {reference}: leave one of them out"
            )
    features, targets = data.train.features[:TRIED_ROWS], data.train.targets[:TRIED_ROWS]
    with torch.no_grad(), eval_mode(model):
        outputs = model(features)
    return own_loss(reference, outputs, targets)


def _fewest_rows(num_rows: int, options: OptimizerOptions) -> int:
    """The rows of the smallest piece that the model will see at once while it trains."""
    whole = max(1, min(options.batch_size, num_rows))
    sizes = {whole, num_rows % whole} - {0}
    piece = options.micro_batch_size or whole
    return min(size % piece or min(size, piece) for size in sizes)
