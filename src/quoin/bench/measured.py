"""What a row of the bench found: seconds lap by lap, peak memory, figures of quality; and the targets held against them.

A ratio is paired: within each round the side's seconds over the first side's, then the median over the rounds. Load that comes
and goes on a machine strikes both sides of a pair and falls out; between the medians of two sides it would stay.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

__all__ = [
    "FigureAboveFirst",
    "FigureAtMost",
    "Measured",
    "NoMoreMemoryThan",
    "RatioAtLeast",
    "SecondsAtMost",
    "Side",
    "Spread",
    "Target",
    "TimesAsQuickAs",
    "summary",
]

MEBI = 2**20


class Spread(NamedTuple):
    """The median and the quartiles about it."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of one value or more.

        >>> Spread.of([4.0, 1.0, 2.0, 3.0, 5.0])
        Spread(low=2.0, median=3.0, high=4.0)
        """
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        return cls(*statistics.quantiles(values, n=4, method="inclusive"))


@dataclass(frozen=True)
class Side:
    """One contestant's part: a lap a round; or, in `absent`, why there is none."""

    name: str
    seconds: tuple[float, ...] = ()
    peak_bytes: int = 0
    figures: dict[str, float] = field(default_factory=dict)
    absent: str = ""

    def ratio_to(self, other: "Side") -> Spread | None:
        """The paired ratios of seconds, or None where a side is absent."""
        if self.absent or other.absent:
            return None
        return Spread.of([ours / theirs for ours, theirs in zip(self.seconds, other.seconds, strict=True)])


class Target(Protocol):
    """A bound on one number of a side."""

    def text(self) -> str: ...

    def met(self, side: Side, sides: Sequence[Side]) -> bool | None:
        """Whether the bound holds; None where a side is absent."""
        ...


@dataclass(frozen=True)
class RatioAtLeast:
    """The side takes at least `bound` times as long as the first."""

    bound: float

    def text(self) -> str:
        return f"ratio >= {self.bound:g}"

    def met(self, side: Side, sides: Sequence[Side]) -> bool | None:
        ratio = side.ratio_to(sides[0])
        return None if ratio is None else ratio.median >= self.bound


@dataclass(frozen=True)
class TimesAsQuickAs:
    """The side `other` takes at least `bound` times as long as this one."""

    other: str
    bound: float

    def text(self) -> str:
        return f"{self.bound:g} times as quick as {self.other}"

    def met(self, side: Side, sides: Sequence[Side]) -> bool | None:
        ratio = next(each for each in sides if each.name == self.other).ratio_to(side)
        return None if ratio is None else ratio.median >= self.bound


@dataclass(frozen=True)
class SecondsAtMost:
    """A lap takes at most `bound` seconds, in the median."""

    bound: float

    def text(self) -> str:
        return f"seconds <= {self.bound:g}"

    def met(self, side: Side, sides: Sequence[Side]) -> bool | None:
        return None if side.absent else Spread.of(side.seconds).median <= self.bound


@dataclass(frozen=True)
class NoMoreMemoryThan:
    """The peak of this side is at most that of `other`, up to the sixteenth part by which runs of one program differ."""

    other: str

    def text(self) -> str:
        return f"no more memory than {self.other}"

    def met(self, side: Side, sides: Sequence[Side]) -> bool | None:
        other = next(each for each in sides if each.name == self.other)
        return None if side.absent or other.absent else side.peak_bytes <= other.peak_bytes * 17 / 16


@dataclass(frozen=True)
class FigureAtMost:
    """The figure `name` is at most `bound`."""

    name: str
    bound: float

    def text(self) -> str:
        return f"{self.name} <= {self.bound:g}"

    def met(self, side: Side, sides: Sequence[Side]) -> bool | None:
        return None if side.absent else side.figures[self.name] <= self.bound


@dataclass(frozen=True)
class FigureAboveFirst:
    """The figure `name` is larger than the first side's."""

    name: str

    def text(self) -> str:
        return f"more {self.name} than the first"

    def met(self, side: Side, sides: Sequence[Side]) -> bool | None:
        return None if side.absent or sides[0].absent else side.figures[self.name] > sides[0].figures[self.name]


@dataclass(frozen=True)
class Measured:
    """A row as it came out; `targets` stand beside `sides`, None where a side has none."""

    name: str
    title: str
    threads: int
    sides: tuple[Side, ...]
    targets: tuple[Target | None, ...]

    def verdict(self, index: int) -> bool | None:
        """Whether side `index` meets its target; None without a target or without the side."""
        target = self.targets[index]
        return None if target is None else target.met(self.sides[index], self.sides)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "threads": self.threads,
            "ratio_to": self.sides[0].name,
            "sides": [self._side_as_json(index) for index in range(len(self.sides))],
        }

    def _side_as_json(self, index: int) -> dict[str, Any]:
        side, target = self.sides[index], self.targets[index]
        told = {"name": side.name, "target": target and target.text(), "met": self.verdict(index)}
        if side.absent:
            return told | {"absent": side.absent}
        ratio = side.ratio_to(self.sides[0])
        return told | {
            "seconds": Spread.of(side.seconds)._asdict(),
            "laps": list(side.seconds),
            "peak_bytes": side.peak_bytes,
            "figures": side.figures,
            "ratio": ratio and ratio._asdict(),
        }


def summary(measured: Measured) -> tuple[tuple[str, ...], list[tuple]]:
    """Columns and rows of a table for a person."""
    figures = list(dict.fromkeys(name for side in measured.sides for name in side.figures))
    columns = (measured.name, "seconds", "quartiles", "peak MiB", *figures, "ratio", "quartiles", "target", "")
    return columns, [_line(measured, index, figures) for index in range(len(measured.sides))]


def _line(measured: Measured, index: int, figures: list[str]) -> tuple:
    side, target = measured.sides[index], measured.targets[index]
    goal = target.text() if target else None
    if side.absent:
        return (side.name, None, None, None, *(None for _ in figures), None, None, goal, side.absent)
    seconds, ratio = Spread.of(side.seconds), side.ratio_to(measured.sides[0])
    shown = [f"{side.figures[name]:.4f}" if name in side.figures else None for name in figures]
    told = (None, None) if index == 0 or ratio is None else (f"{ratio.median:.3f}", f"{ratio.low:.3f} to {ratio.high:.3f}")
    return (
        side.name,
        f"{seconds.median:.4f}",
        f"{seconds.low:.4f} to {seconds.high:.4f}",
        f"{side.peak_bytes / MEBI:.0f}",
        *shown,
        *told,
        goal,
        measured.verdict(index),
    )
