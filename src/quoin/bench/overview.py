"""All benchmarks on one page: every ratio with its spread, what was asked of it, and whether it was met.

Results are kept in a folder, one file a benchmark, so that `make bench` goes on where it was stopped. Imports neither
torch nor a peer.
"""

import datetime
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from quoin.bench.attention_findings import attention_findings, attention_tables
from quoin.bench.benchmark import Benchmark
from quoin.bench.kernel_time import KernelTime, kernel_table
from quoin.bench.measurement import Quartiles
from quoin.bench.result import BenchmarkResult
from quoin.processor import num_cores, processor_name

__all__ = ["KeptResults", "overview", "write_overview"]

COLUMNS = ("benchmark", "implementation", "ratio", "quartiles", "target", "")


class KeptResults:
    """The results of benchmarks in a folder, each with the day and the machine of its measurement."""

    def __init__(self, folder: Path):
        self.folder = folder

    def read(self, benchmark: Benchmark) -> BenchmarkResult | None:
        """What was found of this benchmark; None where that is nothing, damaged, or of other implementations."""
        try:
            kept = json.loads(self._path(benchmark.name).read_text(encoding="utf-8"))
            found = BenchmarkResult.from_json(kept, [each.target for each in benchmark.implementations])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        names = [each.name for each in benchmark.implementations]
        is_same = [each.name for each in found.measurements] == names and found.title == benchmark.title
        return found if is_same else None

    def write(self, result: BenchmarkResult) -> None:
        """Keep a result; a file is whole or not there."""
        self._write(self._path(result.name), {**result.as_json(), **_here()})

    def read_kernels(self, benchmark: Benchmark) -> dict[str, KernelTime] | None:
        """Where the time of its implementations goes, as it was measured; None where that is nothing, not all of them,
        or damaged."""
        try:
            kept = json.loads(self._kernels(benchmark.name).read_text(encoding="utf-8"))
            found = {name: KernelTime(**each) for name, each in kept["kernels"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        wanted = {each.name for each in benchmark.implementations} & set(benchmark.on_torch)
        return found if found.keys() == wanted else None

    def write_kernels(self, name: str, found: dict[str, KernelTime]) -> None:
        told = {each: asdict(found[each]) for each in found}
        self._write(self._kernels(name), {"name": name, "kernels": told, **_here()})

    def measured(self, name: str, *, kernels: bool = False) -> str:
        """The day and the machine of a measurement, or of its kernels', in a few words."""
        path = self._kernels(name) if kernels else self._path(name)
        kept = json.loads(path.read_text(encoding="utf-8"))
        return f"{kept['day']}, {kept['machine']}"

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(content, indent=1), encoding="utf-8")
        os.replace(draft, path)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _kernels(self, name: str) -> Path:
        return self.folder / f"{name}.kernels.json"


def _here() -> dict[str, str]:
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"day": day, "machine": f"{processor_name()}, {num_cores()} cores"}


def overview(results: Sequence[BenchmarkResult]) -> tuple[tuple[str, ...], list[tuple]]:
    """Columns and rows of one table for all benchmarks: what has a ratio to the first, or a target of its own."""
    return COLUMNS, [
        _line(result, index)
        for result in results
        for index in range(len(result.measurements))
        if index > 0 or result.targets[index] is not None
    ]


def _line(result: BenchmarkResult, index: int) -> tuple:
    measurement, target = result.measurements[index], result.targets[index]
    ratio: Quartiles | None = None if index == 0 else measurement.ratio_to(result.measurements[0])
    spread = (None, None) if ratio is None else (f"{ratio.median:.3f}", f"{ratio.low:.3f} to {ratio.high:.3f}")
    verdict = measurement.absent or result.verdict(index)
    return (result.name, measurement.name, *spread, target.text() if target else None, verdict)


def write_overview(
    page: Path,
    results: Sequence[BenchmarkResult],
    measured: dict[str, str],
    missing: Sequence[str] = (),
    kernels: dict[str, dict[str, KernelTime]] | None = None,
    attention: Sequence[BenchmarkResult] = (),
    kernels_measured: dict[str, str] | None = None,
) -> None:
    """A page in Markdown: the table, a line that counts, when and where each was measured, which are `missing`, what
    the benchmarks of `attention` say together, and where the time goes, so far as that was looked at."""
    columns, rows = overview(results)
    tables = attention_tables(attention) if attention else []
    verdicts = [row[-1] for row in rows] + [each.met for each in attention_findings(attention) if attention]
    met, missed = (sum(each is verdict for each in verdicts) for verdict in (True, False))
    lines = [
        "# What was measured",
        "",
        "`make bench` writes this page. A ratio is an implementation's seconds over those of the first in the same",
        "repeat, the median over the repeats: above 1 the first, which is Quoin's, is the quicker. How it is measured",
        "stands in [Benchmarks](bench.md).",
        "",
        f"{met} targets met, {missed} missed.",
        "",
        *_places({each.name: measured[each.name] for each in (*results, *attention)}),
        *([f"- not measured yet: {', '.join(f'`{name}`' for name in missing)}"] if missing else []),
        "",
        *_table([name or "outcome" for name in columns], rows),
        *(["", "## Attention by length"] if tables else []),
        *(line for each in tables for line in ("", each.title, "", *_table(each.columns, each.rows))),
        *(_where_it_goes(kernels, kernels_measured or {}) if kernels else []),
    ]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _places(measured: dict[str, str]) -> list[str]:
    """A line for each day and machine, and what was measured then and there."""
    places: dict[str, list[str]] = {}
    for name, place in measured.items():
        places.setdefault(place, []).append(f"`{name}`")
    return [f"- {', '.join(names)}: {place}" for place, names in places.items()]


def _where_it_goes(kernels: dict[str, dict[str, KernelTime]], measured: dict[str, str]) -> list[str]:
    return [
        "",
        "## Where the time goes",
        "",
        "`quoin bench NAME --kernels` takes a repeat apart: the fraction of it in matrix products and convolutions,",
        "their operations a second beside those of the quickest square product of this machine in float32, and how",
        "many times as quick the repeat would be if nothing but those kernels took time.",
        "",
        *_places(measured),
        "",
        *_table(*kernel_table(kernels)),
    ]


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    return [
        "| " + " | ".join(_cell(each) for each in columns) + " |",
        "|---" * len(columns) + "|",
        *("| " + " | ".join(_cell(value) for value in row) + " |" for row in rows),
    ]


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "met" if value else "**missed**"
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else str(value).replace("|", "\\|")
