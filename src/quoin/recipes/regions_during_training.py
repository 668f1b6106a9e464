"""The linear regions of a small ReLU network on the plane, counted exactly after every epoch."""

from dataclasses import dataclass

from quoin import data, losses, models, tasks, train
from quoin.errors import UserError
from quoin.options import default, option
from quoin.tasks.options import OptimizerName, ScheduleName, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("D1.1-14",)
KEYWORDS = ("linear regions", "expressivity", "activation patterns")
SUBJECT = "Expressivity"
# Biases start at zero, so that the breakpoints of the first layer are lines through one point; training moves them
# apart.
TARGET = Target("test_region_growth", at_least=3.0)
MONITOR = None  # the counts are of the network as it ends


@dataclass(frozen=True)
class Options(SupervisedOptions):
    data: str = default("moons", "data set: moons, circles, blobs, or csv:PATH, npz:PATH with two features")
    hidden_dims: tuple[int, ...] = option(
        (16, 16), "units of each hidden layer, from input to output", at_least=1, at_most=256
    )
    epochs: int = option(40, "passes over the training data", at_least=1, at_most=10**4)
    optimizer: OptimizerName = default("adam")
    lr: float = default(0.01)
    schedule: ScheduleName = default("cosine")


def model(options: Options, data_info: "data.TabularInfo") -> "models.MLP":
    if data_info.num_features != 2:
        raise UserError(
            f"expected data with two features to plot regions over, got {data_info.num_features}; leave two columns"
        )
    return models.MLP(
        [2, *options.hidden_dims, data_info.num_classes], generator=data.keyed_generator("weights", options.seed)
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.linear_regions import RegionCounting

    data = tasks.load_classification_data(options, device_context)
    net = model(options, data.data_info).to(device_context.device)
    optimizer = tasks.make_optimizer(net.parameters(), options)
    task = tasks.supervised_task(
        tasks.Classification, net, losses.cross_entropy, optimizer, data, options, device_context
    )
    return RegionCounting(task, epochs=options.epochs, hidden=options.hidden_dims)
