"""A small GoogLeNet that classifies handwritten digits: Inception modules of four parallel paths."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, models, tasks, train
from quoin.options import default, option
from quoin.tasks.fine_tuning_options import FineTuningOptions
from quoin.tasks.options import ImageOptions
from quoin.tasks.target import Target

NOTES = ("Z8.0", "Z7.8", "Z7.16", "Z8.7")
KEYWORDS = ("cnn", "convnet", "image classification", "mnist", "cifar")
SUBJECT = "Convolutional networks"
TARGET = Target("test_accuracy", at_least=0.98)
MONITOR = None  # the learning rate falls to zero and no image is seen twice alike: the last weights are the best


@dataclass(frozen=True)
class Options(FineTuningOptions, ImageOptions):
    trained_on = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)  # of torchvision's weights: pixels from -1 to 1
    size: Literal["small", "full"] = option(
        "small", "full: GoogLeNet as published, for images from 15 x 15; small: from 8 x 8"
    )
    epochs: int = default(10)
    lr: float = default(0.1)
    warmup_ratio: float = default(0.1)


def model(options: Options, data_info: "data.TabularInfo") -> "models.ImageClassifier":
    make = {"small": models.small_googlenet, "full": models.googlenet}[options.size]
    return make(
        image_shape=data_info.image_shape,
        num_classes=data_info.num_classes,
        generator=data.keyed_generator("weights", options.seed),
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.fine_tuning import GOOGLENET

    return tasks.fine_tuned_classifier(model, options, device_context, GOOGLENET)
