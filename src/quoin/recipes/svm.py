"""A linear support vector machine that tells malignant from benign tumours: the hinge loss by SGD."""

from dataclasses import dataclass

from quoin import models, tasks, train
from quoin.errors import Mistake
from quoin.options import default
from quoin.tasks.options import ScheduleName, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("M7", "M8", "M11", "D5.2-4")
TARGET = Target("test_accuracy", at_least=0.95)
GIVES_PROBABILITIES = False  # a score tells the side and the distance, not the chance
MONITOR = None  # convex, with a penalty and a rate that falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(SupervisedOptions):
    data: str = default("breast-cancer", "where the data come from: two classes by name, or csv:PATH, npz:PATH")
    epochs: int = default(50)
    lr: float = default(0.05)
    schedule: ScheduleName = default("cosine")
    weight_decay: float = default(1e-2, "pull of the weights towards zero: the width of the margin against its violations")


def model(options: Options, facts):
    if facts.num_classes != 2:
        raise Mistake(f"expected two classes, came {facts.num_classes}: choose other --data, or train softmax-regression")
    return models.LinearScore(facts.num_features)


def build(options: Options, place: "train.Place"):
    import torch

    from quoin.tasks.linear_models import MarginClassification, logits_hinge_loss

    data = tasks.classes(options, place)
    net = model(options, data.facts).to(place.device)
    weights = {"params": [net.linear.weight], "weight_decay": options.weight_decay}  # the bias is free
    sgd = torch.optim.SGD([weights, {"params": [net.linear.bias]}], options.lr)
    return tasks.learner(MarginClassification, net, logits_hinge_loss, sgd, data, options, place)
