"""Softmax regression that reads handwritten digits: the best that scores linear in the pixels can do."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import DataOptions, DescentOptions, ScheduleName
from quoin.recipes.running.target import Target

NOTES = ("Z4.1", "Z4.8", "M5", "M12", "D1.3-1", "D1.3-2")
TARGET = Target("test_accuracy", at_least=0.945)
GOAL = None  # convex, with a penalty and a rate that falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(DataOptions, DescentOptions):
    """Options of the recipe `softmax-regression`."""

    epochs: int = option(50, "passes over the training data", at_least=1, at_most=10**9)
    lr: float = option(0.1, "the learning rate of the first step", above=0.0, at_most=1e38)
    schedule: ScheduleName = option("cosine", "how the learning rate changes over the run")
    weight_decay: float = option(1e-3, "pull of the weights towards zero, without which separable data have no best ones", at_least=0.0)


def model(options, facts):
    from quoin.models import SoftmaxRegression

    return SoftmaxRegression(facts.num_features, facts.num_classes)


def build(options, place):
    import torch

    from quoin.objectives import cross_entropy
    from quoin.recipes.running.parts import classes, learner
    from quoin.train import Classification

    data = classes(options, place)
    net = model(options, data.facts).to(place.device)
    weights = {"params": [net.linear.weight], "weight_decay": options.weight_decay}  # the bias is free
    sgd = torch.optim.SGD([weights, {"params": [net.linear.bias]}], options.lr)
    return learner(Classification, net, cross_entropy, sgd, data, options, place)
