"""The inductive bias of convolutions: a CNN against an MLP, by training set size."""

from dataclasses import dataclass

from quoin import data, models, train
from quoin.options import default, option
from quoin.tasks.options import OptimizerName, ScheduleName, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("D1.1-16", "D1.1-20", "D1.1-21", "D1.1-24", "Z7.1", "Z7.1c")
KEYWORDS = ("translation equivariance", "cnn", "convnet", "mlp", "sample complexity")
SUBJECT = "Convolutional networks"
# The MLP's test error less the CNN's, on average over the numbers of rows.
TARGET = Target("test_cnn_error_reduction", at_least=0.1)
MONITOR = None  # all are compared as they end


@dataclass(frozen=True)
class Options(SupervisedOptions):
    num_rows: tuple[int, ...] = option((50, 100, 200, 400, 800, 1200), "training set sizes to compare", at_least=1)
    shift: int = option(
        1, "random shift of every image of all splits by up to this many pixels; 0 for none", at_least=0, at_most=10**9
    )
    epochs: int = default(10, "passes over the largest training set; smaller ones get as many optimizer steps")
    optimizer: OptimizerName = default("momentum")
    lr: float = default(0.02)
    schedule: ScheduleName = default("cosine")


def model(options: Options, data_info: "data.TabularInfo") -> "models.ImageClassifier":
    """The convolutional network; the run keeps for prediction the one that learned from the most rows, as they are."""
    return models.small_lenet(
        data_info.image_shape, data_info.num_classes, generator=data.keyed_generator("weights", options.seed)
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.inductive_bias import inductive_bias

    return inductive_bias(model, options, device_context)
