"""A small ResNeXt that classifies handwritten digits: residual blocks of grouped convolutions."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, models, tasks, train
from quoin.options import default, option
from quoin.tasks.fine_tuning_options import FineTuningOptions
from quoin.tasks.options import ImageOptions
from quoin.tasks.target import Target

NOTES = ("Z8.9", "Z8.0", "D1.6-5", "Z8.7", "D1.6-12")
KEYWORDS = ("cnn", "convnet", "image classification", "mnist", "cifar", "skip connection")
SUBJECT = "Convolutional networks"
TARGET = Target("test_accuracy", at_least=0.975)
MONITOR = None  # the learning rate falls to zero and no image is seen twice alike: the last weights are the best


@dataclass(frozen=True)
class Options(FineTuningOptions, ImageOptions):
    size: Literal["small", "50"] = option(
        "small", "ResNeXt-50 (32x4d), for images from 32 x 32, or a small one, from 8 x 8"
    )
    lr: float = default(0.1)
    warmup_ratio: float = default(0.1)
    weight_decay: float = default(2e-3)


def model(options: Options, data_info: "data.TabularInfo") -> "models.ResNet":
    make = {"small": models.small_resnext, "50": models.resnext50}[options.size]
    return make(
        image_shape=data_info.image_shape,
        num_classes=data_info.num_classes,
        generator=data.keyed_generator("weights", options.seed),
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.fine_tuning import RESNET

    return tasks.fine_tuned_classifier(model, options, device_context, RESNET)
