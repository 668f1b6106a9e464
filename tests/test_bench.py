"""The bench's machinery, on implementations that take no time: real workers, real pipes, no clock in any assertion."""

import dataclasses
import io
import json
import os
import statistics
import sys
import textwrap

import numpy as np
import pytest

from commands import tried
from quoin.bench import (
    Benchmark,
    BenchmarkResult,
    Implementation,
    KeptResults,
    Measurement,
    overview,
    run_benchmark,
    select_benchmarks,
    summary,
)
from quoin.bench.benchmarks import BENCHMARKS
from quoin.bench.measurement import Quartiles
from quoin.bench.targets import (
    Both,
    FigureAtLeast,
    FigureAtMost,
    MemoryWithin,
    RatioAtLeast,
    SecondsAtMost,
    TimesAsQuickAs,
)
from quoin.bench.worker import Repeats
from quoin.errors import UserError

FAKES = """
    import json, os, pathlib, sys

    def steady(repeats):
        print("chatter that is no answer", flush=True)
        for _ in range(repeats.count):
            note("steady")
            repeats.end()
        return {"quality": 0.75}

    def settled(repeats):
        for _ in range(repeats.count):
            note("settled")
            repeats.end()
        set_by_hand = {"threads": os.environ["OMP_NUM_THREADS"], "given": repeats.threads, "mine": os.environ["MINE"]}
        return {name: float(value) for name, value in set_by_hand.items()}

    def falling(repeats):
        repeats.end()
        raise RuntimeError("out of breath")

    def note(name):
        with open(os.environ["FAKES_LOG"], "a") as file:
            file.write(name + "\\n")
"""


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Where the fakes write down their repeats; workers find the fakes beside it."""
    (tmp_path / "fake_implementations.py").write_text(textwrap.dedent(FAKES))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("FAKES_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def fake(name: str, **changes) -> Implementation:
    return dataclasses.replace(Implementation(name, "fake_implementations", name), **changes)


def row(*implementations: Implementation) -> Benchmark:
    return Benchmark("fake", "nothing at all", implementations, num_repeats=4, num_warmup=2, threads=1)


def test_rounds_are_interleaved_in_changing_orders(log):
    told = []
    found = run_benchmark(
        row(fake("steady"), fake("settled", environment=(("MINE", "7"),))), num_repeats=4, on_progress=told.append
    )
    assert [len(side.seconds) for side in found.measurements] == [4, 4]  # the two of the warm-up are run, not counted
    repeats = log.read_text().split()
    assert sorted(repeats[:2]) == ["settled", "steady"]
    rounds = [tuple(repeats[start : start + 2]) for start in range(2, 12, 2)]
    assert len(repeats) == 12
    assert all(sorted(each) == ["settled", "steady"] for each in rounds)
    assert len(set(rounds)) == 2  # each has gone first
    assert found.measurements[0].figures == {"quality": 0.75}
    assert found.measurements[1].figures == {"threads": 1.0, "given": 1.0, "mine": 7.0}
    assert all(side.peak_bytes > 2**20 for side in found.measurements)
    assert [f"repeat {number} of 4" in text for number, text in enumerate(told, 1)] == [True] * 4


def test_a_missing_peer_is_named_and_a_failing_one_does_not_stop_the_others(log):
    missing = fake("settled", needs=("json", "no_such_package"), target=RatioAtLeast(0.5))
    found = run_benchmark(row(fake("steady"), missing, fake("falling")), num_repeats=2)
    assert [side.absent for side in found.measurements] == [
        "",
        "not installed: pip install no_such_package",
        "failed: RuntimeError: out of breath",
    ]
    assert len(found.measurements[0].seconds) == 2
    assert found.verdict(1) is None
    columns, lines = summary(found)
    assert all(len(line) == len(columns) for line in lines)
    assert "not installed: pip install no_such_package" in lines[1]


def test_json_holds_every_number(log):
    target = FigureAtMost("quality", 0.5)
    found = json.loads(
        json.dumps(run_benchmark(row(fake("steady", target=target)), num_repeats=3).as_json(), allow_nan=False)
    )
    assert {"name", "title", "threads", "ratio_to", "measurements"} == set(found)
    (side,) = found["measurements"]
    assert {"name", "target", "met", "seconds", "repeats", "peak_bytes", "figures", "ratio"} == set(side)
    assert side["seconds"]["median"] == statistics.median(side["repeats"])
    assert side["ratio"] == {"low": 1.0, "median": 1.0, "high": 1.0}
    assert side["target"] == "quality <= 0.5"
    assert side["met"] is False


def test_ratios_are_paired():
    """The load doubles both sides of half the rounds: every pair says 2, the quotient of any one pair of repeats may
    not."""
    first, other = Measurement("first", (1.0, 2.0, 1.0, 2.0)), Measurement("other", (2.0, 4.0, 2.0, 4.0))
    assert other.ratio_to(first) == (2.0, 2.0, 2.0)
    crossed = Measurement("crossed", (2.0, 1.0, 2.0, 1.0))
    assert crossed.ratio_to(first) == (0.5, 1.25, 2.0)
    assert other.ratio_to(Measurement("gone", absent="not installed")) is None


def test_spread_is_numpys_quartiles():
    for count in (1, 2, 3, 4, 7, 20):
        values = np.random.default_rng(count).random(count)
        assert Quartiles.from_values(list(values)) == pytest.approx(np.quantile(values, [0.25, 0.5, 0.75]))


def test_targets_hold_at_their_bound_and_fail_beyond_it():
    first = Measurement("first", (1.0, 1.0), 2 * 2**20)
    side = Measurement("side", (2.0, 2.0), 5 * 2**20, figures={"share": 0.05})
    for held, broken in (
        (RatioAtLeast(2.0), RatioAtLeast(2.01)),
        (SecondsAtMost(2.0), SecondsAtMost(1.99)),
        (FigureAtMost("share", 0.05), FigureAtMost("share", 0.049)),
        (FigureAtLeast("share", 0.05), FigureAtLeast("share", 0.051)),
        (MemoryWithin("first", 3), MemoryWithin("first", 2)),
        (Both(RatioAtLeast(2.0), FigureAtMost("share", 0.05)), Both(RatioAtLeast(2.0), FigureAtMost("share", 0.049))),
        (Both(FigureAtLeast("share", 0.0), SecondsAtMost(2.0)), Both(FigureAtLeast("share", 0.06), SecondsAtMost(2.0))),
    ):
        measured = BenchmarkResult("row", "", 1, (first, side, side), (None, held, broken))
        assert [measured.verdict(index) for index in range(3)] == [None, True, False]


def test_the_clock_stands_still_between_laps(monkeypatch):
    now = 0.0
    monkeypatch.setattr("quoin.bench.worker.time.perf_counter", lambda: now)

    class Slow(io.StringIO):
        def readline(self, *size):
            nonlocal now
            now += 100.0
            return "go\n"

    answers = io.StringIO()
    repeats = Repeats(3, 1, Slow(), answers)
    for seconds in (1.0, 2.0, 3.0):
        now += seconds
        repeats.end()
    assert [json.loads(line)["seconds"] for line in answers.getvalue().splitlines()] == [1.0, 2.0, 3.0]
    assert repeats.clock() == 6.0
    assert now == 206.0  # after the last repeat nobody waits


def test_a_worker_left_alone_ends():
    repeats = Repeats(2, 1, io.StringIO(""), io.StringIO())
    with pytest.raises(SystemExit):
        repeats.end()


def test_rows_are_chosen_by_name():
    assert select_benchmarks([]) == list(BENCHMARKS)
    assert [each.name for each in select_benchmarks(["start", "loop"])] == ["start", "loop"]
    assert [
        each for each in select_benchmarks(["attention", "loop"]) if each.group != "attention"
    ] == select_benchmarks(["loop"])
    assert select_benchmarks(["attention"]) == [each for each in BENCHMARKS if each.group == "attention"]
    with pytest.raises(UserError, match="did you mean 'loop'"):
        select_benchmarks(["lop"])
    with pytest.raises(UserError, match="one repeat or more"):
        run_benchmark(BENCHMARKS[0], num_repeats=0)


def test_a_side_may_be_held_against_another_than_the_first():
    sides = Measurement("first", (9.0, 9.0)), Measurement("quick", (1.0, 2.0)), Measurement("slow", (2.0, 4.0))
    found = [TimesAsQuickAs("slow", bound).met(sides[1], sides) for bound in (2.0, 2.01)]
    assert found == [True, False]
    assert TimesAsQuickAs("first", 1.0).met(Measurement("gone", absent="not installed"), sides) is None


CONTESTANTS = {
    (each.module, each.function): each for found in BENCHMARKS for each in found.implementations
}  # one may run at many sizes


@pytest.mark.parametrize("implementation", CONTESTANTS.values(), ids=lambda each: each.function)
def test_every_contestant_is_there(implementation):
    """Read, not imported: importing torch, Keras and JAX together here would prove no more."""
    import ast
    import importlib.util

    spec = importlib.util.find_spec(implementation.module)
    assert spec is not None
    assert spec.origin is not None
    with open(spec.origin, encoding="utf-8") as file:
        names = {node.name for node in ast.parse(file.read()).body if isinstance(node, ast.FunctionDef)}
    assert implementation.function in names


def test_choosing_rows_imports_no_torch():
    import subprocess

    code = (
        "import sys, quoin.bench; quoin.bench.select_benchmarks([]); "
        "print(sorted({'torch', 'numpy', 'keras', 'jax'} & set(sys.modules)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_quoins_side_learns_what_the_bare_loop_learns():
    """Two epochs of the real loop and of the hand-written one, from one start, end at one quality: the race is over one
    course."""
    import torch

    from quoin.bench import loop_torch

    threads = torch.get_num_threads()
    figures = []
    try:
        for implementation in (loop_torch.quoin, loop_torch.bare):
            answers = io.StringIO()
            figures.append(implementation(Repeats(2, 1, io.StringIO("go\n"), answers))["test accuracy"])
            assert len(answers.getvalue().splitlines()) == 2
    finally:
        torch.set_num_threads(threads)  # which the implementations set for the whole process
    assert figures[0] > 0.3  # ten classes
    assert figures[0] == pytest.approx(figures[1], abs=0.04)  # 4,000 test rows: one standard deviation is below 0.008


def test_the_networks_on_images_are_the_same_on_either_side(monkeypatch):
    """The hand-written LeNet and ResNet have Quoin's weights, one by one; a repeat of LeNet ends at one quality from
    either."""
    import copy

    import torch

    from quoin.bench import images_problem, images_quoin, images_torch

    for ours, theirs in (
        (images_quoin.make_lenet(), images_torch._lenet()),
        (images_quoin._resnet(), images_torch._resnet()),
    ):
        assert sorted(each.shape for each in ours.parameters()) == sorted(each.shape for each in theirs.parameters())
    with torch.no_grad():
        start = images_torch._lenet()
        for theirs, ours in zip(start.parameters(), images_quoin.make_lenet().parameters(), strict=True):
            theirs.copy_(ours)
    monkeypatch.setattr(images_torch, "_lenet", lambda: copy.deepcopy(start))
    threads = torch.get_num_threads()
    short = dataclasses.replace(images_problem.LENET, batch_size=32, num_steps=20)
    figures = []
    try:
        for module, implementation in (
            (images_quoin, "lenet_quoin"),
            (images_torch, "lenet_eager"),
            (images_torch, "lenet_channels_last"),
        ):
            monkeypatch.setattr(module, "LENET", short)
            figures.append(
                getattr(module, implementation)(Repeats(1, 1, io.StringIO(), io.StringIO()))["test accuracy"]
            )
    finally:
        torch.set_num_threads(threads)
    assert min(figures) > 0.9  # ten classes, told apart by their patterns


# ---- results that are kept, and the page of all -----------------------------------------------------------------


@pytest.fixture
def two_rows(log, monkeypatch):
    rows = (
        dataclasses.replace(row(fake("steady"), fake("settled", environment=(("MINE", "7"),))), name="first"),
        dataclasses.replace(
            row(fake("steady", target=FigureAtMost("quality", 0.5)), fake("falling")), name="second", title="falls"
        ),
    )
    monkeypatch.setattr("quoin.bench.benchmarks.BENCHMARKS", rows)
    return log


def test_a_stopped_bench_goes_on_and_ends_in_one_page(two_rows, tmp_path):
    words = ["--num-repeats", "1", "--keep", tmp_path / "kept", "--page", tmp_path / "page.md"]
    code, _, told = tried("bench", "first", *words)
    assert code == 0
    assert "measured before" not in told
    assert "- not measured yet: `second`\n" in (tmp_path / "page.md").read_text()
    before = two_rows.read_text()
    code, printed, told = tried("bench", *words)
    assert code == 0
    assert "[1/2] first: measured before, and kept" in told
    assert two_rows.read_text().removeprefix(before).split() == ["steady"] * 3  # the second's alone
    assert printed.splitlines()[-3].split()[:2] == ["first", "settled"]
    page = (tmp_path / "page.md").read_text()
    assert "0 targets met, 1 missed." in page
    assert "not measured yet" not in page
    assert "| second | steady |  |  | quality <= 0.5 | **missed** |" in page
    assert "| second | falling |  |  |  | failed: RuntimeError: out of breath |" in page
    (tmp_path / "kept" / "first.json").write_text("{")  # damaged: measured again
    assert tried("bench", "first", *words)[0] == 0
    assert "| first | settled | " in (tmp_path / "page.md").read_text()


def test_a_benchmark_of_which_nothing_ran_is_not_kept(log, monkeypatch, tmp_path):
    """It is asked again next time, and the page names it."""
    rows = (
        dataclasses.replace(row(fake("falling")), name="none"),
        dataclasses.replace(row(fake("steady")), name="one"),
    )
    monkeypatch.setattr("quoin.bench.benchmarks.BENCHMARKS", rows)
    words = ["--num-repeats", "1", "--keep", tmp_path / "kept", "--page", tmp_path / "page.md"]
    assert tried("bench", *words)[0] == 0
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["one.json"]
    assert "- not measured yet: `none`\n" in (tmp_path / "page.md").read_text()


def test_what_is_kept_is_what_was_measured(tmp_path):
    benchmark = row(fake("steady"), fake("settled", target=RatioAtLeast(2.0)))
    sides = (
        Measurement("steady", (1.0, 2.0), 5, {"quality": 0.5}),
        Measurement("settled", (2.0, 3.0), 6, {"quality": 1.0}),
    )
    targets = tuple(each.target for each in benchmark.implementations)
    result = BenchmarkResult("fake", "nothing at all", 1, sides, targets)
    kept = KeptResults(tmp_path)
    assert kept.read(benchmark) is None
    kept.write(result)
    assert kept.read(benchmark) == result
    assert kept.read(dataclasses.replace(benchmark, title="other work")) is None
    assert kept.read(dataclasses.replace(benchmark, implementations=benchmark.implementations[:1])) is None
    assert overview([result])[1] == [("fake", "settled", "1.750", "1.625 to 1.875", "ratio >= 2", False)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--page", "x.md"], "got no --keep"),
        (["--page", "nowhere/x.md", "--keep", "kept"], "no folder nowhere"),
        (["--page", ".", "--keep", "kept"], "got a folder"),
        (["--keep", __file__], "got a file"),
    ],
)
def test_a_page_is_refused_before_anything_is_measured(words, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, told = tried("bench", "loop", *words)
    assert code == 2
    assert expected in told
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
