"""A small residual network (ResNet) that classifies handwritten digits."""

from dataclasses import dataclass

from quoin import data, models, tasks, train
from quoin.options import default
from quoin.tasks.options import ImageOptions
from quoin.tasks.target import Target

NOTES = ("Z8.9", "Z8.0", "D1.6-5", "Z8.7", "D1.6-12")
KEYWORDS = ("cnn", "convnet", "image classification", "mnist", "cifar", "skip connection")
SUBJECT = "Convolutional networks"
TARGET = Target("test_accuracy", at_least=0.985)
MONITOR = None  # the learning rate falls to zero and no image is seen twice alike: the last weights are the best


@dataclass(frozen=True)
class Options(ImageOptions):
    lr: float = default(0.1)
    warmup_ratio: float = default(0.1)
    weight_decay: float = default(2e-3)


def model(options: Options, data_info: "data.TabularInfo") -> "models.ResNet":
    return models.small_resnet(
        data_info.image_shape, data_info.num_classes, generator=data.keyed_generator("weights", options.seed)
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    return tasks.image_classifier(model, options, device_context)
