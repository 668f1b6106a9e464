"""The result of a benchmark: every implementation's measurement and the targets held against them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quoin.bench.measurement import MEBI, Measurement, Quartiles
from quoin.bench.targets import Target

__all__ = ["BenchmarkResult", "summary"]


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
