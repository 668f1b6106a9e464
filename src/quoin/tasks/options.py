"""The options that recipes share: groups (a run, an optimizer, data, a text), and what is composed of them with other
defaults.

Imports no torch: `quoin list` and `--help` stay quick.
"""

from dataclasses import dataclass, fields
from typing import ClassVar, Literal, Self

from quoin.errors import UserError, format_value
from quoin.options import OwnPart, ValidatedOptions, default, flag_name, option

__all__ = [
    "AttentionImageOptions",
    "AugmentOptions",
    "ClassifierOptions",
    "DataOptions",
    "DemonstrationOptions",
    "EpochOptions",
    "GradientOptions",
    "ImageOptions",
    "LabelOptions",
    "LossOptions",
    "OptimizerName",
    "OptimizerOptions",
    "PointDataOptions",
    "RunOptions",
    "ScheduleName",
    "SupervisedOptions",
]

OptimizerName = (
    Literal["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adadelta", "adam", "adamw", "lion"] | OwnPart
)
ScheduleName = Literal["constant", "cosine", "one-cycle", "step"] | OwnPart

# The optimizers that have each of the parameters which not all have.
_OPTIMIZERS_WITH: dict[str, tuple[str, ...]] = {
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

    def resolved(self) -> Self:
        """The options as a new run records them: what they leave to a file is looked up."""
        return self


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

    optimizer: OptimizerName = option(
        "sgd",
        "optimizer; another than the recipe's own may need another --lr; your own: a class or function of (parameters, "
        "lr=...) that gives a torch.optim.Optimizer",
    )
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
    schedule: ScheduleName = option(
        "constant",
        "learning-rate schedule; your own: a function of the fraction of the run that is done, from 0 to 1, that gives "
        "the factor of --lr",
    )
    warmup_ratio: float = option(
        0.0, "warmup ratio: fraction of the steps over which the learning rate rises", at_least=0.0, below=1.0
    )
    max_grad_norm: float = option(0.0, "gradient clipping: maximum norm of the gradient; 0 for none", at_least=0.0)


@dataclass(frozen=True)
class DataOptions(ValidatedOptions):
    """What every recipe has that takes data."""

    data: str = option(
        "digits",
        "tables or images: a name, csv:PATH, tsv:, parquet:, jsonl:, npz:, images:FOLDER, ...; `quoin list` shows all",
    )
    target: tuple[str, ...] = option((), "the target column of a table; several for a regression with several outputs")
    ignore: tuple[str, ...] = option((), "columns of a table to leave out")
    missing: Literal["error", "mean"] = option(
        "error",
        "missing cells of a table: refuse them, or fill in the mean of the training rows and add a feature that says "
        "where",
    )
    test_data: str = option("", "a test set of its own, named as for --data; never seen in training or choosing")
    image_size: int = option(
        0,
        "resize the pictures of images:FOLDER to this height and width, the middle kept; 0 for the size that all share",
        at_least=0,
        at_most=10_000,
    )
    image_channels: int | None = option(
        None, "channels of images:FOLDER, 1 for grey or 3 for colour; 3 unless all are grey", at_least=1, at_most=3
    )
    skip_broken: bool = option(False, "leave out pictures of images:FOLDER that cannot be read")
    fold: str = option("", "train on one fold of a cross-validation, as 0/5 to 4/5 (see --folds)")


_OF_OWN_DATA = {each.name for each in fields(DataOptions)} - {"data"}  # generated data have none of these


@dataclass(frozen=True)
class DemonstrationOptions(ValidatedOptions):
    """What a recipe has whose default data are generated under options of their own, `demonstration`: with other data
    these are refused."""

    data: str = option("", "data set")
    generated: ClassVar[tuple[str, ...]] = ()  # other names whose data are generated under the same options
    demonstration: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for each in fields(self):
            if each.name in _OF_OWN_DATA and self.is_demonstration and getattr(self, each.name) != each.default:
                raise UserError(
                    f"{flag_name(each.name)} is of data by name or from a file, but --data {self.data} is generated: "
                    "leave it out, or give other --data"
                )
            if (
                each.name in self.demonstration
                and not self.is_demonstration
                and getattr(self, each.name) != each.default
            ):
                names = " or ".join((type(self).data, *self.generated))
                raise UserError(
                    f"{flag_name(each.name)} is of the data that --data {names} generates, got --data "
                    f"{format_value(self.data, 200)}: leave it out"
                )

    @property
    def is_demonstration(self) -> bool:
        """Whether the data are the recipe's own."""
        return self.data in (type(self).data, *self.generated)


@dataclass(frozen=True)
class PointDataOptions(DemonstrationOptions):
    """What every recipe has that learns the distribution of points: rows of numbers without a target."""

    data: str = option("mixture", "points: mixture, or csv:PATH, npz:PATH of any dimension, or the features of a name")
    ignore: tuple[str, ...] = option((), "columns of a CSV file to leave out")


@dataclass(frozen=True)
class SupervisedOptions(DataOptions, OptimizerOptions, EpochOptions):
    """What the recipes of supervised learning share."""


@dataclass(frozen=True)
class LossOptions(ValidatedOptions):
    """What every recipe has whose loss may be the user's own."""

    loss: OwnPart = option(
        OwnPart(""),
        "your own loss in place of the recipe's, to train and to evaluate by: a function of (outputs, targets) that "
        "gives a loss for each example, or their mean",
    )


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
class ImageOptions(LossOptions, AugmentOptions, ClassifierOptions, SupervisedOptions):
    """What the recipes of convolutional networks share: momentum, a cosine schedule and random shifts."""

    optimizer: OptimizerName = default("momentum")
    schedule: ScheduleName = default("cosine")
    shift: int = default(1)


@dataclass(frozen=True)
class AttentionImageOptions(LossOptions, AugmentOptions, ClassifierOptions, SupervisedOptions):
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
