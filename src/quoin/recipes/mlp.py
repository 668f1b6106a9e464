"""A multilayer perceptron that reads handwritten digits."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import DataOptions, DescentOptions, ScheduleName
from quoin.recipes.running.target import Goal, Target

NOTES = ("D1-18", "D1-20", "D1-22", "Z5.3", "Z4.8", "D1.3-1", "D1.3-4")
TARGET = Target("test_accuracy", at_least=0.96)
GOAL = Goal("validation_loss")


@dataclass(frozen=True)
class Options(DataOptions, DescentOptions):
    """Options of the recipe `mlp`."""

    hidden: tuple[int, ...] = option((128,), "units of each hidden layer, input side first", at_least=1, at_most=1_000_000)
    momentum: float = option(0.9, "share of the last step that is kept", at_least=0.0, below=1.0)
    lr: float = option(0.05, "the learning rate of the first step", above=0.0, at_most=1e38)
    schedule: ScheduleName = option("cosine", "how the learning rate changes over the run")


def model(options, facts):
    from quoin.data import keyed_generator
    from quoin.models import MLP

    return MLP([facts.num_features, *options.hidden, facts.num_classes], generator=keyed_generator("weights", options.seed))


def build(options, place):
    import torch

    from quoin.objectives import cross_entropy
    from quoin.recipes.running.parts import classes, learner
    from quoin.train import Classification

    data = classes(options, place)
    net = model(options, data.facts).to(place.device)
    sgd = torch.optim.SGD(net.parameters(), options.lr, momentum=options.momentum, weight_decay=options.weight_decay)
    return learner(Classification, net, cross_entropy, sgd, data, options, place)
