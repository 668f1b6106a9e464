"""A small ResNeXt that reads handwritten digits: residual blocks of many narrow branches side by side."""

from dataclasses import dataclass

from quoin import data, models, tasks, train
from quoin.options import default
from quoin.tasks.options import ImageOptions
from quoin.tasks.target import Target

NOTES = ("Z8.9", "Z8.0", "D1.6-5", "Z8.7", "D1.6-12")
TARGET = Target("test_accuracy", at_least=0.975)
MONITOR = None  # the rate falls to zero and no image is seen twice alike: the last weights are the best


@dataclass(frozen=True)
class Options(ImageOptions):
    lr: float = default(0.1)
    warm_up: float = default(0.1)
    weight_decay: float = default(2e-3)


def model(options: Options, facts):
    return models.small_resnext(facts.feature_shape, facts.num_classes, generator=data.keyed_generator("weights", options.seed))


def build(options: Options, place: "train.Place"):
    return tasks.image_classifier(model, options, place)
