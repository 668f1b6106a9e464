"""Linear regression by minibatch SGD that recovers the weights its data were generated with."""

from dataclasses import dataclass

from quoin import data, losses, models, tasks, train
from quoin.options import default
from quoin.tasks.options import LossOptions, ScheduleName, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("Z3.1", "Z3.2", "Z3.3", "Z3.6", "Z3.7", "Z3.8", "Z3.9", "Z3.10", "Z3.11")
KEYWORDS = ("least squares", "ols", "sgd")
SUBJECT = "Linear models"
# In units of the standard error of exact least squares: what noise alone does to w and b stays below 4 in 9,998 runs of
# 10,000.
TARGET = Target("train_max_abs_z_score", at_most=4.0)
# convex, with a learning rate that falls to zero: the last weights are the best, and choosing others by few rows adds
# noise
MONITOR = None


@dataclass(frozen=True)
class Options(LossOptions, SupervisedOptions):
    data: str = default("linear", "data set: a name, or csv:PATH, npz:PATH")
    epochs: int = default(20)
    lr: float = default(0.05)
    schedule: ScheduleName = default("cosine")


def model(options: Options, data_info: "data.TabularInfo") -> "models.LinearRegression":
    return models.LinearRegression(data_info.num_features)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.linear_models import ParameterRecovery

    data = tasks.load_regression_data(options, device_context)
    net = model(options, data.data_info).to(device_context.device)
    optimizer = tasks.make_optimizer(net.parameters(), options)
    return tasks.supervised_task(ParameterRecovery, net, losses.squared_loss, optimizer, data, options, device_context)
