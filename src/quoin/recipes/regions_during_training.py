"""The linear regions of a small network of the plane, counted exactly after every epoch while it learns to tell two classes apart."""

from dataclasses import dataclass

from quoin import data, losses, models, tasks, train
from quoin.errors import Mistake
from quoin.options import default, option
from quoin.tasks.options import ScheduleName, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("D1.1-14",)
# Biases start at zero, so that the first layer's lines all pass through one point; what learns moves them apart.
TARGET = Target("test_region_growth", at_least=3.0)
MONITOR = None  # the counts tell of the network as it ends


@dataclass(frozen=True)
class Options(SupervisedOptions):
    data: str = default("moons", "where the data come from: moons, circles, blobs, or csv:PATH, npz:PATH with two features")
    hidden: tuple[int, ...] = option((16, 16), "units of each hidden layer, input side first", at_least=1, at_most=256)
    epochs: int = option(40, "passes over the training data", at_least=1, at_most=10**4)
    lr: float = default(0.01)
    schedule: ScheduleName = default("cosine")


def model(options: Options, facts):
    if facts.num_features != 2:
        raise Mistake(f"expected data with two features to draw regions over, came {facts.num_features}; leave two columns")
    return models.MLP([2, *options.hidden, facts.num_classes], generator=data.keyed_generator("weights", options.seed))


def build(options: Options, place: "train.Place"):
    import torch

    from quoin.tasks.linear_regions import RegionCounting

    data = tasks.classes(options, place)
    net = model(options, data.facts).to(place.device)
    adam = torch.optim.Adam(net.parameters(), options.lr, weight_decay=options.weight_decay)
    task = tasks.learner(tasks.Classification, net, losses.cross_entropy, adam, data, options, place)
    return RegionCounting(task, epochs=options.epochs, hidden=options.hidden)
