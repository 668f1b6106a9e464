"""Fine-tuning: an image classifier that starts from trained weights, under a new head, with some of them frozen.

The weights are read once, when a run begins; a run that is resumed or opened has its own.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.data import StandardScaler
from quoin.errors import UserError, format_value
from quoin.models import (
    load_pretrained_vit,
    load_renamed,
    load_torchvision_alexnet,
    load_torchvision_densenet,
    load_torchvision_googlenet,
    load_torchvision_resnet,
    load_torchvision_vgg,
)
from quoin.models.pretrained import check_finite_weights
from quoin.tasks.fine_tuning_options import FineTuningOptions
from quoin.tasks.pretrained_files import read_pretrained
from quoin.tasks.supervised import Classification

__all__ = [
    "ALEXNET",
    "DENSENET",
    "GOOGLENET",
    "RESNET",
    "VGG",
    "VIT",
    "FineTunedClassification",
    "PretrainedFamily",
    "freeze_stages",
    "given_scaler",
    "load_pretrained",
]


class PretrainedFamily(NamedTuple):
    """How a family's weights are called, and which of its layers belong together."""

    load: Callable[[Any, Any], None]  # fills a model from foreign weights
    head: str  # the last layer, which has an output for each class, by its name here
    foreign_heads: tuple[str, ...]  # and by its names there
    stages: tuple[str, ...]  # patterns of the names of each stage's parameters, from the input on, the head left out


RESNET = PretrainedFamily(
    load_torchvision_resnet, "fc", ("fc",), (r"conv1\.|bn1\.", *(rf"layer{number}\." for number in range(1, 5)))
)
DENSENET = PretrainedFamily(
    load_torchvision_densenet,
    "classifier",
    ("classifier",),
    (
        r"features\.(conv0|norm0)\.",
        *(rf"features\.(denseblock|transition){number}\." for number in range(1, 5)),
        r"features\.norm5\.",
    ),
)
VGG = PretrainedFamily(
    load_torchvision_vgg,
    "head.6",
    ("classifier.6",),
    (*(rf"features\.{block}\." for block in range(5)), r"head\.0\.", r"head\.3\."),
)
ALEXNET = PretrainedFamily(
    load_torchvision_alexnet,
    "head.6",
    ("classifier.6",),
    (*(rf"features\.{place}\." for place in (0, 3, 6, 8, 10)), r"head\.1\.", r"head\.4\."),
)
GOOGLENET = PretrainedFamily(
    load_torchvision_googlenet,
    "head.1",
    ("fc",),
    (
        r"features\.(conv1|0)\.",
        r"features\.(conv2|conv3|1)\.",
        r"features\.(inception3.|2)\.",
        r"features\.(inception4.|4)\.",
        r"features\.inception5.\.",
    ),
)


VIT = PretrainedFamily(
    load_pretrained_vit,
    "head",
    ("heads.head", "classifier", "head"),
    (
        r"class_token|patches\.|position_embedding\.",
        *(rf"encoder\.blocks\.{block}\." for block in range(24)),
        r"encoder\.norm\.",
    ),
)


class FineTunedClassification(Classification):
    """Classification by a model that starts from trained weights, which `load_pretrained` reads once."""

    options: FineTuningOptions
    family: PretrainedFamily
    frozen: list[nn.Module]

    def load_pretrained(self) -> list[str]:
        """Fill the model; what to tell the user of it."""
        told = load_pretrained(self.model, self.options, self.family)
        parameters = list(self.model.parameters())
        fixed = sum(each.numel() for each in parameters if not each.requires_grad)
        if fixed:
            total = sum(each.numel() for each in parameters)
            told += f"; {fixed:,} of {total:,} parameters are frozen, and the batch norms among them"
        return [told]

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        if not self.model.training:  # as after an evaluation
            self.model.train()
            for module in self.frozen:
                module.eval()  # else batches would go on moving the running averages of batch norm
        return super().step(rows)


def load_pretrained(model: nn.Module, options: FineTuningOptions, family: PretrainedFamily) -> str:
    """Fill `model` from the weights that `options` name; what was done with the head.

    Names are torchvision's or this model's own. The head is filled too if it has as many classes as the weights'.
    """
    weights = read_pretrained(options.pretrained)
    own_names = [name for name in model.state_dict() if not name.startswith(f"{family.head}.")]
    own = all(name in weights for name in own_names)
    foreign = [name for name in family.foreign_heads if f"{name}.weight" in weights]
    head, load = (family.head, _load_own) if own else ((foreign or family.foreign_heads)[0], family.load)
    try:
        check_finite_weights(weights)
        filled, told = _with_head(weights, head, model.get_submodule(family.head))
        load(model, filled)
    except UserError as error:
        size = f" with --size {options.size}" if hasattr(options, "size") else ""  # pyright: ignore
        raise UserError(f"--pretrained {format_value(options.pretrained, 200)}{size}: {error}") from error
    return f"starts from {options.pretrained}, {told}"


def _load_own(model: nn.Module, weights: dict[str, Tensor]) -> None:
    load_renamed(model, weights, str)


def _with_head(weights: dict[str, Tensor], name: str, head: nn.Module) -> tuple[dict[str, Tensor], str]:
    """The weights, with the new head's own where theirs is for another number of classes, or lacks."""
    ours = {f"{name}.{part}": tensor for part, tensor in head.state_dict().items()}
    num_classes = len(next(iter(ours.values())))
    theirs = {each: weights[each] for each in ours if each in weights}
    if theirs.keys() == ours.keys() and all(len(tensor) == num_classes for tensor in theirs.values() if tensor.ndim):
        return weights, f"its head for {num_classes} classes included"
    had = next((len(tensor) for tensor in theirs.values() if tensor.ndim), None)
    left_out = f"left out its {' and '.join(theirs)} for {had} classes" if had is not None else "which have none"
    return weights | ours, f"with a new head for {num_classes} classes ({left_out})"


def freeze_stages(model: nn.Module, freeze: str, family: PretrainedFamily) -> list[nn.Module]:
    """Freeze the parameters of the first stages of `model`, as `--freeze` says; the modules that hold nothing else,
    which must stay in evaluation mode."""
    if not freeze:
        return []
    stages = [
        names
        for pattern in family.stages
        if (names := {name for name, _ in model.named_parameters() if re.match(pattern, name)})
    ]
    if freeze != "backbone" and int(freeze) > len(stages):
        raise UserError(
            f"--freeze {freeze}: expected at most {len(stages)} stages, which this model has before its head; "
            "give fewer, or backbone"
        )
    names = set().union(*(stages if freeze == "backbone" else stages[: int(freeze)]))
    for name, parameter in model.named_parameters():
        if name in names:
            parameter.requires_grad_(False)
    return [
        module
        for module in model.modules()
        if (held := list(module.parameters())) and not any(each.requires_grad for each in held)
    ]


def given_scaler(options: FineTuningOptions, channels: int) -> StandardScaler | None:
    """The scale that `--image-mean` and `--image-std` give images of so many channels; None if the training images
    decide."""
    if not options.image_mean:
        return None
    if len(options.image_mean) != channels:
        given = "the weights of --pretrained expect" if options.pretrained else "--image-mean is for"
        raise UserError(
            f"{given} images of {len(options.image_mean)} channels, got images of {channels}: "
            + (
                "give --image-channels 3 with images:FOLDER, or repeat the channel"
                if channels == 1
                else "give images with as many channels"
            )
        )
    mean, std = (
        torch.tensor(each, dtype=torch.float64)[:, None, None] for each in (options.image_mean, options.image_std)
    )
    return StandardScaler(mean, std)
