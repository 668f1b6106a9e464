"""Weight decay against none, with fewer examples than features or on your table: the same batches, twice."""

from dataclasses import dataclass, replace
from typing import ClassVar

from quoin import data, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import DataOptions, DemonstrationOptions, EpochOptions, OptimizerOptions, ScheduleName
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

WEIGHT, BIAS, NOISE = 0.01, 0.05, 0.01  # of every feature alike, of the sum, and around it, in the generated data


@dataclass(frozen=True)
class Options(DataOptions, DemonstrationOptions, OptimizerOptions, EpochOptions):
    demonstration: ClassVar[tuple[str, ...]] = ("num_features", "num_rows")
    data: str = default("wide", "data set: wide, or a name, csv:PATH, npz:PATH with numbers as targets")
    num_features: int = option(
        200, "features of --data wide, each of which adds a little to the target", at_least=1, at_most=100_000
    )
    num_rows: int = option(20, "training rows of --data wide", at_least=2, at_most=1_000_000)
    weight_decay: float = option(
        0.0,
        "weight decay; 0 for 3 with --data wide, and for the best on validation with others",
        at_least=0.0,
        at_most=1e6,
    )
    epochs: int = default(100)
    lr: float = default(0.01)
    batch_size: int = default(5)
    schedule: ScheduleName = default("cosine")


def model(options: Options, data_info: "data.TabularInfo") -> "models.LinearRegression":
    """Linear regression, for the generated data with random initial weights as large as the true ones."""
    from torch import nn

    net = models.LinearRegression(data_info.num_features)
    if not options.is_demonstration:
        return net
    nn.init.normal_(net.linear.weight, std=WEIGHT, generator=data.keyed_generator("weights", options.seed))
    return net


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    import torch

    from quoin.tasks.comparison import best_weight_decay, few_linear_rows, weight_decay_comparison

    if not options.is_demonstration:
        data = tasks.load_regression_data(options, device_context)
        options = replace(options, weight_decay=options.weight_decay or best_weight_decay(data, options.lr))
        net = model(options, data.data_info).to(device_context.device)
        return weight_decay_comparison(net, data, options, device_context)
    weights, options = [WEIGHT] * options.num_features, replace(options, weight_decay=options.weight_decay or 3.0)
    data = few_linear_rows(
        options.num_rows, weights, BIAS, noise=NOISE, seed=options.seed, device_context=device_context
    )
    net = model(options, data.data_info).to(device_context.device)
    assert data.target_scaler is not None  # the targets are numbers
    with torch.no_grad():
        net.linear.weight /= float(data.target_scaler.std)  # the model sees its targets in this unit
    return weight_decay_comparison(net, data, options, device_context)
