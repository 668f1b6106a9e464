"""What one implementation took: seconds repeat by repeat, peak memory, figures of quality.

A ratio is paired: an implementation's seconds over the first one's in the same repeat, then the median over the
repeats. Load that comes and goes on a machine slows both of a pair and cancels; between the medians of two
implementations it would stay.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["MEBI", "Measurement", "Quartiles"]

MEBI = 2**20


class Quartiles(NamedTuple):
    """The median and the quartiles about it."""

    low: float
    median: float
    high: float

    @classmethod
    def from_values(cls, values: Sequence[float]) -> "Quartiles":
        """Of one value or more.

        >>> Quartiles.from_values([4.0, 1.0, 2.0, 3.0, 5.0])
        Quartiles(low=2.0, median=3.0, high=4.0)
        """
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        return cls(*statistics.quantiles(values, n=4, method="inclusive"))


@dataclass(frozen=True)
class Measurement:
    """What one implementation took, repeat by repeat; or, in `absent`, why there is nothing."""

    name: str
    seconds: tuple[float, ...] = ()
    peak_bytes: int = 0
    figures: dict[str, float] = field(default_factory=dict)
    absent: str = ""

    def ratio_to(self, other: "Measurement") -> Quartiles | None:
        """The paired ratios of seconds, or None where an implementation is absent."""
        if self.absent or other.absent:
            return None
        return Quartiles.from_values([ours / theirs for ours, theirs in zip(self.seconds, other.seconds, strict=True)])
