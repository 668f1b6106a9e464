"""Softmax (multinomial logistic) regression that classifies handwritten digits."""

from dataclasses import dataclass

from quoin import data, losses, models, tasks, train
from quoin.options import default
from quoin.tasks.options import ClassifierOptions, LossOptions, ScheduleName, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("Z4.1", "Z4.8", "M5", "M12", "D1.3-1", "D1.3-2")
KEYWORDS = ("multinomial logistic", "linear classifier", "digits")
SUBJECT = "Linear models"
TARGET = Target("test_accuracy", at_least=0.945)
MONITOR = None  # convex, with a penalty and a learning rate that falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(LossOptions, ClassifierOptions, SupervisedOptions):
    epochs: int = default(50)
    lr: float = default(0.1)
    schedule: ScheduleName = default("cosine")
    weight_decay: float = default(1e-3, "weight decay, without which separable data have no finite optimum")


def model(options: Options, data_info: "data.TabularInfo") -> "models.SoftmaxRegression":
    return models.SoftmaxRegression(data_info.num_features, data_info.num_classes)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    data = tasks.load_classification_data(options, device_context)
    net = model(options, data.data_info).to(device_context.device)
    optimizer = tasks.make_optimizer(tasks.weight_decay_groups(net, options), options)  # the bias is free
    return tasks.supervised_task(
        tasks.Classification, net, losses.cross_entropy, optimizer, data, options, device_context
    )
