"""A small LeNet that classifies handwritten digits, with random shifts as data augmentation."""

from dataclasses import dataclass

from quoin import data, models, tasks, train
from quoin.options import default
from quoin.tasks.options import ImageOptions
from quoin.tasks.target import Target

NOTES = ("Z8.0", "D1.1-21", "Z7.8", "Z7.16")
KEYWORDS = ("cnn", "convnet", "image classification", "mnist", "cifar")
SUBJECT = "Convolutional networks"
TARGET = Target("test_accuracy", at_least=0.98)
MONITOR = None  # the learning rate falls to zero and no image is seen twice alike: the last weights are the best


@dataclass(frozen=True)
class Options(ImageOptions):
    epochs: int = default(60)
    lr: float = default(0.02)


def model(options: Options, data_info: "data.TabularInfo") -> "models.ImageClassifier":
    return models.small_lenet(
        data_info.image_shape, data_info.num_classes, generator=data.keyed_generator("weights", options.seed)
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    return tasks.image_classifier(model, options, device_context)
