"""A small VGG that reads handwritten digits: blocks of 3 x 3 convolutions, then dense layers under dropout."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import ImageOptions
from quoin.recipes.running.target import Target

NOTES = ("Z8.0", "Z7.8", "Z7.16", "D1.6-2")
TARGET = Target("test_accuracy", at_least=0.98)
GOAL = None  # the rate falls to zero and no image is seen twice alike: the last weights are the best


@dataclass(frozen=True)
class Options(ImageOptions):
    """Options of the recipe `vgg`."""

    epochs: int = option(50, "passes over the training data", at_least=1, at_most=10**9)
    lr: float = option(0.02, "the learning rate of the first step", above=0.0, at_most=1e38)
    warm_up: float = option(0.1, "share of the run over which the learning rate rises to its full size", at_least=0.0, below=1.0)


def model(options, facts):
    from quoin.data import keyed_generator
    from quoin.models import small_vgg

    return small_vgg(facts.feature_shape, facts.num_classes, generator=keyed_generator("weights", options.seed))


def build(options, place):
    from quoin.recipes.running.images import image_classifier

    return image_classifier(model, options, place)
