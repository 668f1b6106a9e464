"""A small LeNet with batch normalization, for tests of several processes."""

from dataclasses import dataclass

from quoin import data, layers, models, tasks, train
from quoin.tasks.options import ImageOptions
from quoin.tasks.target import Target

NOTES = ("Z8.0", "Z8.7")
KEYWORDS = ("cnn", "batch normalization")
SUBJECT = "Convolutional networks"
TARGET = Target("test_accuracy", at_least=0.9)
MONITOR = None


@dataclass(frozen=True)
class Options(ImageOptions):
    pass


def model(options: Options, data_info: "data.TabularInfo") -> "models.ImageClassifier":
    generator = data.keyed_generator("weights", options.seed)
    return layers.add_batch_norm(models.small_lenet(data_info.image_shape, data_info.num_classes, generator=generator))


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    return tasks.image_classifier(model, options, device_context)
