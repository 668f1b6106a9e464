"""Polynomials of every degree fitted to a noisy cubic or your table: low degrees underfit, high degrees overfit."""

from dataclasses import dataclass

from quoin import data, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import DataOptions, RunOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("Z3.7", "Z3.25", "Z3.26", "Z3.27")
KEYWORDS = ("overfitting", "bias-variance", "model selection")
SUBJECT = "Linear models"
ROWS = 100  # few enough that high degrees overfit
TARGET = Target(
    "test_rmse", at_most=0.125
)  # the noise in the targets has standard deviation 0.1: no model can do better than that
MONITOR = Monitor("validation_rmse")


@dataclass(frozen=True)
class Options(DataOptions, RunOptions):
    data: str = default("polynomial", "data set: polynomial, or a name, csv:PATH, npz:PATH with numbers as targets")
    max_degree: int = option(
        19, "polynomials of degree 0 to this, in all features, are fitted, one per epoch", at_least=0, at_most=39
    )
    num_rows: int | None = option(
        None,
        "maximum training examples; all others but the test split are for validation; 100 of the built-in data",
        at_least=1,
        at_most=10**9,
    )

    @property
    def num_epochs(self) -> int:
        return self.max_degree + 1


def model(options: Options, data_info: "data.TabularInfo") -> "models.PolynomialRegression":
    return models.PolynomialRegression(options.max_degree, data_info.num_features)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.closed_form import PolynomialDegrees, polynomial_data

    rows = options.num_rows or (
        ROWS if options.data == Options().data else None
    )  # data of somebody's own are all taken
    data = polynomial_data(tasks.load_regression_data(options, device_context), rows, options.max_degree)
    return PolynomialDegrees(model(options, data.data_info).to(device_context.device), data, seed=options.seed)
