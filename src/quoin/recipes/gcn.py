"""A graph convolutional network that tells the two factions of the karate club apart, with one labelled member of each."""

from dataclasses import dataclass

from quoin import data, layers, losses, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import OptimizerOptions, RunOptions
from quoin.tasks.target import Target

NOTES = ("D1.1-25", "D1.1-20")
TARGET = Target("test_accuracy", at_least=0.9)  # of the members whose faction was not told
DATA = "karate club"
MONITOR = None  # no member can be spared to choose by


@dataclass(frozen=True)
class Options(OptimizerOptions, RunOptions):
    """Options of the recipe `gcn`; the defaults are Kipf and Welling's, without dropout."""

    hidden: tuple[int, ...] = option((16,), "features of a member after each layer but the last", at_least=1, at_most=1_000_000)
    labels: int = option(1, "members of each faction whose label is told: its leader, then some that the seed draws", at_least=1)
    epochs: int = default(200, "passes over the labelled members")
    lr: float = default(0.01)
    weight_decay: float = default(5e-4)


def model(options: Options, facts):
    club = data.karate_club()
    links = layers.normalised_links(club.edges, club.num_nodes)  # friends or not: how often two met is left out
    return models.NodeClassifier(links, options.hidden, facts.num_classes, generator=data.keyed_generator("weights", options.seed))


def build(options: Options, place: "train.Place"):
    import torch

    from quoin.data import karate_club
    from quoin.tasks.node_classification import NodeClassification

    club = karate_club()
    data = club.prepared(club.labelled_nodes(options.labels, options.seed), place.device)
    net = model(options, data.facts).to(place.device)
    adam = torch.optim.Adam(net.parameters(), options.lr, weight_decay=options.weight_decay)
    task = tasks.learner(NodeClassification, net, losses.cross_entropy, adam, data, options, place)
    task.graph = club
    return task
