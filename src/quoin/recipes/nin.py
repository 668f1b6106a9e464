"""A small network in network (NiN) that classifies handwritten digits: an MLP at every pixel."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import ImageOptions
from quoin.tasks.target import Target

NOTES = ("Z8.0", "Z7.8", "Z7.16", "Z7.17")
KEYWORDS = ("cnn", "convnet", "image classification", "mnist", "cifar")
SUBJECT = "Convolutional networks"
TARGET = Target("test_accuracy", at_least=0.97)
MONITOR = None  # the learning rate falls to zero and no image is seen twice alike: the last weights are the best


@dataclass(frozen=True)
class Options(ImageOptions):
    size: Literal["small", "full"] = option(
        "small", "full: NiN as published, for images from 67 x 67; small: from 8 x 8"
    )
    # The last layer is a ReLU: after a warmup half as long, one run of five had a class whose output was 0
    # for all images.
    epochs: int = default(100)
    lr: float = default(0.02)
    warmup_ratio: float = default(0.1)


def model(options: Options, data_info: "data.TabularInfo") -> "models.ImageClassifier":
    make = {"small": models.small_nin, "full": models.nin}[options.size]
    return make(
        image_shape=data_info.image_shape,
        num_classes=data_info.num_classes,
        generator=data.keyed_generator("weights", options.seed),
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    return tasks.image_classifier(model, options, device_context)
