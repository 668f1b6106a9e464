"""Nadaraya-Watson kernel regression with four kernels, each bandwidth chosen by leave-one-out."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from quoin import data, layers, models, tasks, tensor, train
from quoin.options import default, option
from quoin.tasks.options import DataOptions, DemonstrationOptions, RunOptions
from quoin.tasks.target import Target

if TYPE_CHECKING:
    from torch import nn

NOTES = ("Z11.7", "Z11.8", "Z11.9", "Z11.10", "ZE22")
KEYWORDS = ("kernel regression", "kernel smoothing", "bandwidth")
SUBJECT = "Kernels and non-parametric methods"
# The curve against the truth without noise: half the noise that each value has. Over seeds 100 to 119 it is 0.137 ±
# 0.035, at most 0.232; the mean of all values has 0.89.
TARGET = Target("test_rmse", at_most=0.25)
MONITOR = None  # a bandwidth is kept only where it predicts better, so the last ones are the best


@dataclass(frozen=True)
class Options(DataOptions, DemonstrationOptions, RunOptions):
    demonstration: ClassVar[tuple[str, ...]] = ("noise",)
    data: str = default("noisy-sine", "data set: noisy-sine, or a name, csv:PATH, npz:PATH with numbers as targets")
    num_points: int | None = option(
        None, "values of noisy-sine, 200 unless given; of other data at most 2000", at_least=3, at_most=10**4
    )
    noise: float = option(0.5, "standard deviation of the noise of --data noisy-sine", at_least=0.0, at_most=1e6)
    num_bandwidths: int = option(
        60, "bandwidths to try, one per epoch, down to 1/250 of the widest", at_least=1, at_most=10**4
    )

    @property
    def num_epochs(self) -> int:
        return self.num_bandwidths


def model(options: Options, data_info: "data.TabularInfo | None") -> "nn.ModuleDict | models.NadarayaWatsonRegression":
    """One estimator for each kernel; its bandwidth is its only parameter. With data, a model that keeps their rows."""
    import torch
    from torch import nn

    from quoin.tasks.kernel_regression import WIDEST
    from quoin.tasks.kernel_regression_data import MOST_ROWS

    kernels = {
        "gaussian": tensor.GaussianKernel(),
        "boxcar": tensor.BoxcarKernel(),
        "triangular": tensor.TriangularKernel(),
        "epanechnikov": tensor.EpanechnikovKernel(),
    }
    widest = torch.tensor(WIDEST, dtype=torch.float64)
    pools = {name: layers.NadarayaWatson(kernel, widest.clone()) for name, kernel in kernels.items()}
    if data_info is None:
        return nn.ModuleDict(pools)
    max_rows = min(data_info.num_rows, options.num_points or MOST_ROWS)
    return models.NadarayaWatsonRegression(pools, max_rows, data_info.num_features)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.kernel_regression import KernelRegression
    from quoin.tasks.kernel_regression_data import KernelRegressionTask

    if options.is_demonstration:
        return KernelRegression(model(options, None), options)
    data = tasks.load_regression_data(options, device_context)
    net: Any = model(options, data.data_info)
    return KernelRegressionTask(net, data, num_bandwidths=options.num_bandwidths, seed=options.seed)
