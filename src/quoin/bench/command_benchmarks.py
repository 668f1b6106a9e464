"""Whole commands: seeds side by side, and a page of the lab in a browser. Imports neither torch nor a peer."""

from quoin.bench.benchmark import Benchmark, Implementation
from quoin.bench.targets import FigureAtMost, RatioAtLeast, SameFigureAs

__all__ = ["COMMAND_BENCHMARKS"]

_BROWSER = ("playwright", "marimo", "anywidget")
_JOBS, _LAB = "quoin.bench.side_by_side", "quoin.bench.lab_page"

COMMAND_BENCHMARKS = (
    Benchmark(
        "lab",
        "a page of the lab in a real browser: from the command to its first picture, and from a slider to the next",
        (
            Implementation("up", _LAB, "page", FigureAtMost("seconds until the page is up", 4.0), _BROWSER),
            Implementation("median", _LAB, "page", FigureAtMost("ms from slider to picture, median", 150.0), _BROWSER),
            Implementation("95%", _LAB, "page", FigureAtMost("ms from slider to picture, 95%", 300.0), _BROWSER),
        ),
        num_repeats=3,
        num_warmup=1,
    ),
    Benchmark(
        "jobs",
        "quoin train lenet --epochs 40 --seeds 4: two at a time in processes of their own, one thread each",
        (
            Implementation("--jobs 2", _JOBS, "two_at_a_time", SameFigureAs("one after another", "checksum")),
            Implementation("one after another", _JOBS, "one_after_another", RatioAtLeast(1 / 0.6)),
        ),
        num_repeats=3,
        num_warmup=1,
    ),
)
