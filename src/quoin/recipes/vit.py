"""A Vision Transformer (ViT) that classifies handwritten digits from embeddings of small patches."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, models, tasks, train
from quoin.errors import UserError
from quoin.options import OwnPart, flag_name, option
from quoin.tasks.fine_tuning_options import FineTuningOptions
from quoin.tasks.options import AttentionImageOptions
from quoin.tasks.target import Target

NOTES = ("Z11.T",)
KEYWORDS = ("vision transformer", "patch embedding", "self-attention", "multi-head")
SUBJECT = "Attention and Transformers"
TARGET = Target("test_accuracy", at_least=0.95)
MONITOR = None  # the learning rate falls to zero: the last weights are the best
SIZES = {  # patch_size, embed_dim, num_heads, num_layers; of the paper, and of DeiT
    "ti16": (16, 192, 3, 12),
    "s16": (16, 384, 6, 12),
    "b16": (16, 768, 12, 12),
    "b32": (32, 768, 12, 12),
    "l16": (16, 1024, 16, 24),
}


@dataclass(frozen=True)
class Options(FineTuningOptions, AttentionImageOptions):
    size: Literal["small", "ti16", "s16", "b16", "b32", "l16"] = option(
        "small", "ViT-Ti/16 to ViT-L/16, with a class token; small: as --patch-size, --embed-dim ... say"
    )
    patch_size: int = option(
        2, "patch size in pixels; must divide the height and width of the images", at_least=1, at_most=1_000_000
    )
    embed_dim: int = option(48, "embedding dimension of a patch", at_least=1, at_most=1_000_000)
    attention: Literal["exact", "linear"] | OwnPart = option(
        "exact",
        "inner attention; your own: a class of nn.Module with forward(query, key, value) of (batch, heads, positions, "
        "head_dim)",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("patch_size", "embed_dim", "num_heads", "num_layers") if self.size != "small" else ():
            if getattr(self, name) != getattr(type(self), name):
                raise UserError(f"{flag_name(name)} is of --size small, got {self.size}: leave one of them out")


def model(options: Options, data_info: "data.TabularInfo") -> "models.ViT":
    from quoin.tasks.own_attention import attention_maker

    small = options.patch_size, options.embed_dim, options.num_heads, options.num_layers
    patch_size, embed_dim, num_heads, num_layers = SIZES.get(options.size, small)
    return models.ViT(
        data_info.image_shape,
        data_info.num_classes,
        patch_size=patch_size,
        embed_dim=embed_dim,
        num_heads=num_heads,
        num_layers=num_layers,
        dropout=options.dropout,
        class_token=options.size != "small",
        norm_eps=1e-5 if options.size == "small" else 1e-6,
        make_attention=attention_maker(
            options.attention,
            embed_dim=embed_dim,
            num_heads=num_heads,
            seed=options.seed,
            causal=False,
            padded=False,
        ),
        generator=data.keyed_generator("weights", options.seed),
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.fine_tuning import VIT
    from quoin.tasks.image_classification import trained_parameters

    return tasks.fine_tuned_classifier(model, options, device_context, VIT, parameters=trained_parameters)
