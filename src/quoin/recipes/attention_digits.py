"""A self-attention classifier of handwritten digits: every row of pixels attends to all rows."""

from dataclasses import dataclass

from quoin import data, models, tasks, train
from quoin.options import option
from quoin.tasks.options import AttentionImageOptions
from quoin.tasks.target import Target

NOTES = ("D2.2-5", "D2.2-6", "D2.2-9", "Z11.17", "D3-4", "D3-6")
KEYWORDS = ("self-attention", "multi-head", "image classification")
SUBJECT = "Attention and Transformers"
TARGET = Target("test_accuracy", at_least=0.96)
MONITOR = None  # the learning rate falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(AttentionImageOptions):
    embed_dim: int = option(64, "embedding dimension of a row", at_least=1, at_most=1_000_000)


def model(options: Options, data_info: "data.TabularInfo") -> "models.AttentionClassifier":
    return models.AttentionClassifier(
        data_info.image_shape,
        data_info.num_classes,
        embed_dim=options.embed_dim,
        num_heads=options.num_heads,
        num_layers=options.num_layers,
        dropout=options.dropout,
        generator=data.keyed_generator("weights", options.seed),
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    return tasks.attention_image_classifier(model, options, device_context)
