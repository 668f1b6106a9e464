"""`quoin list`, `quoin doctor` and `quoin bench`."""

import argparse
import re
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from quoin.cli.output import print_json, print_table
from quoin.errors import UserError, did_you_mean, format_value

if TYPE_CHECKING:
    from quoin.bench import Benchmark

__all__ = ["bench", "doctor", "list_recipes"]


def list_recipes(parsed: argparse.Namespace) -> int:
    from quoin.data import ALL_SOURCES
    from quoin.runs.catalog import SUBJECTS
    from quoin.runs.listing import list_packaged, listed_recipes

    packaged, wrong = list_packaged()
    for each in wrong:
        print(f"note: {each}", file=sys.stderr)
    recipes = [*listed_recipes(), *packaged]
    query = " ".join(parsed.words)
    if query:
        words = sorted({word for each in recipes for word in each.keywords})
        family = re.sub(r"(?<=[a-z])\d+", "", query)  # resnet18 is a size of resnet
        matching = [each for each in recipes if each.matches(query)]
        recipes = matching or [each for each in recipes if each.matches(family)]
        if not recipes:
            hint = (
                f"{did_you_mean(query, words, 'no recipe has it')}; `quoin map {query}` looks through everything else"
            )
            raise UserError(f"expected a word of a recipe, got {format_value(query)}; {hint}")
    if parsed.json:
        print_json([asdict(each) for each in recipes])
        return 0
    origins = dict.fromkeys(each.origin for each in packaged)
    tables = {
        subject: [each for each in recipes if each.subject == subject and each.origin == "quoin"]
        for subject in SUBJECTS
    }
    tables |= {f"From {origin}": [each for each in recipes if each.origin == origin] for origin in origins}
    for title, members in tables.items():
        if members:
            rows = [(each.name, each.summary, each.data, each.target) for each in members]
            print_table(("recipe", "what it does", "data", "target"), rows, title=title)
            print()
    if query:
        return 0
    print_table(("source", "what --data can name"), ALL_SOURCES.items())
    return 0


def doctor(parsed: argparse.Namespace) -> int:
    from quoin.cli.doctor import examine

    found = examine()
    if parsed.json:
        print_json([{"what": each.what, "found": each.found, "ok": each.ok, "help": each.help} for each in found])
    else:
        rows = [
            (each.what, each.found, "ok" if each.ok else "missing" if each.needed else "optional") for each in found
        ]
        print_table(("what", "found", ""), rows)
        for each in found:
            if not each.ok:
                print(f"\n{each.what}: {each.help}")
    return 0 if all(each.ok or not each.needed for each in found) else 1


def bench(parsed: argparse.Namespace) -> int:
    from quoin.bench import attention_findings, attention_tables, run_benchmark, select_benchmarks, summary
    from quoin.bench.attention_benchmarks import GROUP as ATTENTION

    benchmarks = _on_this_machine(select_benchmarks(parsed.names), asked=bool(parsed.names))
    together = [
        benchmark.name for benchmark in benchmarks if benchmark.group == ATTENTION
    ]  # told in one table by length; a single one like any other row
    together = together if len(together) > 1 else []
    found = {}
    for number, benchmark in enumerate(benchmarks, 1):
        at = f"[{number}/{len(benchmarks)}] " if len(benchmarks) > 1 else ""
        found[benchmark.name] = run_benchmark(
            benchmark,
            num_repeats=parsed.num_repeats or benchmark.num_repeats,
            on_progress=lambda text, at=at: print(at + text, file=sys.stderr),
        )
        if not parsed.json and benchmark.name not in together:
            print_table(*summary(found[benchmark.name]))
            print()
    swept = [found[name] for name in together]
    if parsed.json:
        told = (
            [{"name": "attention", "findings": [each._asdict() for each in attention_findings(swept)]}] if swept else []
        )
        print_json([each.as_json() for each in found.values()] + told)
        return 0
    for table in attention_tables(swept) if swept else []:
        print_table(table.columns, table.rows, title=table.title)
        print()
    return 0


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
