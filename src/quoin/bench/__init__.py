"""Quoin compared with other libraries: speed, memory and quality in one table."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.bench.attention_findings import Finding, attention_findings, attention_tables
    from quoin.bench.benchmark import Benchmark, Implementation
    from quoin.bench.benchmarks import select_benchmarks
    from quoin.bench.kernel_time import KernelTime, kernel_table, kernel_times
    from quoin.bench.measurement import Measurement
    from quoin.bench.overview import KeptResults, overview, write_overview
    from quoin.bench.result import BenchmarkResult, summary
    from quoin.bench.runner import run_benchmark

__all__ = [
    "Benchmark",
    "BenchmarkResult",
    "Finding",
    "Implementation",
    "KeptResults",
    "KernelTime",
    "Measurement",
    "attention_findings",
    "attention_tables",
    "kernel_table",
    "kernel_times",
    "overview",
    "run_benchmark",
    "select_benchmarks",
    "summary",
    "write_overview",
]

export_lazily(__name__)
