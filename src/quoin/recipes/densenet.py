"""A small DenseNet that reads handwritten digits: every layer of a block sees all layers before it."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import ImageOptions
from quoin.recipes.running.target import Target

NOTES = ("Z8.0", "Z8.7", "D1.6-12", "Z7.17")
TARGET = Target("test_accuracy", at_least=0.985)
GOAL = None  # the rate falls to zero and no image is seen twice alike: the last weights are the best


@dataclass(frozen=True)
class Options(ImageOptions):
    """Options of the recipe `densenet`."""

    epochs: int = option(20, "passes over the training data", at_least=1, at_most=10**9)
    lr: float = option(0.1, "the learning rate of the first step", above=0.0, at_most=1e38)
    warm_up: float = option(0.1, "share of the run over which the learning rate rises to its full size", at_least=0.0, below=1.0)
    weight_decay: float = option(2e-3, "pull of the weights towards zero", at_least=0.0, at_most=1e38)


def model(options, facts):
    from quoin.data import keyed_generator
    from quoin.models import small_densenet

    return small_densenet(facts.feature_shape, facts.num_classes, generator=keyed_generator("weights", options.seed))


def build(options, place):
    from quoin.recipes.running.images import image_classifier

    return image_classifier(model, options, place)
