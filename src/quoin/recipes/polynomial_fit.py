"""Polynomials of every degree fitted to a noisy cubic: too low a degree underfits, too high a one overfits."""

from dataclasses import dataclass

from quoin import models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import DataOptions, RunOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("Z3.7", "Z3.25", "Z3.26", "Z3.27")
ROWS = 100  # few enough that high degrees overfit
TARGET = Target("test_rmse", at_most=0.125)  # the noise in the targets has standard deviation 0.1: no model can do better than that
MONITOR = Monitor("validation_rmse")


@dataclass(frozen=True)
class Options(DataOptions, RunOptions):
    data: str = default("polynomial", "where the data come from: polynomial, or csv:PATH, npz:PATH with one feature")
    epochs: int = option(20, "polynomials to try, one an epoch: of degree 0, 1, 2, ...", at_least=1, at_most=40)
    rows: int | None = option(
        None, "most rows to fit to, all others but the test's choose the degree; 100 of the built-in data", at_least=1, at_most=10**9
    )


def model(options: Options, facts):
    return models.PolynomialRegression(options.epochs - 1)


def build(options: Options, place: "train.Place"):
    from quoin.tasks.closed_form import PolynomialDegrees, single_feature

    rows = options.rows or (ROWS if options.data == Options().data else None)  # data of somebody's own are all taken
    data = single_feature(tasks.numbers(options, place), rows)
    return PolynomialDegrees(model(options, data.facts).to(place.device), data, seed=options.seed)
