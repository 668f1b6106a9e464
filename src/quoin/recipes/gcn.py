"""A graph convolutional network that classifies the nodes of the karate club from one label per class."""

from dataclasses import dataclass

from quoin import data, layers, losses, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import EpochOptions, OptimizerName, OptimizerOptions
from quoin.tasks.target import Target

NOTES = ("D1.1-25", "D1.1-20")
KEYWORDS = ("graph neural network", "gnn", "karate club", "node classification", "kipf welling")
SUBJECT = "Graphs"
TARGET = Target("test_accuracy", at_least=0.9)  # of the members without a label
DATA = "karate club"
MONITOR = None  # no member can be spared for validation


@dataclass(frozen=True)
class Options(OptimizerOptions, EpochOptions):
    """Options of the recipe `gcn`; the defaults are Kipf and Welling's, without dropout."""

    hidden_dims: tuple[int, ...] = option(
        (16,), "hidden features of a node after each layer but the last", at_least=1, at_most=1_000_000
    )
    num_labels_per_class: int = option(
        1, "labelled members of each faction: its leader, then some sampled by the seed", at_least=1
    )
    epochs: int = default(200, "passes over the labelled members")
    optimizer: OptimizerName = default("adam")
    lr: float = default(0.01)
    weight_decay: float = default(5e-4)


def model(options: Options, data_info: "data.TabularInfo") -> "models.NodeClassifier":
    club = data.load_karate_club()
    edges = layers.normalized_edges(club.edges, club.num_nodes)  # friends or not: how often two met is left out
    return models.NodeClassifier(
        edges, options.hidden_dims, data_info.num_classes, generator=data.keyed_generator("weights", options.seed)
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.data import load_karate_club
    from quoin.tasks.node_classification import NodeClassification

    club = load_karate_club()
    data = club.prepared(club.labeled_nodes(options.num_labels_per_class, options.seed), device_context.device)
    net = model(options, data.data_info).to(device_context.device)
    optimizer = tasks.make_optimizer(net.parameters(), options)
    task = tasks.supervised_task(
        NodeClassification, net, losses.cross_entropy, optimizer, data, options, device_context
    )
    task.graph = club
    return task
