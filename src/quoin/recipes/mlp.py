"""A multilayer perceptron that classifies handwritten digits."""

from dataclasses import dataclass

from quoin import data, losses, models, tasks, train
from quoin.options import default
from quoin.tasks.mlp_options import MLPOptions
from quoin.tasks.options import ClassifierOptions, LossOptions, OptimizerName, ScheduleName, SupervisedOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("D1-18", "D1-20", "D1-22", "Z5.3", "Z4.8", "D1.3-1", "D1.3-4", "Z8.6")
KEYWORDS = ("mnist", "digits", "classification", "multilayer perceptron")
SUBJECT = "Multilayer perceptrons"
TARGET = Target("test_accuracy", at_least=0.96)
MONITOR = Monitor("validation_loss")


@dataclass(frozen=True)
class Options(MLPOptions, LossOptions, ClassifierOptions, SupervisedOptions):
    optimizer: OptimizerName = default("momentum")
    lr: float = default(0.05)
    schedule: ScheduleName = default("cosine")


def model(options: Options, data_info: "data.TabularInfo") -> "models.MLP":
    return tasks.make_mlp(data_info.num_features, data_info.num_classes, options, seed=options.seed)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    data = tasks.load_classification_data(options, device_context)
    net = model(options, data.data_info).to(device_context.device)
    optimizer = tasks.make_optimizer(net.parameters(), options)
    return tasks.supervised_task(
        tasks.Classification, net, losses.cross_entropy, optimizer, data, options, device_context
    )
