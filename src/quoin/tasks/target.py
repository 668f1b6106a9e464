"""What a default run of a recipe must reach on nine of ten seeds."""

from dataclasses import dataclass
from typing import Any

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """A bound on one final metric.

    >>> Target("test_accuracy", at_least=0.96).met(0.97)
    True
    >>> str(Target("train_max_abs_z_score", at_most=4))
    'train_max_abs_z_score at most 4'
    """

    metric: str
    at_least: float | None = None
    at_most: float | None = None

    def met(self, value: float) -> bool:
        """Whether `value` keeps the bound; NaN does not."""
        low = self.at_least is None or value >= self.at_least
        return low and (self.at_most is None or value <= self.at_most)

    @property
    def bound(self) -> str:
        return f"at least {self.at_least:g}" if self.at_least is not None else f"at most {self.at_most:g}"

    def verdict(self, value: float) -> dict[str, Any]:
        """What a result says of the target."""
        return {"metric": self.metric, "bound": self.bound, "value": value, "met": self.met(value)}

    def __str__(self) -> str:
        return f"{self.metric} {self.bound}"
