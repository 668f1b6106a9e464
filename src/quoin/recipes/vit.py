"""A Vision Transformer (ViT) that classifies handwritten digits from embeddings of small patches."""

from dataclasses import dataclass

from quoin import data, models, tasks, train
from quoin.options import option
from quoin.tasks.options import AttentionImageOptions
from quoin.tasks.target import Target

NOTES = ("Z11.T",)
KEYWORDS = ("vision transformer", "patch embedding", "self-attention", "multi-head")
SUBJECT = "Attention and Transformers"
TARGET = Target("test_accuracy", at_least=0.95)
MONITOR = None  # the learning rate falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(AttentionImageOptions):
    patch_size: int = option(
        2, "patch size in pixels; must divide the height and width of the images", at_least=1, at_most=1_000_000
    )
    embed_dim: int = option(48, "embedding dimension of a patch", at_least=1, at_most=1_000_000)


def model(options: Options, data_info: "data.TabularInfo") -> "models.ViT":
    return models.ViT(
        data_info.image_shape,
        data_info.num_classes,
        patch_size=options.patch_size,
        embed_dim=options.embed_dim,
        num_heads=options.num_heads,
        num_layers=options.num_layers,
        dropout=options.dropout,
        generator=data.keyed_generator("weights", options.seed),
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    return tasks.attention_image_classifier(model, options, device_context)
