"""The options that recipes share: groups (a run, an optimizer, data, a text), and what is composed of them with other
defaults.

Imports no torch: `quoin list` and `--help` stay quick.
"""

from dataclasses import dataclass, fields
from typing import Literal

from quoin.errors import UserError
from quoin.options import ValidatedOptions, default, flag_name, option

__all__ = [
    "AttentionImageOptions",
    "AugmentOptions",
    "ClassifierOptions",
    "CopyOptions",
    "DataOptions",
    "EpochOptions",
    "GenerativeOptions",
    "GradientOptions",
    "ImageOptions",
    "LabelOptions",
    "LanguageOptions",
    "OptimizerName",
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

OptimizerName = Literal["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adadelta", "adam", "adamw", "lion"]
ScheduleName = Literal["constant", "cosine", "one-cycle", "step"]

# The optimizers that have each of the parameters which not all have.
_OPTIMIZERS_WITH: dict[str, tuple[OptimizerName, ...]] = {
    "momentum": ("momentum", "nesterov"),
    "beta1": ("adam", "adamw", "lion"),
    "beta2": ("adam", "adamw", "lion"),
    "alpha": ("rmsprop",),
    "rho": ("adadelta",),
}


@dataclass(frozen=True)
class RunOptions(ValidatedOptions):
    """What every recipe has. One that passes over no data counts something else, and says in `num_epochs` what that
    comes to."""

    seed: int = option(
        0, "random seed: decides the split, the initial weights and the order of the data", at_least=0, at_most=2**62
    )
    patience: int = option(
        0, "early stopping: epochs without improvement of the monitored metric; 0 for none", at_least=0
    )
    monitor: str = option(
        "",
        "metric of every epoch that decides which weights are kept and when --patience ends, such as validation_loss, "
        "of a classifier also validation_accuracy or validation_auc; the recipe's own unless given",
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
class GradientOptions(ValidatedOptions):
    """What every recipe has that follows a gradient: the optimizer and its parameters.

    A parameter that is None is the optimizer's own, as torch has it; one that the chosen optimizer does not have is
    refused.
    """

    optimizer: OptimizerName = option("sgd", "optimizer; another than the recipe's own may need another --lr")
    lr: float = option(0.1, "peak learning rate", above=0.0, at_most=1e38)  # float32 holds no more
    weight_decay: float = option(
        0.0,
        "weight decay: decoupled in adamw and lion, added to the gradient in the others",
        at_least=0.0,
        at_most=1e38,
    )
    momentum: float | None = option(
        None, "momentum, of momentum and nesterov; 0.9 unless given", at_least=0.0, below=1.0
    )
    beta1: float | None = option(None, "beta1, of adam, adamw and lion; 0.9 unless given", at_least=0.0, below=1.0)
    beta2: float | None = option(
        None, "beta2, of adam, adamw and lion; unless given 0.999, and 0.99 for lion", at_least=0.0, below=1.0
    )
    alpha: float | None = option(
        None, "EMA decay of the squared gradient, of rmsprop; 0.99 unless given", at_least=0.0, below=1.0
    )
    rho: float | None = option(
        None, "EMA decay of the squared gradient and step, of adadelta; 0.9 unless given", at_least=0.0, below=1.0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for each in fields(self):
            having = _OPTIMIZERS_WITH.get(each.name, (self.optimizer,))
            if self.optimizer not in having and getattr(self, each.name) != each.default:
                raise UserError(
                    f"{flag_name(each.name)} is of --optimizer {' or '.join(having)}, got {self.optimizer}: choose "
                    f"{'one of these' if len(having) > 1 else 'that'} or leave {flag_name(each.name)} out"
                )

    @property
    def has_own_optimizer(self) -> bool:
        """Whether the optimizer is the recipe's default."""
        return self.optimizer == type(self).optimizer


@dataclass(frozen=True)
class OptimizerOptions(GradientOptions):
    """What every recipe has that is trained on batches of data by gradients."""

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
class LabelOptions(ValidatedOptions):
    """What every recipe has that learns classes by cross-entropy. These shape the training loss alone."""

    label_smoothing: float = option(
        0.0,
        "label smoothing: fraction of each training target spread evenly over all classes; validation and test "
        "losses stay plain cross-entropy",
        at_least=0.0,
        at_most=1.0,
    )
    class_weight: Literal["none", "balanced"] = option(
        "none",
        "weight of each class in the training loss: balanced is n / (classes * rows of the class), from the training "
        "rows; validation and test losses have none",
    )


@dataclass(frozen=True)
class ClassifierOptions(LabelOptions):
    """What every recipe has that classifies rows of numbers or images by cross-entropy."""

    mixup: float = option(
        0.0,
        "mixup: training examples and their targets mixed in pairs by a sample of Beta(alpha, alpha) with this alpha, "
        "for each batch; 0 for none",
        at_least=0.0,
        at_most=1000.0,
    )
    threshold: Literal["0.5", "balanced-accuracy", "f1"] = option(
        "0.5",
        "of two classes, the probability from which on the second is predicted: 0.5, or the one of the highest "
        "balanced accuracy or F1 score on the validation split",
    )


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
class ImageOptions(AugmentOptions, ClassifierOptions, SupervisedOptions):
    """What the recipes of convolutional networks share: momentum, a cosine schedule and random shifts."""

    optimizer: OptimizerName = default("momentum")
    schedule: ScheduleName = default("cosine")
    shift: int = default(1)


@dataclass(frozen=True)
class AttentionImageOptions(AugmentOptions, ClassifierOptions, SupervisedOptions):
    """What the recipes of attention over the pieces of an image share: AdamW with a warmup and weight decay."""

    num_heads: int = option(4, "attention heads per layer; must divide --embed-dim", at_least=1, at_most=1_000_000)
    num_layers: int = option(2, "attention layers", at_least=1, at_most=1000)
    dropout: float = option(0.1, "dropout probability", at_least=0.0, below=1.0)
    epochs: int = default(40)
    batch_size: int = default(64)
    optimizer: OptimizerName = default("adamw")
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
class PointOptions(OptimizerOptions, EpochOptions):
    """What the recipes share that generate points of the plane."""

    data: Literal["moons", "circles", "blobs"] = option("moons", "distribution of the points")
    num_examples: int = option(4000, "training points, and as many test points", at_least=16, at_most=10**7)
    epochs: int = default(200, "passes over the points")
    batch_size: int = default(256, "points per optimizer step")
    optimizer: OptimizerName = default("adamw")
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
    optimizer: OptimizerName = default("adamw")
    beta2: float | None = default(0.99, "beta2, of adam, adamw and lion")
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
    optimizer: OptimizerName = default("adamw")
    beta2: float | None = default(0.99, "beta2, of adam, adamw and lion")
    lr: float = default(0.003)
    schedule: ScheduleName = default("cosine")
    warmup_ratio: float = default(0.05)
    max_grad_norm: float = default(1.0)


@dataclass(frozen=True)
class CopyOptions(GradientOptions, EpochOptions):
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
    optimizer: OptimizerName = default("adam")
    lr: float = default(0.003)
