"""What is asked of a benchmark: bounds on seconds, ratios, memory and figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from quoin.bench.measurement import MEBI, Measurement, Quartiles

__all__ = [
    "Both",
    "FigureAboveFirst",
    "FigureAtLeast",
    "FigureAtMost",
    "MemoryWithin",
    "NoMoreMemoryThan",
    "RatioAtLeast",
    "SameFigureAs",
    "SecondsAtMost",
    "Target",
    "TimesAsQuickAs",
]


class Target(Protocol):
    """A bound on one number of an implementation."""

    def text(self) -> str: ...

    def met(self, measurement: Measurement, measurements: Sequence[Measurement]) -> bool | None:
        """Whether the bound holds; None where an implementation is absent."""
        ...


@dataclass(frozen=True)
class RatioAtLeast:
    """The implementation takes at least `bound` times as long as the first."""

    bound: float

    def text(self) -> str:
        return f"ratio >= {self.bound:g}"

    def met(self, measurement: Measurement, measurements: Sequence[Measurement]) -> bool | None:
        ratio = measurement.ratio_to(measurements[0])
        return None if ratio is None else ratio.median >= self.bound


@dataclass(frozen=True)
class TimesAsQuickAs:
    """The implementation `other` takes at least `bound` times as long as this one."""

    other: str
    bound: float

    def text(self) -> str:
        return f"{self.bound:g} times as quick as {self.other}"

    def met(self, measurement: Measurement, measurements: Sequence[Measurement]) -> bool | None:
        ratio = next(each for each in measurements if each.name == self.other).ratio_to(measurement)
        return None if ratio is None else ratio.median >= self.bound


@dataclass(frozen=True)
class SecondsAtMost:
    """A repeat takes at most `bound` seconds, in the median."""

    bound: float

    def text(self) -> str:
        return f"seconds <= {self.bound:g}"

    def met(self, measurement: Measurement, measurements: Sequence[Measurement]) -> bool | None:
        return None if measurement.absent else Quartiles.from_values(measurement.seconds).median <= self.bound


@dataclass(frozen=True)
class NoMoreMemoryThan:
    """The peak of this implementation is at most that of `other`, up to the sixteenth by which runs of one program
    differ.
    """

    other: str

    def text(self) -> str:
        return f"no more memory than {self.other}"

    def met(self, measurement: Measurement, measurements: Sequence[Measurement]) -> bool | None:
        other = next(each for each in measurements if each.name == self.other)
        return None if measurement.absent or other.absent else measurement.peak_bytes <= other.peak_bytes * 17 / 16


@dataclass(frozen=True)
class FigureAtMost:
    """The figure `name` is at most `bound`."""

    name: str
    bound: float

    def text(self) -> str:
        return f"{self.name} <= {self.bound:g}"

    def met(self, measurement: Measurement, measurements: Sequence[Measurement]) -> bool | None:
        return None if measurement.absent else measurement.figures[self.name] <= self.bound


@dataclass(frozen=True)
class SameFigureAs:
    """The figure `name` is that of the implementation `other`, exactly."""

    other: str
    name: str

    def text(self) -> str:
        return f"the {self.name} of {self.other}"

    def met(self, measurement: Measurement, measurements: Sequence[Measurement]) -> bool | None:
        other = next(each for each in measurements if each.name == self.other)
        if measurement.absent or other.absent:
            return None
        return measurement.figures[self.name] == other.figures[self.name]


@dataclass(frozen=True)
class FigureAboveFirst:
    """The figure `name` is larger than the first implementation's."""

    name: str

    def text(self) -> str:
        return f"more {self.name} than the first"

    def met(self, measurement: Measurement, measurements: Sequence[Measurement]) -> bool | None:
        return (
            None
            if measurement.absent or measurements[0].absent
            else measurement.figures[self.name] > measurements[0].figures[self.name]
        )


@dataclass(frozen=True)
class FigureAtLeast:
    """The figure `name` is at least `bound`."""

    name: str
    bound: float

    def text(self) -> str:
        return f"{self.name} >= {self.bound:g}"

    def met(self, measurement: Measurement, measurements: Sequence[Measurement]) -> bool | None:
        return None if measurement.absent else measurement.figures[self.name] >= self.bound


@dataclass(frozen=True)
class MemoryWithin:
    """The peak of this implementation is at most so many MiB above that of `other`."""

    other: str
    mebibytes: int

    def text(self) -> str:
        return f"within {self.mebibytes} MiB of {self.other}"

    def met(self, measurement: Measurement, measurements: Sequence[Measurement]) -> bool | None:
        other = next(each for each in measurements if each.name == self.other)
        if measurement.absent or other.absent:
            return None
        return measurement.peak_bytes <= other.peak_bytes + self.mebibytes * MEBI


@dataclass(frozen=True)
class Both:
    """Two bounds, of which each must hold."""

    first: Target
    second: Target

    def text(self) -> str:
        return f"{self.first.text()}, {self.second.text()}"

    def met(self, measurement: Measurement, measurements: Sequence[Measurement]) -> bool | None:
        verdicts = [each.met(measurement, measurements) for each in (self.first, self.second)]
        return False if False in verdicts else None if None in verdicts else True
