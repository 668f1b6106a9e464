"""Ridge regression on random Fourier features: with more of them it converges to kernel ridge regression."""

from dataclasses import dataclass

from quoin import data, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import DataOptions, RunOptions
from quoin.tasks.target import Target

NOTES = ("D4.1-13", "D4.1-14", "X14")
KEYWORDS = ("rff", "random fourier features", "kernel ridge", "rbf")
SUBJECT = "Kernels and non-parametric methods"
# RMSE between the predictions and those of kernel ridge regression over rows and repeats, in units of the latter's
# standard deviation. It falls as 1/√D: from about 0.4 at 16 features to a sixteenth of it at 4096.
TARGET = Target("test_kernel_prediction_rmse", at_most=0.025)
MONITOR = None  # more features are better: the last fit is kept


@dataclass(frozen=True)
class Options(DataOptions, RunOptions):
    data: str = default("diabetes", "data set: a name, or csv:PATH, npz:PATH with numbers as targets")
    num_doublings: int = option(
        8, "how often the number of features doubles, once per epoch after the first", at_least=0, at_most=15
    )
    min_features: int = option(16, "features in the first epoch", at_least=1, at_most=4096)
    num_repeats: int = option(
        10, "repeats, each with newly sampled features, for each number of features", at_least=1, at_most=1000
    )
    gamma: float = option(0.03, "γ of the kernel exp(-γ |x - y|²), of scaled features", above=0.0, at_most=1e6)
    l2: float = option(0.01, "L2 penalty of ridge regression", at_least=1e-9, at_most=1e9)
    num_rows: int = option(
        1000, "maximum number of training examples: kernel ridge regression is cubic in it", at_least=2, at_most=10_000
    )

    @property
    def num_epochs(self) -> int:
        return self.num_doublings + 1


def model(options: Options, data_info: "data.TabularInfo") -> "models.FourierRegression":
    return models.FourierRegression(
        data_info.num_features, options.min_features * 2**options.num_doublings, options.gamma
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.closed_form import RandomFeatures

    data = tasks.load_regression_data(options, device_context)
    return RandomFeatures(
        model(options, data.data_info),
        data,
        min_features=options.min_features,
        num_repeats=options.num_repeats,
        gamma=options.gamma,
        l2=options.l2,
        num_rows=options.num_rows,
        seed=options.seed,
    )
