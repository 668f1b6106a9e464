"""The options that recipes share: groups (a run, an optimizer, data, a text), and what is composed of them with other
defaults.

Imports no torch: `quoin list` and `--help` stay quick.
"""

from dataclasses import dataclass
from typing import Literal

from quoin.options import ValidatedOptions, default, option

__all__ = [
    "AttentionImageOptions",
    "AugmentOptions",
    "CopyOptions",
    "DataOptions",
    "EpochOptions",
    "GenerativeOptions",
    "ImageOptions",
    "LanguageOptions",
    "OptimizerOptions",
    "PointOptions",
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
class RunOptions(ValidatedOptions):
    """What every recipe has. One that passes over no data counts something else, and says in `num_epochs` what that
    comes to."""

    seed: int = option(
        0, "random seed: decides the split, the initial weights and the order of the data", at_least=0, at_most=2**62
    )
    patience: int = option(
        0, "early stopping: epochs without improvement of the validation metric; 0 for none", at_least=0
    )

    @property
    def num_epochs(self) -> int:
        """Epochs that the trainer runs, with an evaluation after each."""
        raise NotImplementedError


@dataclass(frozen=True)
class EpochOptions(RunOptions):
    """What every recipe has that passes over its training data again and again."""

    epochs: int = option(30, "passes over the training data", at_least=1, at_most=10**9)

    @property
    def num_epochs(self) -> int:
        return self.epochs


@dataclass(frozen=True)
class OptimizerOptions(ValidatedOptions):
    """What every recipe has that is trained by gradients."""

    lr: float = option(0.1, "peak learning rate", above=0.0, at_most=1e38)  # float32 holds no more
    batch_size: int = option(32, "examples per optimizer step, over all devices together", at_least=1, at_most=10**9)
    micro_batch_size: int = option(
        0,
        "gradient accumulation over micro-batches of this size, to save memory; 0 for none",
        at_least=0,
        at_most=10**9,
    )
    schedule: ScheduleName = option("constant", "learning-rate schedule")
    warmup_ratio: float = option(
        0.0, "warmup ratio: fraction of the steps over which the learning rate rises", at_least=0.0, below=1.0
    )
    max_grad_norm: float = option(0.0, "gradient clipping: maximum norm of the gradient; 0 for none", at_least=0.0)
    weight_decay: float = option(0.0, "weight decay", at_least=0.0, at_most=1e38)


@dataclass(frozen=True)
class DataOptions(ValidatedOptions):
    """What every recipe has that takes data."""

    data: str = option("digits", "data set: a name, or csv:PATH, npz:PATH, idx:FOLDER, cifar10:FOLDER")
    target: str | None = option(None, "the target column of a CSV file")
    ignore: tuple[str, ...] = option((), "columns of a CSV file to leave out")
    fold: str = option("", "train on one fold of a cross-validation, as 0/5 to 4/5 (see --folds)")


@dataclass(frozen=True)
class SupervisedOptions(DataOptions, OptimizerOptions, EpochOptions):
    """What the recipes of supervised learning share."""


@dataclass(frozen=True)
class AugmentOptions(ValidatedOptions):
    """What every recipe has that learns from images: data augmentation, anew for each image of a training batch."""

    shift: int = option(
        0, "random shift of each training image by up to this many pixels; 0 for none", at_least=0, at_most=10**9
    )
    crop: int = option(0, "random resized crop, up to this many pixels smaller; 0 for none", at_least=0, at_most=10**9)
    flip: bool = option(False, "random horizontal flip, with probability 1/2; not for letters and digits")
    cutout: int = option(
        0, "cutout: erase a random square with sides of this many pixels; 0 for none", at_least=0, at_most=10**9
    )


@dataclass(frozen=True)
class ImageOptions(AugmentOptions, SupervisedOptions):
    """What the recipes of convolutional networks share: momentum, a cosine schedule and random shifts."""

    momentum: float = option(0.9, "momentum", at_least=0.0, below=1.0)
    schedule: ScheduleName = default("cosine")
    shift: int = default(1)


@dataclass(frozen=True)
class AttentionImageOptions(AugmentOptions, SupervisedOptions):
    """What the recipes of attention over the pieces of an image share: AdamW with a warmup and weight decay."""

    num_heads: int = option(4, "attention heads per layer; must divide --embed-dim", at_least=1, at_most=1_000_000)
    num_layers: int = option(2, "attention layers", at_least=1, at_most=1000)
    dropout: float = option(0.1, "dropout probability", at_least=0.0, below=1.0)
    epochs: int = default(40)
    batch_size: int = default(64)
    lr: float = default(3e-3)
    warmup_ratio: float = default(0.1)
    schedule: ScheduleName = default("cosine")
    weight_decay: float = default(0.5)


@dataclass(frozen=True)
class GenerativeOptions(DataOptions, OptimizerOptions, EpochOptions):
    """What the recipes of image generation share: Adam under a cosine schedule, and how samples are evaluated at the
    end."""

    data: str = default("digits", "images with classes: digits, npz:PATH, idx:FOLDER or cifar10:FOLDER")
    epochs: int = default(100)
    batch_size: int = default(64, "images per optimizer step, over all devices together")
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
class PointOptions(OptimizerOptions, EpochOptions):
    """What the recipes share that generate points of the plane."""

    data: Literal["moons", "circles", "blobs"] = option("moons", "distribution of the points")
    num_examples: int = option(4000, "training points, and as many test points", at_least=16, at_most=10**7)
    epochs: int = default(200, "passes over the points")
    batch_size: int = default(256, "points per optimizer step")
    lr: float = default(0.002)
    schedule: ScheduleName = default("cosine")
    hidden_dim: int = option(128, "units of each hidden layer", at_least=1, at_most=100_000)
    num_layers: int = option(3, "hidden layers", at_least=1, at_most=1000)
    ema_decay: float = option(0.99, "EMA decay of the weights", at_least=0.0, below=1.0)


@dataclass(frozen=True)
class SequenceOptions(OptimizerOptions, EpochOptions):
    """What every recipe has that predicts the next token."""

    context_length: int = option(64, "context length in tokens: how far BPTT reaches back", at_least=1, at_most=10**6)
    batch_size: int = default(32, "sequences per optimizer step")
    lr: float = default(0.002)
    schedule: ScheduleName = default("cosine")
    warmup_ratio: float = default(0.05)
    max_grad_norm: float = default(1.0)


@dataclass(frozen=True)
class TextOptions(ValidatedOptions):
    """What every recipe has that learns from a text."""

    data: str = option("topics", "the text: topics, text:PATH, or tokens:PATH as `quoin tokenize` writes it")
    tokenizer: Literal["char", "word", "byte", "bpe"] = option("char", "kind of tokenizer; tokens:PATH has its own")
    vocab_size: int = option(
        2000, "maximum vocabulary size of a word or byte-pair tokenizer", at_least=1, at_most=10**7
    )


@dataclass(frozen=True)
class LanguageOptions(TextOptions, SequenceOptions):
    """What the recipes of language models share."""


@dataclass(frozen=True)
class RecurrentOptions(TextOptions, SequenceOptions):
    """What the recipes of recurrent language models share."""

    embed_dim: int = option(128, "dimension of the token embeddings", at_least=1, at_most=100_000)
    hidden_dim: int = option(256, "units of each layer", at_least=1, at_most=100_000)
    num_layers: int = option(1, "recurrent layers", at_least=1, at_most=1000)
    weight_decay: float = default(0.2)
    dropout: float = option(0.3, "dropout probability", at_least=0.0, below=1.0)
    tie_embeddings: bool = option(
        False, "tie input and output embeddings; --embed-dim and --hidden-dim must then agree"
    )


@dataclass(frozen=True)
class TranslationOptions(OptimizerOptions, EpochOptions):
    """What the recipes of translation share."""

    data: str = option(
        "dates", "sentence pairs: dates, numbers, or tsv:PATH with a source, a tab and its translation in each line"
    )
    num_pairs: int = option(10_000, "different pairs to sample, where they are generated", at_least=10, at_most=100_000)
    source_tokenizer: Literal["char", "word", "byte", "bpe"] = option("char", "tokenizer of the source")
    target_tokenizer: Literal["char", "word", "byte", "bpe"] = option("char", "tokenizer of the target")
    vocab_size: int = option(
        2000, "maximum vocabulary size of a word or byte-pair tokenizer", at_least=1, at_most=10**7
    )
    num_beams: int = option(1, "beams of beam search while translating; 1 is greedy search", at_least=1, at_most=10_000)
    batch_size: int = default(64, "pairs per optimizer step")
    lr: float = default(0.003)
    schedule: ScheduleName = default("cosine")
    warmup_ratio: float = default(0.05)
    max_grad_norm: float = default(1.0)


@dataclass(frozen=True)
class CopyOptions(EpochOptions):
    """What the recipes of the copy task share."""

    sequence_length: int = option(16, "symbols to copy", at_least=1, at_most=100_000)
    num_symbols: int = option(16, "alphabet size: different symbols", at_least=2, at_most=1_000_000)
    embed_dim: int = option(
        64, "dimension of the symbol embeddings and of the residual stream", at_least=2, at_most=100_000
    )
    num_heads: int = option(2, "attention heads per block; must divide --embed-dim", at_least=1, at_most=10_000)
    num_layers: int = option(1, "Transformer blocks", at_least=1, at_most=1000)
    num_features: int = option(128, "orthogonal random features of Performer attention", at_least=1, at_most=1_000_000)
    epochs: int = default(12, "epochs of --num-rows sequences")
    num_rows: int = option(3200, "sequences per epoch, all new", at_least=1, at_most=10**9)
    batch_size: int = option(64, "sequences per optimizer step", at_least=1, at_most=10**9)
    lr: float = option(0.003, "peak learning rate of Adam", above=0.0, at_most=1e38)
