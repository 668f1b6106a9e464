"""A linear support vector machine that classifies tumours as malignant or benign: hinge loss by SGD."""

from dataclasses import dataclass

from quoin import data, models, tasks, train
from quoin.errors import UserError
from quoin.options import default
from quoin.tasks.options import ScheduleName, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("M7", "M8", "M11", "D5.2-4")
KEYWORDS = ("hinge", "max margin", "support vector machine")
SUBJECT = "Linear models"
TARGET = Target("test_accuracy", at_least=0.95)
GIVES_PROBABILITIES = False  # a score is a side and a distance from the hyperplane, not a probability
MONITOR = None  # convex, with a penalty and a learning rate that falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(SupervisedOptions):
    data: str = default("breast-cancer", "data set: two classes by name, or csv:PATH, npz:PATH")
    epochs: int = default(50)
    lr: float = default(0.05)
    schedule: ScheduleName = default("cosine")
    weight_decay: float = default(1e-2, "weight decay: the width of the margin against its violations")


def model(options: Options, data_info: "data.TabularInfo") -> "models.LinearScore":
    if data_info.num_classes != 2:
        raise UserError(
            f"expected two classes, got {data_info.num_classes}: choose other --data, or train softmax-regression"
        )
    return models.LinearScore(data_info.num_features)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.linear_models import MarginClassification, logits_hinge_loss

    data = tasks.load_classification_data(options, device_context)
    net = model(options, data.data_info).to(device_context.device)
    optimizer = tasks.make_optimizer(tasks.weight_decay_groups(net, options), options)  # the bias is free
    return tasks.supervised_task(MarginClassification, net, logits_hinge_loss, optimizer, data, options, device_context)
