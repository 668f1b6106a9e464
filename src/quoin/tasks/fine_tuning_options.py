"""The options of fine-tuning: weights to start from, what of them stays as it is, and the input they are used to.
Imports no torch."""

import dataclasses
import re
from dataclasses import dataclass
from typing import ClassVar, Self

from quoin.errors import UserError, format_value
from quoin.options import ValidatedOptions, option

__all__ = ["IMAGENET", "FineTuningOptions", "ImageStatistics"]

ImageStatistics = tuple[tuple[float, ...], tuple[float, ...]]  # mean and standard deviation of each channel, in [0, 1]

IMAGENET: ImageStatistics = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # torchvision's, timm's and others'


@dataclass(frozen=True)
class FineTuningOptions(ValidatedOptions):
    """What every recipe has that can start from trained weights."""

    trained_on: ClassVar[ImageStatistics] = IMAGENET  # the input that the family's published weights expect

    pretrained: str = option(
        "",
        "start from trained weights: a .safetensors file with torchvision's names for this --size, or the folder of a "
        "run; the head is new where the number of classes differs",
    )
    pretrained_sha256: str = option("", "SHA-256 that these weights must have; a run records it")
    freeze: str = option(
        "",
        "with --pretrained: freeze the first N stages, or the whole backbone, all but the head; frozen layers get no "
        "gradient, weight decay or momentum, and their batch norm stays in eval mode",
    )
    image_mean: tuple[float, ...] = option(
        (),
        "normalize images by this mean of each channel, pixels being in [0, 1]; with --pretrained that of its weights, "
        "else that of the training images",
    )
    image_std: tuple[float, ...] = option((), "the standard deviations that go with --image-mean", above=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.image_mean) != len(self.image_std):
            raise UserError(
                f"expected as many numbers for --image-mean as for --image-std, one for each channel, got "
                f"{len(self.image_mean)} and {len(self.image_std)}: give both or neither"
            )
        for name, value in (("--freeze", self.freeze), ("--pretrained-sha256", self.pretrained_sha256)):
            if value and not self.pretrained:
                raise UserError(f"{name} is about the weights of --pretrained, got none: give both or neither")
        if self.freeze not in ("", "backbone") and not re.fullmatch(r"[1-9]\d{0,8}", self.freeze):
            raise UserError(f"--freeze expects a number of stages or backbone, got {format_value(self.freeze)}")

    def resolved(self) -> Self:
        """The options of a new run: the hash of the weights and their statistics are recorded, so that the file is not
        needed again."""
        if not self.pretrained:
            return self
        from quoin.tasks.pretrained_files import describe_pretrained

        found = describe_pretrained(self.pretrained)
        if self.pretrained_sha256 not in ("", found.sha256):
            raise UserError(
                f"--pretrained-sha256: expected {format_value(self.pretrained_sha256, 80)}, but the weights at "
                f"{format_value(self.pretrained, 200)} have {found.sha256}: get the right ones, or leave it out"
            )
        mean, std = (self.image_mean, self.image_std) if self.image_mean else found.statistics or self.trained_on
        return dataclasses.replace(
            self, pretrained=found.path, pretrained_sha256=found.sha256, image_mean=mean, image_std=std
        )
