"""`quoin bench`: benchmarks one after another, each with its table, and all of them on one page at the end."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from quoin.cli.arguments import add_json, run_later
from quoin.cli.flags import Parser, whole_number
from quoin.cli.output import print_json, print_table
from quoin.errors import UserError

if TYPE_CHECKING:
    from quoin.bench import Benchmark, BenchmarkResult, KeptResults, KernelTime

__all__ = ["add_bench", "bench"]


def add_bench(parser: Parser, words: Sequence[str]) -> None:
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="benchmarks to run, or the group `attention` or `gpu`; all if none is given",
    )
    parser.add_flag(
        "--num-repeats",
        "repeats of each implementation (default: set by the benchmark)",
        "INT",
        type=whole_number,
        default=0,
    )
    parser.add_flag(
        "--keep",
        "folder for the results; what it holds already is not measured again, so a stopped command goes on",
        "FOLDER",
        type=Path,
    )
    parser.add_flag("--page", "Markdown file to write with every ratio, its spread and its target", "FILE", type=Path)
    parser.add_argument(
        "--kernels",
        action="store_true",
        help="also profile where the time goes: into matrix products and convolutions, at what fraction of the "
        "machine's peak, and into the rest",
    )
    add_json(parser)
    parser.set_defaults(run=run_later("bench_command.bench"))


def bench(parsed: argparse.Namespace) -> int:
    from quoin.bench import (
        KeptResults,
        attention_findings,
        attention_tables,
        kernel_table,
        overview,
        select_benchmarks,
        summary,
    )
    from quoin.bench.attention_benchmarks import GROUP as ATTENTION

    if parsed.page is not None and parsed.keep is None:
        raise UserError("--page tells when each benchmark was measured, got no --keep; name a folder for the results")
    if parsed.keep is not None and parsed.keep.exists() and not parsed.keep.is_dir():
        raise UserError(f"--keep {parsed.keep}: expected a folder for the results, got a file; name another")
    if parsed.page is not None and parsed.page.is_dir():
        raise UserError(f"--page {parsed.page}: expected a file to write, got a folder; name a file in it")
    if parsed.page is not None and not parsed.page.absolute().parent.is_dir():
        raise UserError(f"--page {parsed.page}: no folder {parsed.page.parent}; make it first")
    benchmarks = _on_this_machine(select_benchmarks(parsed.names), asked=bool(parsed.names))
    kept = None if parsed.keep is None else KeptResults(parsed.keep)
    together = [
        benchmark.name for benchmark in benchmarks if benchmark.group == ATTENTION
    ]  # told in one table by length; a single one like any other row
    together = together if len(together) > 1 else []
    found: dict[str, BenchmarkResult] = {}
    for number, benchmark in enumerate(benchmarks, 1):
        at = f"[{number}/{len(benchmarks)}] " if len(benchmarks) > 1 else ""
        found[benchmark.name] = _measured(benchmark, parsed.num_repeats, kept, at)
        if not parsed.json and benchmark.name not in together:
            print_table(*summary(found[benchmark.name]))
            print()
    kernels = _taken_apart(benchmarks, kept) if parsed.kernels else {}
    if parsed.page is not None and kept is not None:
        _write_page(parsed.page, kept)
    swept = [found[name] for name in together]
    if parsed.json:
        told = (
            [{"name": "attention", "findings": [each._asdict() for each in attention_findings(swept)]}] if swept else []
        )
        told += [
            {"name": name, "kernels": {each: asdict(kernels[name][each]) for each in kernels[name]}} for name in kernels
        ]
        print_json([each.as_json() for each in found.values()] + told)
        return 0
    for table in attention_tables(swept) if swept else []:
        print_table(table.columns, table.rows, title=table.title)
        print()
    alone = [result for name, result in found.items() if name not in together]
    if len(alone) > 1:
        print_table(*overview(alone), title="all of them")
    if kernels:
        print_table(*kernel_table(kernels), title="where the time goes")
    return 0


def _measured(benchmark: "Benchmark", num_repeats: int, kept: "KeptResults | None", at: str) -> "BenchmarkResult":
    """What was kept of the benchmark, or what is measured now."""
    from quoin.bench import run_benchmark

    before = None if kept is None else kept.read(benchmark)
    if before is not None:
        print(f"{at}{benchmark.name}: measured before, and kept", file=sys.stderr)
        return before
    result = run_benchmark(
        benchmark,
        num_repeats=num_repeats or benchmark.num_repeats,
        on_progress=lambda text: print(at + text, file=sys.stderr),
    )
    if kept is not None and not all(each.absent for each in result.measurements):  # else nothing was measured
        kept.write(result)
    return result


def _taken_apart(benchmarks: "Sequence[Benchmark]", kept: "KeptResults | None") -> dict[str, "dict[str, KernelTime]"]:
    """Of those benchmarks that run on torch's kernels: where the time goes, as it was kept or as it is now."""
    from quoin.bench import kernel_times

    found: dict[str, dict[str, KernelTime]] = {}
    for benchmark in benchmarks:
        if not benchmark.on_torch:
            continue
        before = None if kept is None else kept.read_kernels(benchmark)
        if before is None:
            print(f"{benchmark.name}: a repeat under the profiler", file=sys.stderr)
            before = kernel_times(benchmark, on_progress=lambda text: print(text, file=sys.stderr))
            if kept is not None and before:
                kept.write_kernels(benchmark.name, before)
        found[benchmark.name] = before
    if not found:
        print("--kernels: none of these runs on torch's kernels alone", file=sys.stderr)
    return found


def _write_page(page: Path, kept: "KeptResults") -> None:
    """All that is kept, whatever this command was asked for."""
    from quoin.bench import write_overview
    from quoin.bench.attention_benchmarks import GROUP as ATTENTION
    from quoin.bench.benchmarks import BENCHMARKS

    results = [result for each in BENCHMARKS if (result := kept.read(each)) is not None]
    measured = {each.name: kept.measured(each.name) for each in results}
    missing = [each.name for each in BENCHMARKS if each.name not in measured]
    kernels = {each.name: found for each in BENCHMARKS if (found := kept.read_kernels(each))}
    taken_apart = {name: kept.measured(name, kernels=True) for name in kernels}
    groups = {each.name: each.group for each in BENCHMARKS}
    together = [each for each in results if groups[each.name] == ATTENTION]
    alone = [each for each in results if groups[each.name] != ATTENTION]
    write_overview(page, alone, measured, missing, kernels, together, taken_apart)


def _on_this_machine(benchmarks: list["Benchmark"], *, asked: bool) -> list["Benchmark"]:
    """Those that can run here; what needs CUDA and was asked for by name is refused without."""
    for_gpu = [benchmark.name for benchmark in benchmarks if benchmark.needs_cuda]
    if not for_gpu:
        return benchmarks
    import torch

    if torch.cuda.is_available():
        return benchmarks
    if asked:
        raise UserError(f"{for_gpu[0]} needs a CUDA device, and torch sees none here: run it where there is one")
    print(f"left out, for torch sees no CUDA device: {', '.join(for_gpu)}", file=sys.stderr)
    return [benchmark for benchmark in benchmarks if not benchmark.needs_cuda]
