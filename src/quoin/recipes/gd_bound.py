"""Gradient descent held to its promises: on logistic regression, the gap to the minimum beside two bounds on it, step by step."""

from dataclasses import dataclass

from quoin import models, tasks, train
from quoin.errors import Mistake
from quoin.options import default, option
from quoin.tasks.options import DataOptions, RunOptions
from quoin.tasks.target import Target

NOTES = ("D1.5-5", "D1.5-5c", "D1.5-4", "M8")
# The gap over the smaller of the two bounds, at the worst step of all runs. Above 1 a theorem would be false, or the code.
TARGET = Target("train_gap_over_bound", at_most=1.0)
MONITOR = None  # no step goes up: the last weights are the best


@dataclass(frozen=True)
class Options(DataOptions, RunOptions):
    data: str = default("breast-cancer", "where the data come from: two classes by name, or csv:PATH, npz:PATH")
    shares: tuple[float, ...] = option((0.1, 0.3, 1.0), "learning rates to run side by side, in units of 1/L", above=0.0, at_most=1.0)
    l2: float = option(0.05, "pull of the weights towards zero, without which there may be no minimum", at_least=1e-6, at_most=1e6)
    epochs: int = option(10, "looks at the gap", at_least=1, at_most=10**6)
    steps: int = option(50, "updates between two looks", at_least=1, at_most=10**6)


def model(options: Options, facts):
    if facts.num_classes != 2:
        raise Mistake(f"expected two classes, came {facts.num_classes}: choose other --data")
    return models.LinearScore(facts.num_features)


def build(options: Options, place: "train.Place"):
    from quoin.tasks.gradient_descent_bounds import GradientDescentBounds

    if not options.shares:
        raise Mistake("--shares expects at least one learning rate, got none: give e.g. 0.1 1")
    data = tasks.classes(options, place)
    return GradientDescentBounds(model(options, data.facts), data, options)
