"""What the benchmarks of `attention` show together: tables by length, where linear cost begins to pay, and how time and
memory grow.

Imports no torch until a power is fitted.
"""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from quoin.bench.attention_benchmarks import FORMS, LENGTHS, WORKS, benchmark_name, calls_per_repeat
from quoin.bench.measurement import Measurement, Quartiles
from quoin.bench.result import BenchmarkResult

__all__ = ["Finding", "attention_findings", "attention_tables"]

FITTED_FROM = 4096  # positions: what does not grow weighs less from here on
LINEAR = {
    "elu + 1": 1024,
    "elu + 1, causal": 1024,
    "Performer": 2048,
    "Performer, causal": 8192,
}  # and from where each must pay
TIME_POWER, MEMORY_POWER = 1.1, 1.05
AS_QUICK = 0.97  # of the same kernel half the ratios fall below 1 by chance
RIVALS = (
    ("elu + 1, causal", "einsum + cumsum, causal", 20.0),
    ("Performer", "performer-pytorch", 2.5),
    ("Performer, causal", "performer-pytorch, causal", 20.0),
)
HELD_AT = 4096  # positions: where rivals are held against a bound, or at the most that the rival can bear


class Finding(NamedTuple):
    """One number from many benchmarks; `met` is None where nothing is asked of it, or an implementation is absent."""

    work: str
    what: str
    value: float | None
    target: str | None = None
    met: bool | None = None


class Table(NamedTuple):
    title: str
    columns: tuple[str, ...]
    rows: list[tuple]


def attention_tables(found: Sequence[BenchmarkResult]) -> list[Table]:
    """For either work the milliseconds of a call and the MiB that it takes, by form and length; and the findings."""
    tables = []
    for work, lengths in WORKS.items():
        if not any(each.name == benchmark_name(work, length) for each in found for length in lengths):
            continue
        runs = {form.name: dict(_runs(found, work, form.name)) for form in FORMS}
        for title, cell in ((f"{work}, ms a call", _milliseconds), (f"{work}, MiB at the most", _mebibytes)):
            rows = [(name, *(cell(by_length, length) for length in lengths)) for name, by_length in runs.items()]
            tables.append(Table(title, ("positions", *map(str, lengths)), rows))
    findings = [(each.work, each.what, each.value, each.target, each.met) for each in attention_findings(found)]
    tables.append(Table("", ("", "finding", "", "target", ""), findings))
    return [*tables, *_absences(found)]


def attention_findings(found: Sequence[BenchmarkResult]) -> list[Finding]:
    """Everything that is asked of these benchmarks, and the powers of exact attention beside it."""
    findings = []
    for work in WORKS:
        findings.append(_as_quick(found, work))
        findings += [_pays_from(found, work, name, bound) for name, bound in LINEAR.items()]
        findings += [_times(found, work, *rivals) for rivals in RIVALS]
        for name in ("exact, causal", *LINEAR):
            findings += _powers(found, work, name)
    return findings


def _as_quick(found: Sequence[BenchmarkResult], work: str) -> Finding:
    """Pairs of all lengths from `FITTED_FROM` on, where a call's overhead counts for nothing."""
    ours, theirs = (dict(_runs(found, work, name)) for name in ("exact, causal", "torch sdpa, causal"))
    pairs = [
        other / own
        for length in LENGTHS
        if length >= FITTED_FROM and length in ours and length in theirs
        for own, other in zip(ours[length].seconds, theirs[length].seconds, strict=True)
    ]
    value = statistics.median(pairs) if pairs else None
    return _held(work, "torch sdpa's time over exact attention's", value, AS_QUICK, at_least=True)


def _pays_from(found: Sequence[BenchmarkResult], work: str, name: str, bound: int) -> Finding:
    """The first length from which on the form is quicker than exact causal attention at every length at which both
    ran."""
    exact, linear = dict(_runs(found, work, "exact, causal")), dict(_runs(found, work, name))
    both = [length for length in LENGTHS if length in exact and length in linear]
    paid = None
    for length in reversed(both):
        ratio = exact[length].ratio_to(linear[length])
        if ratio is None or ratio.median <= 1:
            break
        paid = length
    return Finding(
        work,
        f"{name} beats exact causal attention from",
        paid,
        f"<= {bound}",
        (paid or 2**60) <= bound if both else None,
    )


def _times(found: Sequence[BenchmarkResult], work: str, name: str, rival: str, bound: float) -> Finding:
    ours, theirs = (dict(_runs(found, work, each)) for each in (name, rival))
    both = [length for length in LENGTHS if length <= HELD_AT and length in ours and length in theirs]
    what = f"{rival}: its time over ours" + (f" at {both[-1]}" if both else "")
    ratio = theirs[both[-1]].ratio_to(ours[both[-1]]) if both else None
    return _held(work, what, ratio and ratio.median, bound, at_least=True)


def _powers(found: Sequence[BenchmarkResult], work: str, name: str) -> Iterator[Finding]:
    """The exponents of n in time and memory, by least squares on logarithms."""
    from quoin.tensor import fit_complexity

    runs = {length: measurement for length, measurement in _runs(found, work, name) if length >= FITTED_FROM}
    measured = {
        "time": [_seconds(n, measurement) for n, measurement in runs.items()],
        "memory": [measurement.figures["MiB"] for measurement in runs.values()],
    }
    for (of, costs), bound in zip(measured.items(), (TIME_POWER, MEMORY_POWER), strict=True):
        value = fit_complexity(list(runs), costs).exponent if len(runs) >= 3 else None
        what = f"{name}: power of n in {of}, from {FITTED_FROM} on"
        yield _held(work, what, value, bound, at_least=False) if name in LINEAR else Finding(work, what, value)


def _held(work: str, what: str, value: float | None, bound: float, *, at_least: bool) -> Finding:
    met = None if value is None else value >= bound if at_least else value <= bound
    return Finding(work, what, value, f"{'>=' if at_least else '<='} {bound:g}", met)


def _runs(found: Sequence[BenchmarkResult], work: str, name: str) -> Iterator[tuple[int, Measurement]]:
    """The lengths at which a form ran, and how."""
    result = {each.name: each for each in found}
    for length in LENGTHS:
        benchmark = result.get(benchmark_name(work, length))
        for measurement in benchmark.measurements if benchmark else ():
            if measurement.name == name and not measurement.absent:
                yield length, measurement


def _absences(found: Sequence[BenchmarkResult]) -> list[Table]:
    why = {
        (measurement.name, measurement.absent): None
        for each in found
        for measurement in each.measurements
        if measurement.absent
    }
    return [Table("", ("absent", ""), list(why))] if why else []


def _seconds(length: int, measurement: Measurement) -> float:
    return Quartiles.from_values(measurement.seconds).median / calls_per_repeat(length)


def _milliseconds(runs: dict[int, Measurement], length: int) -> Any:
    return f"{1000 * _seconds(length, runs[length]):.3g}" if length in runs else None


def _mebibytes(runs: dict[int, Measurement], length: int) -> Any:
    return f"{runs[length].figures['MiB']:.0f}" if length in runs else None
