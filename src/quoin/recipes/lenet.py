"""A small LeNet that reads handwritten digits, each moved a little whenever it is seen."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import ImageOptions
from quoin.recipes.running.target import Target

NOTES = ("Z8.0", "D1.1-21", "Z7.8", "Z7.16")
TARGET = Target("test_accuracy", at_least=0.98)
GOAL = None  # the rate falls to zero and no image is seen twice alike: the last weights are the best


@dataclass(frozen=True)
class Options(ImageOptions):
    """Options of the recipe `lenet`."""

    epochs: int = option(60, "passes over the training data", at_least=1, at_most=10**9)
    lr: float = option(0.02, "the learning rate of the first step", above=0.0, at_most=1e38)


def model(options, facts):
    from quoin.data import keyed_generator
    from quoin.models import small_lenet

    return small_lenet(facts.feature_shape, facts.num_classes, generator=keyed_generator("weights", options.seed))


def build(options, place):
    from quoin.recipes.running.images import image_classifier

    return image_classifier(model, options, place)
