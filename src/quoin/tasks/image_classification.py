"""Image classification: what the recipes of convolutional networks share, and those of attention over the pieces of an
image."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

from quoin.data import (
    PreparedData,
    RowNoise,
    TabularInfo,
    background,
    random_cutout,
    random_horizontal_flip,
    random_resized_crop,
    random_shift,
)
from quoin.losses import cross_entropy
from quoin.tasks.fine_tuning import FineTunedClassification, PretrainedFamily, freeze_stages, given_scaler
from quoin.tasks.optimizer import make_optimizer, weight_decay_groups
from quoin.tasks.options import AttentionImageOptions, AugmentOptions, ImageOptions
from quoin.tasks.supervised import Classification
from quoin.tasks.supervised_data import load_image_data, supervised_task
from quoin.train import DeviceContext

__all__ = [
    "attention_image_classifier",
    "augmentation",
    "fine_tuned_classifier",
    "image_classifier",
    "trained_parameters",
]


def augmentation(options: AugmentOptions, data: PreparedData) -> Callable[[Tensor, RowNoise], Tensor] | None:
    """What `options` say to do to every training batch, first to last, or None if that is nothing.

    Shifted images are filled with black; the square of a cutout, with the mean colour, which is 0 on the standardised
    scale.
    """
    black = background(data.feature_scaler).to(data.train.features.device)

    def changed(batch: Tensor, noise: RowNoise) -> Tensor:
        if options.crop:
            batch = random_resized_crop(batch, noise, options.crop)
        if options.shift:
            batch = random_shift(batch, noise, options.shift, fill=black)
        if options.flip:
            batch = random_horizontal_flip(batch, noise)
        if options.cutout:
            batch = random_cutout(batch, noise, options.cutout)
        return batch

    if not (options.crop or options.shift or options.flip or options.cutout):
        return None
    changed(
        data.train.features[:1], RowNoise("tried", num_rows=1)
    )  # a size too large for these images is an error before the run begins
    return changed


def fine_tuned_classifier(
    model: Callable[[Any, TabularInfo], nn.Module],
    options: Any,  # those of fine-tuning, of images and of an optimizer
    device_context: DeviceContext,
    family: PretrainedFamily,
    *,
    parameters: Callable[[nn.Module, Any], list[Any]] = weight_decay_groups,
) -> FineTunedClassification:
    """`image_classifier`, but that it starts from the weights that `options` name, if any, some of them frozen.

    Args:
        parameters: Those that are trained, for the optimizer; `trained_parameters` have all the same weight decay.
    """
    data = load_image_data(options, device_context, partial(given_scaler, options))
    net = model(options, data.data_info).to(device_context.device)
    frozen = freeze_stages(net, options.freeze, family)
    task = supervised_task(
        FineTunedClassification,
        net,
        cross_entropy,
        make_optimizer(parameters(net, options), options),
        data,
        options,
        device_context,
        augment=augmentation(options, data),
    )
    task.options, task.family, task.frozen = options, family, frozen
    return task


def trained_parameters(model: nn.Module, options: Any) -> list[nn.Parameter]:
    """All parameters but the frozen ones."""
    return [each for each in model.parameters() if each.requires_grad]


def image_classifier(
    model: Callable[[Any, TabularInfo], nn.Module], options: ImageOptions, device_context: DeviceContext
) -> Classification:
    """The recipe's `model` under cross-entropy, its training images augmented as `options` say."""
    data = load_image_data(options, device_context)
    net = model(options, data.data_info).to(device_context.device)
    optimizer = make_optimizer(weight_decay_groups(net, options), options)
    return supervised_task(
        Classification,
        net,
        cross_entropy,
        optimizer,
        data,
        options,
        device_context,
        augment=augmentation(options, data),
    )


def attention_image_classifier(
    model: Callable[[Any, TabularInfo], nn.Module], options: AttentionImageOptions, device_context: DeviceContext
) -> Classification:
    """The recipe's `model` under cross-entropy, its training images augmented as `options` say."""
    data = load_image_data(options, device_context)
    net = model(options, data.data_info).to(device_context.device)
    optimizer = make_optimizer(net.parameters(), options)
    return supervised_task(
        Classification,
        net,
        cross_entropy,
        optimizer,
        data,
        options,
        device_context,
        augment=augmentation(options, data),
    )
