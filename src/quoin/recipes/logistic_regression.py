"""Logistic regression that classifies tumours as malignant or benign."""

from dataclasses import dataclass

from quoin import data, losses, models, tasks, train
from quoin.errors import UserError
from quoin.options import default
from quoin.tasks.options import ClassifierOptions, LossOptions, ScheduleName, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("M6", "M7", "M8", "M9", "D1.3-1")
KEYWORDS = ("binary classification", "breast cancer", "sigmoid")
SUBJECT = "Linear models"
TARGET = Target("test_accuracy", at_least=0.95)
MONITOR = None  # convex, with a penalty and a learning rate that falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(LossOptions, ClassifierOptions, SupervisedOptions):
    data: str = default("breast-cancer", "data set: two classes by name, or csv:PATH, npz:PATH")
    epochs: int = default(50)
    lr: float = default(0.2)
    schedule: ScheduleName = default("cosine")
    weight_decay: float = default(1e-2, "weight decay, without which separable data have no finite optimum")


def model(options: Options, data_info: "data.TabularInfo") -> "models.LinearScore":
    if data_info.num_classes != 2:
        raise UserError(
            f"expected two classes, got {data_info.num_classes}: choose other --data, or train softmax-regression"
        )
    return models.LinearScore(data_info.num_features)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    data = tasks.load_classification_data(options, device_context)
    net = model(options, data.data_info).to(device_context.device)
    optimizer = tasks.make_optimizer(tasks.weight_decay_groups(net, options), options)  # the bias is free
    # Of the logits (-s, s), cross-entropy is ln(1 + e^{-m}) with the margin m = 2 y s.
    return tasks.supervised_task(
        tasks.Classification, net, losses.cross_entropy, optimizer, data, options, device_context
    )
