"""A small AlexNet that classifies handwritten digits: five convolutions, dense layers with dropout."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, models, tasks, train
from quoin.options import default, option
from quoin.tasks.fine_tuning_options import FineTuningOptions
from quoin.tasks.options import ImageOptions
from quoin.tasks.target import Target

NOTES = ("D1-8b", "Z8.0", "Z7.8", "Z7.16", "D1.6-2")
KEYWORDS = ("cnn", "convnet", "image classification", "mnist", "cifar")
SUBJECT = "Convolutional networks"
TARGET = Target("test_accuracy", at_least=0.97)
MONITOR = None  # the learning rate falls to zero and no image is seen twice alike: the last weights are the best


@dataclass(frozen=True)
class Options(FineTuningOptions, ImageOptions):
    size: Literal["small", "full"] = option(
        "small", "full: AlexNet as published, for images from 63 x 63; small: from 8 x 8"
    )
    epochs: int = default(50)
    lr: float = default(0.02)
    warmup_ratio: float = default(0.1)


def model(options: Options, data_info: "data.TabularInfo") -> "models.ImageClassifier":
    make = {"small": models.small_alexnet, "full": models.alexnet}[options.size]
    return make(
        image_shape=data_info.image_shape,
        num_classes=data_info.num_classes,
        generator=data.keyed_generator("weights", options.seed),
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.fine_tuning import ALEXNET

    return tasks.fine_tuned_classifier(model, options, device_context, ALEXNET)
