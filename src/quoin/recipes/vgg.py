"""A small VGG that classifies handwritten digits: blocks of 3 x 3 convolutions, dense layers with dropout."""

from dataclasses import dataclass

from quoin import data, models, tasks, train
from quoin.options import default
from quoin.tasks.options import ImageOptions
from quoin.tasks.target import Target

NOTES = ("Z8.0", "Z7.8", "Z7.16", "D1.6-2")
KEYWORDS = ("cnn", "convnet", "image classification", "mnist", "cifar")
SUBJECT = "Convolutional networks"
TARGET = Target("test_accuracy", at_least=0.98)
MONITOR = None  # the learning rate falls to zero and no image is seen twice alike: the last weights are the best


@dataclass(frozen=True)
class Options(ImageOptions):
    epochs: int = default(50)
    lr: float = default(0.02)
    warmup_ratio: float = default(0.1)


def model(options: Options, data_info: "data.TabularInfo") -> "models.ImageClassifier":
    return models.small_vgg(
        data_info.image_shape, data_info.num_classes, generator=data.keyed_generator("weights", options.seed)
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    return tasks.image_classifier(model, options, device_context)
