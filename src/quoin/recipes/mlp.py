"""A multilayer perceptron that reads handwritten digits."""

from dataclasses import dataclass

from quoin import data, losses, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import ScheduleName, SupervisedOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("D1-18", "D1-20", "D1-22", "Z5.3", "Z4.8", "D1.3-1", "D1.3-4")
TARGET = Target("test_accuracy", at_least=0.96)
MONITOR = Monitor("validation_loss")


@dataclass(frozen=True)
class Options(SupervisedOptions):
    hidden: tuple[int, ...] = option((128,), "units of each hidden layer, input side first", at_least=1, at_most=1_000_000)
    momentum: float = option(0.9, "share of the last step that is kept", at_least=0.0, below=1.0)
    lr: float = default(0.05)
    schedule: ScheduleName = default("cosine")


def model(options: Options, facts):
    return models.MLP([facts.num_features, *options.hidden, facts.num_classes], generator=data.keyed_generator("weights", options.seed))


def build(options: Options, place: "train.Place"):
    import torch

    data = tasks.classes(options, place)
    net = model(options, data.facts).to(place.device)
    sgd = torch.optim.SGD(net.parameters(), options.lr, momentum=options.momentum, weight_decay=options.weight_decay)
    return tasks.learner(tasks.Classification, net, losses.cross_entropy, sgd, data, options, place)
