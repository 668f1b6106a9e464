"""The bench's machinery, on contestants that take no time: real workers, real pipes, no clock in any assertion."""

import dataclasses
import io
import json
import os
import statistics
import sys
import textwrap

import numpy as np
import pytest

from quoin.bench import Contestant, Measured, Row, Side, choose_rows, run_row, summary
from quoin.bench.measured import FigureAtMost, RatioAtLeast, SecondsAtMost, Spread, TimesAsQuickAs
from quoin.bench.rows import ROWS
from quoin.bench.worker import Laps
from quoin.errors import Mistake

FAKES = """
    import json, os, pathlib, sys

    def steady(laps):
        print("chatter that is no answer", flush=True)
        for _ in range(laps.count):
            note("steady")
            laps.end()
        return {"quality": 0.75}

    def settled(laps):
        for _ in range(laps.count):
            note("settled")
            laps.end()
        return {"threads": float(os.environ["OMP_NUM_THREADS"]), "given": float(laps.threads), "mine": float(os.environ["MINE"])}

    def falling(laps):
        laps.end()
        raise RuntimeError("out of breath")

    def note(name):
        with open(os.environ["FAKES_LOG"], "a") as file:
            file.write(name + "\\n")
"""


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Where the fakes write down their laps; workers find the fakes beside it."""
    (tmp_path / "fake_contestants.py").write_text(textwrap.dedent(FAKES))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("FAKES_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def fake(name: str, **changes) -> Contestant:
    return dataclasses.replace(Contestant(name, "fake_contestants", name), **changes)


def row(*contestants: Contestant) -> Row:
    return Row("fake", "nothing at all", contestants, rounds=4, warm_up=2, threads=1)


def test_rounds_are_interleaved_in_changing_orders(log):
    told = []
    found = run_row(row(fake("steady"), fake("settled", environment=(("MINE", "7"),))), rounds=4, tell=told.append)
    assert [len(side.seconds) for side in found.sides] == [4, 4]  # the two of the warm-up are run, not counted
    laps = log.read_text().split()
    assert sorted(laps[:2]) == ["settled", "steady"]
    rounds = [tuple(laps[start : start + 2]) for start in range(2, 12, 2)]
    assert len(laps) == 12
    assert all(sorted(each) == ["settled", "steady"] for each in rounds)
    assert len(set(rounds)) == 2  # each has gone first
    assert found.sides[0].figures == {"quality": 0.75}
    assert found.sides[1].figures == {"threads": 1.0, "given": 1.0, "mine": 7.0}
    assert all(side.peak_bytes > 2**20 for side in found.sides)
    assert [f"round {number} of 4" in text for number, text in enumerate(told, 1)] == [True] * 4


def test_a_missing_peer_is_named_and_a_failing_one_does_not_stop_the_others(log):
    missing = fake("settled", needs=("json", "no_such_package"), target=RatioAtLeast(0.5))
    found = run_row(row(fake("steady"), missing, fake("falling")), rounds=2)
    assert [side.absent for side in found.sides] == [
        "",
        "not installed: pip install no_such_package",
        "failed: RuntimeError: out of breath",
    ]
    assert len(found.sides[0].seconds) == 2
    assert found.verdict(1) is None
    columns, lines = summary(found)
    assert all(len(line) == len(columns) for line in lines)
    assert "not installed: pip install no_such_package" in lines[1]


def test_json_holds_every_number(log):
    target = FigureAtMost("quality", 0.5)
    found = json.loads(json.dumps(run_row(row(fake("steady", target=target)), rounds=3).as_json(), allow_nan=False))
    assert {"name", "title", "threads", "ratio_to", "sides"} == set(found)
    (side,) = found["sides"]
    assert {"name", "target", "met", "seconds", "laps", "peak_bytes", "figures", "ratio"} == set(side)
    assert side["seconds"]["median"] == statistics.median(side["laps"])
    assert side["ratio"] == {"low": 1.0, "median": 1.0, "high": 1.0}
    assert side["target"] == "quality <= 0.5"
    assert side["met"] is False


def test_ratios_are_paired():
    """The load doubles both sides of half the rounds: every pair says 2, the quotient of any one pair of laps may not."""
    first, other = Side("first", (1.0, 2.0, 1.0, 2.0)), Side("other", (2.0, 4.0, 2.0, 4.0))
    assert other.ratio_to(first) == (2.0, 2.0, 2.0)
    crossed = Side("crossed", (2.0, 1.0, 2.0, 1.0))
    assert crossed.ratio_to(first) == (0.5, 1.25, 2.0)
    assert other.ratio_to(Side("gone", absent="not installed")) is None


def test_spread_is_numpys_quartiles():
    for count in (1, 2, 3, 4, 7, 20):
        values = np.random.default_rng(count).random(count)
        assert Spread.of(list(values)) == pytest.approx(np.quantile(values, [0.25, 0.5, 0.75]))


def test_targets_hold_at_their_bound_and_fail_beyond_it():
    first = Side("first", (1.0, 1.0))
    side = Side("side", (2.0, 2.0), figures={"share": 0.05})
    for held, broken in (
        (RatioAtLeast(2.0), RatioAtLeast(2.01)),
        (SecondsAtMost(2.0), SecondsAtMost(1.99)),
        (FigureAtMost("share", 0.05), FigureAtMost("share", 0.049)),
    ):
        measured = Measured("row", "", 1, (first, side, side), (None, held, broken))
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
    laps = Laps(3, 1, Slow(), answers)
    for seconds in (1.0, 2.0, 3.0):
        now += seconds
        laps.end()
    assert [json.loads(line)["seconds"] for line in answers.getvalue().splitlines()] == [1.0, 2.0, 3.0]
    assert laps.clock() == 6.0
    assert now == 206.0  # after the last lap nobody waits


def test_a_worker_left_alone_ends():
    laps = Laps(2, 1, io.StringIO(""), io.StringIO())
    with pytest.raises(SystemExit):
        laps.end()


def test_rows_are_chosen_by_name():
    assert choose_rows([]) == list(ROWS)
    assert [each.name for each in choose_rows(["start", "loop"])] == ["start", "loop"]
    assert [each for each in choose_rows(["attention", "loop"]) if each.group != "attention"] == choose_rows(["loop"])
    assert choose_rows(["attention"]) == [each for each in ROWS if each.group == "attention"]
    with pytest.raises(Mistake, match="did you mean 'loop'"):
        choose_rows(["lop"])
    with pytest.raises(Mistake, match="one round or more"):
        run_row(ROWS[0], rounds=0)


def test_a_side_may_be_held_against_another_than_the_first():
    sides = Side("first", (9.0, 9.0)), Side("quick", (1.0, 2.0)), Side("slow", (2.0, 4.0))
    found = [TimesAsQuickAs("slow", bound).met(sides[1], sides) for bound in (2.0, 2.01)]
    assert found == [True, False]
    assert TimesAsQuickAs("first", 1.0).met(Side("gone", absent="not installed"), sides) is None


CONTESTANTS = {(each.module, each.function): each for found in ROWS for each in found.contestants}  # one may run at many sizes


@pytest.mark.parametrize("contestant", CONTESTANTS.values(), ids=lambda each: each.function)
def test_every_contestant_is_there(contestant):
    """Read, not imported: importing torch, Keras and JAX together here would prove no more."""
    import ast
    import importlib.util

    spec = importlib.util.find_spec(contestant.module)
    assert spec is not None
    assert spec.origin is not None
    with open(spec.origin, encoding="utf-8") as file:
        names = {node.name for node in ast.parse(file.read()).body if isinstance(node, ast.FunctionDef)}
    assert contestant.function in names


def test_choosing_rows_imports_no_torch():
    import subprocess

    code = "import sys, quoin.bench; quoin.bench.choose_rows([]); print(sorted({'torch', 'numpy', 'keras', 'jax'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_quoins_side_learns_what_the_bare_loop_learns():
    """Two epochs of the real loop and of the hand-written one, from one start, end at one quality: the race is over one course."""
    import torch

    from quoin.bench import loop_torch

    threads = torch.get_num_threads()
    figures = []
    try:
        for contestant in (loop_torch.quoin, loop_torch.bare):
            answers = io.StringIO()
            figures.append(contestant(Laps(2, 1, io.StringIO("go\n"), answers))["test accuracy"])
            assert len(answers.getvalue().splitlines()) == 2
    finally:
        torch.set_num_threads(threads)  # which the contestants set for the whole process
    assert figures[0] > 0.3  # ten classes
    assert figures[0] == pytest.approx(figures[1], abs=0.04)  # 4,000 test rows: one standard deviation is below 0.008


def test_the_networks_on_images_are_the_same_on_either_side(monkeypatch):
    """The hand-written LeNet and ResNet have Quoin's weights, one by one; a lap of LeNet ends at one quality from either."""
    import copy

    import torch

    from quoin.bench import images_problem, images_quoin, images_torch

    for ours, theirs in ((images_quoin._lenet(), images_torch._lenet()), (images_quoin._resnet(), images_torch._resnet())):
        assert sorted(each.shape for each in ours.parameters()) == sorted(each.shape for each in theirs.parameters())
    with torch.no_grad():
        start = images_torch._lenet()
        for theirs, ours in zip(start.parameters(), images_quoin._lenet().parameters(), strict=True):
            theirs.copy_(ours)
    monkeypatch.setattr(images_torch, "_lenet", lambda: copy.deepcopy(start))
    threads = torch.get_num_threads()
    short = dataclasses.replace(images_problem.LENET, batch=32, steps=20)
    figures = []
    try:
        for module, contestant in ((images_quoin, "lenet_quoin"), (images_torch, "lenet_eager"), (images_torch, "lenet_channels_last")):
            monkeypatch.setattr(module, "LENET", short)
            figures.append(getattr(module, contestant)(Laps(1, 1, io.StringIO(), io.StringIO()))["test accuracy"])
    finally:
        torch.set_num_threads(threads)
    assert min(figures) > 0.9  # ten classes, told apart by their patterns
