"""Dropout against overfitting: an MLP on digits with label noise, with dropout and without."""

from dataclasses import dataclass, replace

from quoin import data, losses, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import ClassifierOptions, LossOptions, OptimizerName, ScheduleName, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("D1.6-1", "D1.6-2", "D1.6-3", "D1.6-16", "Z5.22", "Z3.20", "Z5.21")
KEYWORDS = ("dropout", "overfitting", "label noise", "regularization")
SUBJECT = "Multilayer perceptrons"
# How much of the generalisation gap (training less test accuracy) dropout takes away: the baseline memorises the random
# labels.
TARGET = Target("test_generalization_gap_reduction", at_least=0.15)
LABEL_NOISE = 0.3  # of the built-in digits, whose own labels are correct
MONITOR = None  # both are compared as they end; to stop either at its best would be a second regularisation


@dataclass(frozen=True)
class Options(LossOptions, ClassifierOptions, SupervisedOptions):
    hidden_dims: tuple[int, ...] = option(
        (256,), "units of each hidden layer, from input to output", at_least=1, at_most=1_000_000
    )
    dropout: float = option(0.5, "dropout probability", at_least=0.0, below=1.0)
    label_noise: float | None = option(
        None,
        "label noise: fraction of random training labels; 0.3 for the digits, none for other data",
        at_least=0.0,
        at_most=1.0,
    )
    optimizer: OptimizerName = default("momentum")
    lr: float = default(0.05)
    schedule: ScheduleName = default("cosine")


def model(options: Options, data_info: "data.TabularInfo") -> "models.MLP":
    sizes = [data_info.num_features, *options.hidden_dims, data_info.num_classes]
    return models.MLP(sizes, dropout=options.dropout, generator=data.keyed_generator("weights", options.seed))


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.comparison import DropoutComparison, add_label_noise

    noise = options.label_noise
    if noise is None:  # labels of somebody's own are theirs to spoil
        noise = LABEL_NOISE if options.data == Options().data else 0.0
    data = add_label_noise(tasks.load_classification_data(options, device_context), noise, options.seed)
    nets = [model(each, data.data_info).to(device_context.device) for each in (options, replace(options, dropout=0.0))]
    optimizers = [tasks.make_optimizer(net.parameters(), options) for net in nets]
    task = tasks.supervised_task(
        DropoutComparison, nets[0], losses.cross_entropy, optimizers[0], data, options, device_context
    )
    task.others = {
        "baseline": tasks.supervised_task(
            tasks.Classification, nets[1], losses.cross_entropy, optimizers[1], data, options, device_context
        )
    }
    task.others["baseline"].batches = task.batches  # it is given the same rows
    task.label_noise = noise
    return task
