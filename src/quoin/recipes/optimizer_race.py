"""Six update rules race on one perceptron, each at the best of a few rates: how the loss falls, by updates and by seconds."""

from dataclasses import dataclass

from quoin import data, losses, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import DataOptions, RunOptions, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("D1.5-4", "D1.5-6", "D1.5-7", "D1.5-8", "D1.5-10")
# Of the rule that ends worst, at the rate that validation chose for it: with a rate that suits it, each of the six reads the digits.
TARGET = Target("test_least_accuracy", at_least=0.95)
MONITOR = None  # all are compared as they end


@dataclass(frozen=True)
class Options(DataOptions, RunOptions):
    hidden: tuple[int, ...] = option((128,), "units of each hidden layer, input side first", at_least=1, at_most=1_000_000)
    rates: tuple[float, ...] = option((0.01, 0.03, 0.1, 0.3, 1.0), "rates that SGD, momentum and Nesterov try", above=0.0, at_most=1e38)
    adaptive_rates: tuple[float, ...] = option((0.001, 0.003, 0.01, 0.03), "rates that RMSProp and both Adams try", above=0.0, at_most=1e38)
    momentum: float = option(0.9, "share of the last step that momentum and Nesterov keep", above=0.0, below=1.0)
    decay: float = option(0.1, "AdamW's pull of the weights towards zero", at_least=0.0, at_most=1e6)
    level: float = option(0.1, "the training loss, over an epoch of updates, to which updates are counted", above=0.0)
    epochs: int = default(15)
    batch_size: int = option(32, "examples per update", at_least=1, at_most=10**9)


def model(options: Options, facts):
    """The perceptron that all begin with; what the run keeps to predict with is that of the least validation loss."""
    return models.MLP([facts.num_features, *options.hidden, facts.num_classes], generator=data.keyed_generator("weights", options.seed))


def build(options: Options, place: "train.Place"):
    from quoin.data import Batches
    from quoin.tasks.optimizer_race import OPTIMIZERS, OptimizerRace, Trial, learning_rates, make_optimizer

    rates = [(name, lr) for name in OPTIMIZERS for lr in learning_rates(name, options)]
    data = tasks.classes(options, place)
    own = SupervisedOptions(seed=options.seed, epochs=options.epochs, batch_size=options.batch_size)
    trials = []
    for name, lr in rates:
        net = model(options, data.facts).to(place.device)
        optimizer = make_optimizer(name, net.parameters(), lr, momentum=options.momentum, weight_decay=options.decay)
        trials.append(Trial(name, lr, tasks.learner(tasks.Classification, net, losses.cross_entropy, optimizer, data, own, place)))
    batches = Batches(data.train.num_rows, options.batch_size, seed=options.seed, device=place.device)
    return OptimizerRace(trials, batches, level=options.level)
