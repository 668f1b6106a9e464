"""The metric by which the best model of a run is kept. Imports no torch: recipes name theirs."""

from collections.abc import Collection
from dataclasses import dataclass

from quoin.display import shown
from quoin.errors import UserError, format_value

__all__ = ["Monitor", "check_monitored", "greater_is_better", "monitor_named"]

# Words of metrics' names, the last of which says which of two values is the better: an accuracy should be high, an
# accuracy_gap low.
_GREATER = {"accuracy", "auc", "bleu", "coverage", "density", "f1", "likelihood", "match", "precision", "r2", "recall"}
_GREATER |= {"whole"}  # sequences that are right
_LESS = {"bits", "bias", "distance", "error", "gap", "kl", "loss", "mmd", "perplexity", "ratio", "redundancy", "regret"}
_LESS |= {"rmse", "suboptimality", "variance"}


@shown
@dataclass(frozen=True)
class Monitor:
    """A metric of every epoch, and which of two values of it is the better."""

    metric: str
    greater_is_better: bool = False
    is_required: bool = False  # a run without the metric is a mistake; a recipe's own may find no validation split

    def better(self, new: float, old: float) -> bool:
        return new > old if self.greater_is_better else new < old


def monitor_named(metric: str) -> Monitor:
    """The monitor of a metric such as validation_accuracy; which of two values is the better, its name says."""
    if (greater := greater_is_better(metric)) is None:
        raise UserError(
            f"--monitor: it is not known whether {format_value(metric)} should be high or low; choose another metric, "
            "such as validation_loss"
        )
    return Monitor(metric, greater, is_required=True)


def check_monitored(metric: str, there: Collection[str]) -> None:
    """Raise an error where a run has no such metric, with those it has."""
    if metric not in there:
        known = sorted(name for name in there if greater_is_better(name) is not None)
        raise UserError(
            f"--monitor {format_value(metric)[1:-1]} is no metric of every epoch here: choose one of {', '.join(known)}"
        )


def greater_is_better(metric: str) -> bool | None:
    """Whether the better of two values of a metric is the greater, as the words of its name say; None if none does."""
    words = [word for word in metric.split("_") if word in _GREATER | _LESS]
    return words[-1] in _GREATER if words else None
