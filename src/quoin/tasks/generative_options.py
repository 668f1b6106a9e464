"""The options that recipes of generation share, of images and of points. Imports no torch."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from quoin.options import default, option
from quoin.tasks.options import (
    DataOptions,
    EpochOptions,
    OptimizerName,
    OptimizerOptions,
    PointDataOptions,
    ScheduleName,
)

__all__ = ["GenerativeOptions", "PointOptions", "VAEOptions"]


@dataclass(frozen=True)
class GenerativeOptions(DataOptions, OptimizerOptions, EpochOptions):
    """What the recipes of image generation share: Adam under a cosine schedule, and how samples are evaluated at the
    end."""

    data: str = default(
        "digits", "images with classes: digits, glyphs, shapes, mnist, images:FOLDER, npz:PATH, idx:FOLDER, ..."
    )
    epochs: int = default(100)
    batch_size: int = default(64, "images per optimizer step, over all devices together")
    optimizer: OptimizerName = default("adamw")
    lr: float = default(0.002)
    schedule: ScheduleName = default("cosine")
    num_samples: int = option(1000, "images to sample and evaluate at the end", at_least=2, at_most=10**6)
    classifier: str = option(
        "", "run folder of an image classifier whose features evaluate the samples; none trains a small one"
    )


@dataclass(frozen=True)
class VAEOptions(GenerativeOptions):
    """What the recipes of variational autoencoders share."""

    latent_dim: int = option(8, "latent dimension", at_least=1, at_most=10_000)
    decoder: Literal["gaussian", "learned-gaussian", "binomial"] = option(
        "binomial",
        "distribution of pixels given a latent: gaussian with --std, gaussian that learns its std, or binomial "
        "grey levels",
    )
    std: float = option(
        0.15,
        "standard deviation of a gaussian decoder's pixels; the initial one where it is learned",
        above=0.0,
        at_most=1e3,
    )
    num_latent_samples: int = option(
        1, "latent samples for each image of an optimizer step", at_least=1, at_most=10_000
    )
    kl_warmup_ratio: float = option(
        0.1, "KL annealing: fraction of the steps over which the weight of the KL rises to 1", at_least=0.0, at_most=1.0
    )
    num_importance_samples: int = option(
        500, "importance samples for the IWAE likelihood of a test image", at_least=1, at_most=10**6
    )


@dataclass(frozen=True)
class PointOptions(PointDataOptions, OptimizerOptions, EpochOptions):
    """What the recipes share that generate points."""

    data: str = default(
        "moons",
        "points: moons, circles or blobs in the plane, or csv:PATH, npz:PATH of any dimension, or the features of a "
        "name",
    )
    generated: ClassVar[tuple[str, ...]] = ("circles", "blobs")
    demonstration: ClassVar[tuple[str, ...]] = ("num_examples",)
    num_examples: int = option(
        4000, "training points of moons, circles or blobs, and as many test points", at_least=16, at_most=10**7
    )
    epochs: int = default(200, "passes over the points")
    batch_size: int = default(256, "points per optimizer step")
    optimizer: OptimizerName = default("adamw")
    lr: float = default(0.002)
    schedule: ScheduleName = default("cosine")
    hidden_dim: int = option(128, "units of each hidden layer", at_least=1, at_most=100_000)
    num_layers: int = option(3, "hidden layers", at_least=1, at_most=1000)
    ema_decay: float = option(0.99, "EMA decay of the weights", at_least=0.0, below=1.0)
