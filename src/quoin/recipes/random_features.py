"""Ridge regression on ever more random features of a kernel: it approaches ridge regression with the kernel itself."""

from dataclasses import dataclass

from quoin import models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import DataOptions, RunOptions
from quoin.tasks.target import Target

NOTES = ("D4.1-13", "D4.1-14", "X14")
# How far the predictions are from the kernel's, root mean square over rows and draws, in parts of the kernel's own spread. The error
# falls as 1/√D: from about 0.4 at 16 features to a sixteenth of it at 4096.
TARGET = Target("test_gap", at_most=0.025)
MONITOR = None  # more features are better: the last fit is kept


@dataclass(frozen=True)
class Options(DataOptions, RunOptions):
    data: str = default("diabetes", "where the data come from: a name, or csv:PATH, npz:PATH with numbers as targets")
    epochs: int = option(9, "numbers of features to try, one an epoch, each twice the last", at_least=1, at_most=16)
    first: int = option(16, "features in the first epoch", at_least=1, at_most=4096)
    draws: int = option(10, "draws of the features for each number", at_least=1, at_most=1000)
    gamma: float = option(0.03, "γ of the kernel exp(-γ |x - y|²), of scaled features", above=0.0, at_most=1e6)
    decay: float = option(0.01, "pull of the weights towards zero", at_least=1e-9, at_most=1e9)
    rows: int = option(1000, "most rows to fit to: the kernel's own fit costs their cube", at_least=2, at_most=10_000)


def model(options: Options, facts):
    return models.FourierRegression(facts.num_features, options.first * 2 ** (options.epochs - 1), options.gamma)


def build(options: Options, place: "train.Place"):
    from quoin.tasks.closed_form import RandomFeatures

    data = tasks.numbers(options, place)
    return RandomFeatures(
        model(options, data.facts),
        data,
        first=options.first,
        draws=options.draws,
        gamma=options.gamma,
        decay=options.decay,
        rows=options.rows,
        seed=options.seed,
    )
