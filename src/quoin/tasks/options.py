"""The options that recipes share: parts (a run, an optimizer, data, a text), and kinds composed of them, which change defaults.

Imports no torch: `quoin list` and `--help` stay quick.
"""

from dataclasses import dataclass
from typing import Literal

from quoin.options import Checked, default, option

__all__ = [
    "AttendingImageOptions",
    "AugmentOptions",
    "CopyOptions",
    "DataOptions",
    "GenerativeOptions",
    "ImageOptions",
    "LanguageOptions",
    "OptimizerOptions",
    "PointsOptions",
    "RecurrentOptions",
    "RunOptions",
    "ScheduleName",
    "SequenceOptions",
    "SupervisedOptions",
    "TextOptions",
    "TranslationOptions",
    "VAEOptions",
]

ScheduleName = Literal["constant", "cosine", "one-cycle", "step"]


@dataclass(frozen=True)
class RunOptions(Checked):
    """What every recipe has."""

    seed: int = option(0, "decides the split, the first weights and the order of the data", at_least=0, at_most=2**62)
    epochs: int = option(30, "passes over the training data", at_least=1, at_most=10**9)
    patience: int = option(0, "stop after so many epochs without a better validation; 0 never does", at_least=0)


@dataclass(frozen=True)
class OptimizerOptions(Checked):
    """What every recipe has that follows a gradient."""

    lr: float = option(0.1, "the learning rate at its largest", above=0.0, at_most=1e38)  # float32 holds no more
    batch_size: int = option(32, "examples per update, over all devices together", at_least=1, at_most=10**9)
    micro_batch: int = option(0, "work the batch off in pieces of this size, to save memory; 0 takes it whole", at_least=0, at_most=10**9)
    schedule: ScheduleName = option("constant", "how the learning rate changes over the run")
    warm_up: float = option(0.0, "share of the run over which the learning rate rises to its full size", at_least=0.0, below=1.0)
    clip: float = option(0.0, "bound on the norm of the gradient; 0 sets none", at_least=0.0)
    weight_decay: float = option(0.0, "pull of the weights towards zero", at_least=0.0, at_most=1e38)


@dataclass(frozen=True)
class DataOptions(Checked):
    """What every recipe has that takes data."""

    data: str = option("digits", "where the data come from: a name, or csv:PATH, npz:PATH, idx:FOLDER, cifar10:FOLDER")
    target: str | None = option(None, "the target column of a CSV file")
    ignore: tuple[str, ...] = option((), "columns of a CSV file to leave out")
    fold: str = option("", "train on one fold of a cross-validation, as 0/5 to 4/5 (see --folds)")


@dataclass(frozen=True)
class SupervisedOptions(DataOptions, OptimizerOptions, RunOptions):
    """What the recipes share that learn labels or numbers from examples."""


@dataclass(frozen=True)
class AugmentOptions(Checked):
    """What every recipe has that learns from images: how each of a training batch is changed at random."""

    shift: int = option(0, "move each training image by up to so many pixels; 0 leaves it", at_least=0, at_most=10**9)
    crop: int = option(0, "stretch a window of it that is up to so many pixels smaller; 0 leaves it", at_least=0, at_most=10**9)
    flip: bool = option(False, "mirror it left to right, every other time; not for letters and digits")
    cutout: int = option(0, "cover a square of so many pixels a side in it; 0 covers nothing", at_least=0, at_most=10**9)


@dataclass(frozen=True)
class ImageOptions(AugmentOptions, SupervisedOptions):
    """What the recipes of convolutional networks share: momentum and a falling rate, on images that move a little."""

    momentum: float = option(0.9, "share of the last step that is kept", at_least=0.0, below=1.0)
    schedule: ScheduleName = default("cosine")
    shift: int = default(1)


@dataclass(frozen=True)
class AttendingImageOptions(AugmentOptions, SupervisedOptions):
    """What the recipes share in which the pieces of an image look at each other: AdamW with a warm-up and a pull towards zero."""

    heads: int = option(4, "heads of each attention; they share the width out", at_least=1, at_most=1_000_000)
    layers: int = option(2, "attentions, one after another", at_least=1, at_most=1000)
    dropout: float = option(0.1, "probability with which a feature is silent in training", at_least=0.0, below=1.0)
    epochs: int = default(40)
    batch_size: int = default(64)
    lr: float = default(3e-3)
    warm_up: float = default(0.1)
    schedule: ScheduleName = default("cosine")
    weight_decay: float = default(0.5)


@dataclass(frozen=True)
class GenerativeOptions(DataOptions, OptimizerOptions, RunOptions):
    """What the recipes share that learn to draw images: Adam at a falling rate, and how its images are judged at the end."""

    data: str = default("digits", "images with classes: digits, npz:PATH, idx:FOLDER or cifar10:FOLDER")
    epochs: int = default(100)
    batch_size: int = default(64, "images per update, over all devices together")
    lr: float = default(0.002)
    schedule: ScheduleName = default("cosine")
    samples: int = option(1000, "images to draw at the end and to judge", at_least=2, at_most=10**6)
    classifier: str = option("", "the folder of a finished image classifier whose features judge the images; none trains a small one")


@dataclass(frozen=True)
class VAEOptions(GenerativeOptions):
    """What the recipes of variational autoencoders share."""

    latent: int = option(8, "latent coordinates", at_least=1, at_most=10_000)
    decoder: Literal["gaussian", "learned", "bernoulli"] = option(
        "bernoulli", "the law of pixels given a code: gaussian with --std, gaussian that learns its std, or counts of coin tosses"
    )
    std: float = option(0.15, "standard deviation of a gaussian decoder's pixels; one that learns it starts here", above=0.0, at_most=1e3)
    draws: int = option(1, "draws of the code for each image of an update", at_least=1, at_most=10_000)
    kl_warm_up: float = option(0.1, "share of the run over which the divergence gains its full weight", at_least=0.0, at_most=1.0)
    evidence_draws: int = option(500, "draws for the importance-weighted likelihood of a test image", at_least=1, at_most=10**6)


@dataclass(frozen=True)
class PointsOptions(OptimizerOptions, RunOptions):
    """What the recipes share that learn to draw points of the plane."""

    data: Literal["moons", "circles", "blobs"] = option("moons", "the law of the points")
    examples: int = option(4000, "points to learn from, and as many again to judge by", at_least=16, at_most=10**7)
    epochs: int = default(200, "passes over the points")
    batch_size: int = default(256, "points per update")
    lr: float = default(0.002)
    schedule: ScheduleName = default("cosine")
    hidden: int = option(128, "units of each hidden layer", at_least=1, at_most=100_000)
    depth: int = option(3, "hidden layers", at_least=1, at_most=1000)
    average: float = option(0.99, "how much of its last value a moving average of the weights keeps at an update", at_least=0.0, below=1.0)


@dataclass(frozen=True)
class SequenceOptions(OptimizerOptions, RunOptions):
    """What every recipe has that learns what comes next."""

    context: int = option(64, "tokens through which gradients reach back", at_least=1, at_most=10**6)
    batch_size: int = default(32, "sequences per update, read side by side")
    lr: float = default(0.002)
    schedule: ScheduleName = default("cosine")
    warm_up: float = default(0.05)
    clip: float = default(1.0)


@dataclass(frozen=True)
class TextOptions(Checked):
    """What every recipe has that learns from a text."""

    data: str = option("topics", "the text: topics, text:PATH, or tokens:PATH as `quoin tokenize` writes it")
    vocabulary: Literal["characters", "words", "bytes", "bpe"] = option("characters", "what a token is; tokens:PATH brings its own")
    vocabulary_size: int = option(2000, "the most tokens of a vocabulary of words or byte pairs", at_least=1, at_most=10**7)


@dataclass(frozen=True)
class LanguageOptions(TextOptions, SequenceOptions):
    """What the recipes of language models share."""


@dataclass(frozen=True)
class RecurrentOptions(TextOptions, SequenceOptions):
    """What the recipes of recurrent language models share."""

    width: int = option(128, "numbers that stand for a token", at_least=1, at_most=100_000)
    hidden: int = option(256, "units of each layer", at_least=1, at_most=100_000)
    layers: int = option(1, "layers of cells", at_least=1, at_most=1000)
    weight_decay: float = default(0.2)
    dropout: float = option(0.3, "share of the numbers between layers that is left out while learning", at_least=0.0, below=1.0)
    tied: bool = option(False, "score the next token by the codes of tokens; width and hidden must then agree")


@dataclass(frozen=True)
class TranslationOptions(OptimizerOptions, RunOptions):
    """What the recipes of translation share."""

    data: str = option("dates", "the pairs: dates, numbers, or tsv:PATH with a source, a tab and its translation in each line")
    pairs: int = option(10_000, "different pairs to draw, where they are generated", at_least=10, at_most=100_000)
    source_vocabulary: Literal["characters", "words", "bytes", "bpe"] = option("characters", "what a token of the source is")
    target_vocabulary: Literal["characters", "words", "bytes", "bpe"] = option("characters", "what a token of the target is")
    vocabulary_size: int = option(2000, "the most tokens of a vocabulary of words or byte pairs", at_least=1, at_most=10**7)
    beam: int = option(1, "sequences that are followed at once while translating; 1 takes the likeliest token", at_least=1, at_most=10_000)
    batch_size: int = default(64, "pairs per update")
    lr: float = default(0.003)
    schedule: ScheduleName = default("cosine")
    warm_up: float = default(0.05)
    clip: float = default(1.0)


@dataclass(frozen=True)
class CopyOptions(RunOptions):
    """What the recipes of copying share."""

    length: int = option(16, "symbols to be copied", at_least=1, at_most=100_000)
    symbols: int = option(16, "different symbols", at_least=2, at_most=1_000_000)
    width: int = option(64, "numbers that stand for a symbol on its way", at_least=2, at_most=100_000)
    heads: int = option(2, "attention heads of a block; they divide the width", at_least=1, at_most=10_000)
    depth: int = option(1, "blocks of attention and perceptron", at_least=1, at_most=1000)
    features: int = option(128, "random features of Performer's attention, in orthogonal directions", at_least=1, at_most=1_000_000)
    epochs: int = default(12, "times that `rows` sequences are read")
    rows: int = option(3200, "sequences an epoch, all new", at_least=1, at_most=10**9)
    batch_size: int = option(64, "sequences per update", at_least=1, at_most=10**9)
    lr: float = option(0.003, "the largest learning rate of Adam", above=0.0, at_most=1e38)
