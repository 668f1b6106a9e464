"""Gradient descent on logistic regression: its suboptimality and two convergence bounds, step by step."""

from dataclasses import dataclass

from quoin import data, models, tasks, train
from quoin.errors import UserError
from quoin.options import default, option
from quoin.tasks.options import DataOptions, EpochOptions
from quoin.tasks.target import Target

NOTES = ("D1.5-5", "D1.5-5c", "D1.5-4", "M8")
KEYWORDS = ("gradient descent", "convergence", "strong convexity")
SUBJECT = "Optimization"
# Suboptimality over the smaller of the two bounds, at the worst step of all runs. Above 1 a theorem would be false, or
# the code.
TARGET = Target("train_suboptimality_bound_ratio", at_most=1.0)
MONITOR = None  # no step goes up: the last weights are the best


@dataclass(frozen=True)
class Options(DataOptions, EpochOptions):
    data: str = default("breast-cancer", "data set: two classes by name, or csv:PATH, npz:PATH")
    lr_factors: tuple[float, ...] = option(
        (0.1, 0.3, 1.0), "learning rates to compare, in units of 1/L", above=0.0, at_most=1.0
    )
    l2: float = option(0.05, "L2 penalty, without which there may be no minimum", at_least=1e-6, at_most=1e6)
    epochs: int = option(10, "evaluations of the suboptimality", at_least=1, at_most=10**6)
    steps_per_epoch: int = option(50, "optimizer steps between two evaluations", at_least=1, at_most=10**6)


def model(options: Options, data_info: "data.TabularInfo") -> "models.LinearScore":
    if data_info.num_classes != 2:
        raise UserError(f"expected two classes, got {data_info.num_classes}: choose other --data")
    return models.LinearScore(data_info.num_features)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.gradient_descent_bounds import GradientDescentBounds

    if not options.lr_factors:
        raise UserError("--lr-factors expects at least one learning rate, got none: give e.g. 0.1 1")
    data = tasks.load_classification_data(options, device_context)
    return GradientDescentBounds(model(options, data.data_info), data, options)
