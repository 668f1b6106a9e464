"""The metric by which the best model of a run is kept. Imports no torch: recipes name theirs."""

from dataclasses import dataclass

__all__ = ["Monitor"]


@dataclass(frozen=True)
class Monitor:
    """A metric of every epoch, and which of two values of it is the better."""

    metric: str
    greater_is_better: bool = False

    def better(self, new: float, old: float) -> bool:
        return new > old if self.greater_is_better else new < old
