"""Which rule chooses the threshold between two classes, by the name that options give it."""

from collections.abc import Callable

from torch import Tensor

from quoin.data import PreparedData
from quoin.errors import UserError, format_value
from quoin.metrics import balanced_accuracy_threshold, f1_threshold
from quoin.options import flag_name
from quoin.tasks.options import ClassifierOptions

__all__ = ["check_no_classifier_options", "threshold_rule"]


def threshold_rule(options: ClassifierOptions, data: PreparedData) -> Callable[[Tensor, Tensor], float] | None:
    """The rule that `options` name, from probabilities of the second class and labels of the validation split; None for
    0.5."""
    if options.threshold == "0.5":
        return None
    names = data.data_info.class_names or ()
    if len(names) != 2:
        raise UserError(
            f"--threshold {options.threshold} is for two classes, got {len(names)}: leave it out, the most probable "
            "class is predicted"
        )
    counts = [int((data.validation.targets == label).sum()) for label in (0, 1)]
    if 0 in counts:
        raise UserError(
            f"--threshold {options.threshold}: expected both classes in the validation split, got none of "
            f"{format_value(names[counts.index(0)])} in {sum(counts)} rows; give more rows, or leave it out"
        )
    return {"balanced-accuracy": balanced_accuracy_threshold, "f1": f1_threshold}[options.threshold]


def check_no_classifier_options(options: ClassifierOptions) -> None:
    """Refuse what is for classes alone where the target is a number."""
    for name in ClassifierOptions.__dataclass_fields__:
        if (value := getattr(options, name)) != getattr(ClassifierOptions, name):
            raise UserError(
                f"{flag_name(name)} {value} is for classes, but the target is a number: leave it out, or choose a "
                "--target of classes"
            )
