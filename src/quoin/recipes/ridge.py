"""Weight decay against none, on fewer rows than inputs: the same start and the same batches, twice."""

from dataclasses import dataclass

from quoin import data, losses, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import OptimizerOptions, RunOptions, ScheduleName
from quoin.tasks.target import Target

NOTES = ("Z3.31", "Z3.32", "Z3.8", "Z3.11")
# With decay over without. Nine tenths of the directions stay as they began: off by |w|² at zero, by |w|² + |start|² = 2 |w|² at random.
TARGET = Target("test_rmse_ratio", at_most=0.85)  # four deviations above the mean over seeds 100 to 299, 0.68 ± 0.04
MONITOR = None  # convex: the last weights are the best

WEIGHT, BIAS, NOISE = 0.01, 0.05, 0.01  # of every input alike, of the sum, and around it


@dataclass(frozen=True)
class Options(OptimizerOptions, RunOptions):
    inputs: int = option(200, "inputs, each of which adds a little to the target", at_least=1, at_most=100_000)
    rows: int = option(20, "rows to learn from", at_least=2, at_most=1_000_000)
    weight_decay: float = option(3.0, "pull of the weights towards zero", above=0.0, at_most=1e6)
    epochs: int = default(100)
    lr: float = default(0.01)
    batch_size: int = default(5)
    schedule: ScheduleName = default("cosine")


def model(options: Options, facts):
    """Linear regression that starts at random, its weights as large as the true ones."""
    from torch import nn

    net = models.LinearRegression(facts.num_features)
    nn.init.normal_(net.linear.weight, std=WEIGHT, generator=data.keyed_generator("weights", options.seed))
    return net


def build(options: Options, place: "train.Place"):
    import copy

    import torch

    from quoin.tasks.comparison import WeightDecayComparison, few_linear_rows

    data = few_linear_rows(options.rows, [WEIGHT] * options.inputs, BIAS, noise=NOISE, seed=options.seed, place=place)
    net = model(options, data.facts).to(place.device)
    assert data.target_scale is not None  # the targets are numbers
    with torch.no_grad():
        net.linear.weight /= float(data.target_scale.std)  # the model sees its targets in this unit
    plain = copy.deepcopy(net)
    groups = [{"params": [net.linear.weight], "weight_decay": options.weight_decay}, {"params": [net.linear.bias]}]
    task = tasks.learner(WeightDecayComparison, net, losses.squared_loss, torch.optim.SGD(groups, options.lr), data, options, place)
    sgd = torch.optim.SGD(plain.parameters(), options.lr)
    task.others = {"plain": tasks.learner(tasks.Regression, plain, losses.squared_loss, sgd, data, options, place)}
    return task
