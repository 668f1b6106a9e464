"""Batch normalization: one small CNN with it and without, trained with small batches and with large ones."""

from dataclasses import dataclass

from quoin import data, layers, models, train
from quoin.errors import UserError
from quoin.options import default, option
from quoin.tasks.options import DataOptions, EpochOptions, GradientOptions, ScheduleName
from quoin.tasks.target import Target

NOTES = ("Z8.1", "Z8.2", "Z8.5", "Z8.5c", "Z8.7", "D1.6-12")
KEYWORDS = ("batch normalization", "cnn", "convnet", "image classification")
SUBJECT = "Convolutional networks"
# The training loss, averaged over the run: with batch norm over without, at the batch size at which batch norm helps
# least.
TARGET = Target("test_loss_ratio", at_most=0.85)
MONITOR = None  # all are compared as they end


@dataclass(frozen=True)
class Options(DataOptions, GradientOptions, EpochOptions):
    batch_sizes: tuple[int, ...] = option(
        (2, 8, 32, 128), "examples per optimizer step: two networks for each", at_least=1, at_most=10**9
    )
    epochs: int = default(4)
    lr: float = default(0.05, "initial learning rate, the same for all")
    schedule: ScheduleName = option("cosine", "learning-rate schedule")


def model(options: Options, data_info: "data.TabularInfo") -> "models.ImageClassifier":
    """The network with batch norm; the run keeps the one that was trained with the middle batch size."""
    return layers.add_batch_norm(without(options, data_info))


def without(options: Options, data_info: "data.TabularInfo") -> "models.ImageClassifier":
    """Two blocks of two convolutions and a dense layer: deep enough to be hard to train, and without any
    normalization."""
    from torch import nn

    channels, height, width = data_info.image_shape
    if min(height, width) < 8:
        raise UserError(
            f"expected images of at least 8 x 8 pixels, got {height} x {width}; enlarge them, or give others with "
            "--data"
        )
    features = nn.Sequential(models.vgg_block(2, channels, 16), models.vgg_block(2, 16, 32))
    head = nn.Sequential(nn.Flatten(), nn.Linear(32 * (height // 4) * (width // 4), data_info.num_classes))
    return models.init_image_weights(
        models.ImageClassifier(features, head, data_info.image_shape), data.keyed_generator("weights", options.seed)
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.batchnorm_study import BatchNormStudy

    return BatchNormStudy({"norm": model, "baseline": without}, options, device_context)
