"""What a benchmark found: seconds repeat by repeat, peak memory, figures of quality; and the targets held against them.

A ratio is paired: an implementation's seconds over the first one's in the same repeat, then the median over the
repeats. Load that comes and goes on a machine slows both of a pair and cancels; between the medians of two
implementations it would stay.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

__all__ = [
    "BenchmarkResult",
    "FigureAboveFirst",
    "FigureAtMost",
    "Measurement",
    "NoMoreMemoryThan",
    "Quartiles",
    "RatioAtLeast",
    "SameFigureAs",
    "SecondsAtMost",
    "Target",
    "TimesAsQuickAs",
    "summary",
]

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
class BenchmarkResult:
    """The result of a benchmark; `targets` stand beside `measurements`, None where an implementation has none."""

    name: str
    title: str
    threads: int
    measurements: tuple[Measurement, ...]
    targets: tuple[Target | None, ...]

    def verdict(self, index: int) -> bool | None:
        """Whether implementation `index` meets its target; None without a target or without the implementation."""
        target = self.targets[index]
        return None if target is None else target.met(self.measurements[index], self.measurements)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "threads": self.threads,
            "ratio_to": self.measurements[0].name,
            "measurements": [self._measurement_as_json(index) for index in range(len(self.measurements))],
        }

    @classmethod
    def from_json(cls, found: dict[str, Any], targets: Sequence[Target | None]) -> "BenchmarkResult":
        """What `as_json` gave, with the targets that it is held against."""
        measurements = tuple(
            Measurement(each["name"], absent=each["absent"])
            if each.get("absent")
            else Measurement(each["name"], tuple(each["repeats"]), each["peak_bytes"], each["figures"])
            for each in found["measurements"]
        )
        return cls(found["name"], found["title"], found["threads"], measurements, tuple(targets))

    def _measurement_as_json(self, index: int) -> dict[str, Any]:
        measurement, target = self.measurements[index], self.targets[index]
        common = {"name": measurement.name, "target": target and target.text(), "met": self.verdict(index)}
        if measurement.absent:
            return common | {"absent": measurement.absent}
        ratio = measurement.ratio_to(self.measurements[0])
        return common | {
            "seconds": Quartiles.from_values(measurement.seconds)._asdict(),
            "repeats": list(measurement.seconds),
            "peak_bytes": measurement.peak_bytes,
            "figures": measurement.figures,
            "ratio": ratio and ratio._asdict(),
        }


def summary(result: BenchmarkResult) -> tuple[tuple[str, ...], list[tuple]]:
    """Columns and rows of a table for a person."""
    figures = list(dict.fromkeys(name for measurement in result.measurements for name in measurement.figures))
    columns = (result.name, "seconds", "quartiles", "peak MiB", *figures, "ratio", "quartiles", "target", "")
    return columns, [_line(result, index, figures) for index in range(len(result.measurements))]


def _line(result: BenchmarkResult, index: int, figures: list[str]) -> tuple:
    measurement, target = result.measurements[index], result.targets[index]
    goal = target.text() if target else None
    if measurement.absent:
        return (measurement.name, None, None, None, *(None for _ in figures), None, None, goal, measurement.absent)
    seconds, ratio = Quartiles.from_values(measurement.seconds), measurement.ratio_to(result.measurements[0])
    shown = [f"{measurement.figures[name]:.4f}" if name in measurement.figures else None for name in figures]
    ratios = (
        (None, None) if index == 0 or ratio is None else (f"{ratio.median:.3f}", f"{ratio.low:.3f} to {ratio.high:.3f}")
    )
    return (
        measurement.name,
        f"{seconds.median:.4f}",
        f"{seconds.low:.4f} to {seconds.high:.4f}",
        f"{measurement.peak_bytes / MEBI:.0f}",
        *shown,
        *ratios,
        goal,
        result.verdict(index),
    )
