"""Logistic regression that tells malignant from benign tumours."""

from dataclasses import dataclass

from quoin import losses, models, tasks, train
from quoin.errors import Mistake
from quoin.options import default
from quoin.tasks.options import ScheduleName, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("M6", "M7", "M8", "M9", "D1.3-1")
TARGET = Target("test_accuracy", at_least=0.95)
MONITOR = None  # convex, with a penalty and a rate that falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(SupervisedOptions):
    data: str = default("breast-cancer", "where the data come from: two classes by name, or csv:PATH, npz:PATH")
    epochs: int = default(50)
    lr: float = default(0.2)
    schedule: ScheduleName = default("cosine")
    weight_decay: float = default(1e-2, "pull of the weights towards zero, without which separable data have no best ones")


def model(options: Options, facts):
    if facts.num_classes != 2:
        raise Mistake(f"expected two classes, came {facts.num_classes}: choose other --data, or train softmax-regression")
    return models.LinearScore(facts.num_features)


def build(options: Options, place: "train.Place"):
    import torch

    data = tasks.classes(options, place)
    net = model(options, data.facts).to(place.device)
    weights = {"params": [net.linear.weight], "weight_decay": options.weight_decay}  # the bias is free
    sgd = torch.optim.SGD([weights, {"params": [net.linear.bias]}], options.lr)
    # Of the logits (-s, s), cross-entropy is ln(1 + e^{-m}) with the margin m = 2 y s.
    return tasks.learner(tasks.Classification, net, losses.cross_entropy, sgd, data, options, place)
