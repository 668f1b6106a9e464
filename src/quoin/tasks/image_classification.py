"""Images in, classes out: what the recipes of convolutional networks share, and those whose pieces of an image look at each other."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor, nn

from quoin.data import Facts, Prepared, background, crop, cutout, flip, keyed_generator, shift
from quoin.losses import cross_entropy
from quoin.tasks.supervised import Classification
from quoin.tasks.supervised_data import images, learner
from quoin.train import Place

__all__ = ["attending_classifier", "augmentation", "image_classifier"]


def augmentation(options, data: Prepared) -> Callable[[Tensor, Generator], Tensor] | None:
    """What `options` say to do to every training batch, first to last, or None if that is nothing.

    Shifted images are filled with black; the square of a cutout, with the mean colour, which is 0 on the standardised scale.
    """
    black = background(data.feature_scale).to(data.train.features.device)

    def changed(batch: Tensor, generator: Generator) -> Tensor:
        if options.crop:
            batch = crop(batch, generator, options.crop)
        if options.shift:
            batch = shift(batch, generator, options.shift, fill=black)
        if options.flip:
            batch = flip(batch, generator)
        if options.cutout:
            batch = cutout(batch, generator, options.cutout)
        return batch

    if not (options.crop or options.shift or options.flip or options.cutout):
        return None
    changed(data.train.features[:1], keyed_generator("tried"))  # a size too large for these images is told before the run begins
    return changed


def image_classifier(model: Callable[[Any, Facts], nn.Module], options, place: Place) -> Classification:
    """The recipe's `model` under cross-entropy and momentum, its training images augmented as `options` say."""
    data = images(options, place)
    net = model(options, data.facts).to(place.device)
    # The pull towards zero is for weights that multiply inputs; biases and the scales of normalisations, all vectors, stay free.
    pulled = [each for each in net.parameters() if each.ndim > 1]
    free = [each for each in net.parameters() if each.ndim <= 1]
    groups = [{"params": pulled, "weight_decay": options.weight_decay}, {"params": free}]
    sgd = torch.optim.SGD(groups, options.lr, momentum=options.momentum)
    return learner(Classification, net, cross_entropy, sgd, data, options, place, augment=augmentation(options, data))


def attending_classifier(model: Callable[[Any, Facts], nn.Module], options, place: Place) -> Classification:
    """The recipe's `model` under cross-entropy and AdamW, its training images augmented as `options` say."""
    data = images(options, place)
    net = model(options, data.facts).to(place.device)
    adam = torch.optim.AdamW(net.parameters(), options.lr, weight_decay=options.weight_decay)
    return learner(Classification, net, cross_entropy, adam, data, options, place, augment=augmentation(options, data))
