"""Dropout against overfitting: digits, some of them labelled at random to learn from, and a perceptron with its twin without dropout."""

from dataclasses import dataclass, replace

from quoin import data, losses, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import ScheduleName, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("D1.6-1", "D1.6-2", "D1.6-3", "D1.6-16", "Z5.22", "Z3.20", "Z5.21")
# How much of the gap between training and test accuracy dropout takes away: the twin learns the random labels by heart.
TARGET = Target("test_gap_closed", at_least=0.15)
LABEL_NOISE = 0.3  # of the built-in digits, whose labels are all right
MONITOR = None  # both are compared as they end; to stop either at its best would be a second regularisation


@dataclass(frozen=True)
class Options(SupervisedOptions):
    hidden: tuple[int, ...] = option((256,), "units of each hidden layer, input side first", at_least=1, at_most=1_000_000)
    dropout: float = option(0.5, "probability with which a hidden unit is silent in training", at_least=0.0, below=1.0)
    label_noise: float | None = option(
        None, "share of the training labels that are drawn at random; 0.3 for the digits, none for other data", at_least=0.0, at_most=1.0
    )
    momentum: float = option(0.9, "share of the last step that is kept", at_least=0.0, below=1.0)
    lr: float = default(0.05)
    schedule: ScheduleName = default("cosine")


def model(options: Options, facts):
    sizes = [facts.num_features, *options.hidden, facts.num_classes]
    return models.DropoutMLP(sizes, dropout=options.dropout, generator=data.keyed_generator("weights", options.seed))


def build(options: Options, place: "train.Place"):
    import torch

    from quoin.tasks.comparison import DropoutComparison, add_label_noise

    noise = options.label_noise
    if noise is None:  # labels of somebody's own are theirs to spoil
        noise = LABEL_NOISE if options.data == Options().data else 0.0
    data = add_label_noise(tasks.classes(options, place), noise, options.seed)
    nets = [model(each, data.facts).to(place.device) for each in (options, replace(options, dropout=0.0))]
    rules = [torch.optim.SGD(net.parameters(), options.lr, momentum=options.momentum, weight_decay=options.weight_decay) for net in nets]
    task = tasks.learner(DropoutComparison, nets[0], losses.cross_entropy, rules[0], data, options, place)
    task.others = {"plain": tasks.learner(tasks.Classification, nets[1], losses.cross_entropy, rules[1], data, options, place)}
    task.label_noise = noise
    return task
