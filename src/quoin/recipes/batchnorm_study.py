"""Batch normalisation at work: one small convolutional network with it and without, learning from small batches and from large ones."""

from dataclasses import dataclass

from quoin import data, layers, models, train
from quoin.errors import Mistake
from quoin.options import default, option
from quoin.tasks.options import DataOptions, RunOptions, ScheduleName
from quoin.tasks.target import Target

NOTES = ("Z8.1", "Z8.2", "Z8.5", "Z8.5c", "Z8.7", "D1.6-12")
# The training loss, averaged over the run: with batch norm over without, at the batch size at which batch norm helps least.
TARGET = Target("test_loss_ratio", at_most=0.85)
MONITOR = None  # all are compared as they end


@dataclass(frozen=True)
class Options(DataOptions, RunOptions):
    batch_sizes: tuple[int, ...] = option((2, 8, 32, 128), "examples per update: a pair of networks for each", at_least=1, at_most=10**9)
    epochs: int = default(4)
    lr: float = option(0.05, "the learning rate of the first step, the same for all", above=0.0, at_most=1e38)
    schedule: ScheduleName = option("cosine", "how the learning rate changes over the run")


def model(options: Options, facts):
    """The network with batch norm; the one that learned from batches of a middle size is what the run keeps to predict with."""
    return layers.with_batch_norm(without(options, facts))


def without(options: Options, facts):
    """Two blocks of two convolutions and a dense layer: deep enough to be hard to start, and nothing in it that normalises."""
    from torch import nn

    channels, height, width = facts.feature_shape
    if min(height, width) < 8:
        raise Mistake(f"expected images of at least 8 x 8 pixels, came {height} x {width}; enlarge them, or give others with --data")
    features = nn.Sequential(models.vgg_block(2, channels, 16), models.vgg_block(2, 16, 32))
    head = nn.Sequential(nn.Flatten(), nn.Linear(32 * (height // 4) * (width // 4), facts.num_classes))
    return models.start_image_weights(
        models.ImageClassifier(features, head, facts.feature_shape), data.keyed_generator("weights", options.seed)
    )


def build(options: Options, place: "train.Place"):
    from quoin.tasks.batchnorm_study import BatchNormStudy

    return BatchNormStudy({"norm": model, "plain": without}, options, place)
