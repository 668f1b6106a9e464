"""Weight decay against none, with fewer examples than features: the same initial weights and batches, twice."""

from dataclasses import dataclass

from quoin import data, losses, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import EpochOptions, OptimizerOptions, ScheduleName
from quoin.tasks.target import Target

NOTES = ("Z3.31", "Z3.32", "Z3.8", "Z3.11")
KEYWORDS = ("l2", "weight decay", "regularization")
SUBJECT = "Linear models"
# With weight decay over without. Nine tenths of the directions keep their initial weights: an error of |w|² at zero, of
# |w|² + |initial|² = 2 |w|² at random.
TARGET = Target(
    "test_rmse_ratio", at_most=0.85
)  # four standard deviations above the mean over seeds 100 to 299, 0.68 ± 0.04
MONITOR = None  # convex: the last weights are the best

WEIGHT, BIAS, NOISE = 0.01, 0.05, 0.01  # of every feature alike, of the sum, and around it


@dataclass(frozen=True)
class Options(OptimizerOptions, EpochOptions):
    num_features: int = option(200, "features, each of which adds a little to the target", at_least=1, at_most=100_000)
    num_rows: int = option(20, "training rows", at_least=2, at_most=1_000_000)
    weight_decay: float = option(3.0, "weight decay", above=0.0, at_most=1e6)
    epochs: int = default(100)
    lr: float = default(0.01)
    batch_size: int = default(5)
    schedule: ScheduleName = default("cosine")


def model(options: Options, data_info: "data.TabularInfo") -> "models.LinearRegression":
    """Linear regression with random initial weights, as large as the true ones."""
    from torch import nn

    net = models.LinearRegression(data_info.num_features)
    nn.init.normal_(net.linear.weight, std=WEIGHT, generator=data.keyed_generator("weights", options.seed))
    return net


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    import copy

    import torch

    from quoin.tasks.comparison import WeightDecayComparison, few_linear_rows

    data = few_linear_rows(
        options.num_rows,
        [WEIGHT] * options.num_features,
        BIAS,
        noise=NOISE,
        seed=options.seed,
        device_context=device_context,
    )
    net = model(options, data.data_info).to(device_context.device)
    assert data.target_scaler is not None  # the targets are numbers
    with torch.no_grad():
        net.linear.weight /= float(data.target_scaler.std)  # the model sees its targets in this unit
    plain = copy.deepcopy(net)
    task = tasks.supervised_task(
        WeightDecayComparison,
        net,
        losses.squared_loss,
        tasks.make_optimizer(tasks.weight_decay_groups(net, options), options),
        data,
        options,
        device_context,
    )
    without = tasks.make_optimizer([{"params": list(plain.parameters()), "weight_decay": 0.0}], options)
    task.others = {
        "baseline": tasks.supervised_task(
            tasks.Regression, plain, losses.squared_loss, without, data, options, device_context
        )
    }
    return task
