"""Softmax regression that reads handwritten digits: the best that scores linear in the pixels can do."""

from dataclasses import dataclass

from quoin import losses, models, tasks, train
from quoin.options import default
from quoin.tasks.options import ScheduleName, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("Z4.1", "Z4.8", "M5", "M12", "D1.3-1", "D1.3-2")
TARGET = Target("test_accuracy", at_least=0.945)
MONITOR = None  # convex, with a penalty and a rate that falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(SupervisedOptions):
    epochs: int = default(50)
    lr: float = default(0.1)
    schedule: ScheduleName = default("cosine")
    weight_decay: float = default(1e-3, "pull of the weights towards zero, without which separable data have no best ones")


def model(options: Options, facts):
    return models.SoftmaxRegression(facts.num_features, facts.num_classes)


def build(options: Options, place: "train.Place"):
    import torch

    data = tasks.classes(options, place)
    net = model(options, data.facts).to(place.device)
    weights = {"params": [net.linear.weight], "weight_decay": options.weight_decay}  # the bias is free
    sgd = torch.optim.SGD([weights, {"params": [net.linear.bias]}], options.lr)
    return tasks.learner(tasks.Classification, net, losses.cross_entropy, sgd, data, options, place)
