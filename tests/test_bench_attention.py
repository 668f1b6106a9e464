"""`quoin bench attention`: what its rows compute, and what is read off them, on numbers whose answers are known
beforehand."""

import io
import math

import pytest
import torch

from quoin.bench import BenchmarkResult, Measurement, attention_findings, attention_tables, write_overview
from quoin.bench.attention_benchmarks import (
    ATTENTION_BENCHMARKS,
    FORMS,
    LENGTHS,
    WORKS,
    benchmark_name,
    calls_per_repeat,
)
from quoin.bench.worker import Repeats
from quoin.cli.output import print_table

# A call's seconds and MiB, as functions of n, chosen so that every finding can be worked out by hand.
COSTS = {
    "exact, causal": (lambda n: 1e-9 * n**2, lambda n: 3.0 * n),
    "torch sdpa, causal": (lambda n: 0.99e-9 * n**2, lambda n: 3.0 * n),
    "elu + 1": (lambda n: 0.9e-6 * n, lambda n: 5.0 * n),
    "elu + 1, causal": (lambda n: 1.1e-9 * n**1.5 * 1024**0.5, lambda n: 5.0 * n**1.2),
    "einsum + cumsum, causal": (lambda n: 30 * 1.1e-9 * n**1.5 * 1024**0.5, lambda n: 5.0 * n),
    "Performer": (lambda n: 3.9e-6 * n, lambda n: 5.0 * n),
    "performer-pytorch": (lambda n: 2 * 3.9e-6 * n, lambda n: 5.0 * n),
    "Performer, causal": (lambda n: 1.0, lambda n: 5.0 * n),
}


def measured(work: str, length: int, *, absent: str = "performer-pytorch, causal") -> BenchmarkResult:
    row = next(each for each in ATTENTION_BENCHMARKS if each.name == benchmark_name(work, length))
    sides = []
    for each in row.implementations:
        if each.name == absent:
            sides.append(Measurement(each.name, absent="not installed: pip install performer_pytorch"))
            continue
        seconds, mebibytes = (cost(length) for cost in COSTS[each.name])
        load = (1.0, 2.0, 1.0)  # which comes and goes, and strikes all sides of a round
        repeats = tuple(calls_per_repeat(length) * seconds * factor for factor in load)
        sides.append(Measurement(each.name, repeats, 0, {"MiB": mebibytes, "relative error": 0.1}))
    return BenchmarkResult(row.name, row.title, 2, tuple(sides), (None,) * len(sides))


def told() -> dict[str, tuple]:
    found = [measured("forward", length) for length in LENGTHS]
    return {each.what: (each.value, each.met) for each in attention_findings(found) if each.work == "forward"}


def test_the_page_of_all_benchmarks_shows_the_findings(tmp_path):
    """By length in one table, and each finding with its target; none of the rows one by one."""
    found = [measured("forward", length) for length in LENGTHS]
    page = tmp_path / "page.md"
    write_overview(page, [], {each.name: "today, here" for each in found}, attention=found)
    text = page.read_text()
    verdicts = [each.met for each in attention_findings(found)]
    assert f"{verdicts.count(True)} targets met, {verdicts.count(False)} missed." in text
    assert "## Attention by length" in text
    assert "| forward | elu + 1 beats exact causal attention from | 1024 | <= 1024 | met |" in text
    assert "| forward | elu + 1, causal beats exact causal attention from | 2048 | <= 1024 | **missed** |" in text
    assert "attention-forward-256`" in text  # when and where it was measured
    assert "| attention-forward-256 |" not in text
    write_overview(page, [], {})
    assert "0 targets met, 0 missed." in page.read_text()
    assert "Attention by length" not in page.read_text()


def test_crossovers_are_the_first_length_from_which_on_a_form_is_quicker():
    found = told()
    assert found["elu + 1 beats exact causal attention from"] == (1024, True)  # 0.9e-6 n < 1e-9 n² from 900 on
    assert found["elu + 1, causal beats exact causal attention from"] == (2048, False)  # from 1.21 · 1024 on
    assert found["Performer beats exact causal attention from"] == (4096, False)  # from 3900 on
    assert found["Performer, causal beats exact causal attention from"] == (
        None,
        False,
    )  # never below 31,623, where exact is not run


def test_powers_and_ratios():
    found = told()
    for what, power, met in (
        ("elu + 1: power of n in time", 1.0, True),
        ("elu + 1, causal: power of n in time", 1.5, False),
        ("elu + 1, causal: power of n in memory", 1.2, False),
        ("Performer: power of n in memory", 1.0, True),
        ("Performer, causal: power of n in time", 0.0, True),
        ("exact, causal: power of n in time", 2.0, None),
    ):
        value, verdict = found[f"{what}, from 4096 on"]
        assert value == pytest.approx(power, abs=1e-9)
        assert verdict is met
    assert found["torch sdpa's time over exact attention's"] == (pytest.approx(0.99), True)
    assert found["einsum + cumsum, causal: its time over ours at 4096"] == (pytest.approx(30), True)
    assert found["performer-pytorch: its time over ours at 4096"] == (pytest.approx(2), False)
    assert found["performer-pytorch, causal: its time over ours"] == (None, None)  # absent: nothing is held against it


def test_tables_show_every_form_and_say_who_is_absent(capsys):
    tables = attention_tables([measured("forward", length) for length in LENGTHS])
    for table in tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
        print_table(table.columns, table.rows, title=table.title)
    page = capsys.readouterr().out
    assert "forward, ms a call" in page
    assert "training, ms a call" not in page  # nothing of it was run
    assert "pip install performer_pytorch" in page
    times = next(table for table in tables if table.title == "forward, ms a call")
    assert [row[0] for row in times.rows] == [form.name for form in FORMS]
    assert times.rows[0][1] == f"{1000 * 1e-9 * 256**2:.3g}"
    assert times.rows[0][-1] is None  # exact attention stops at 16,384


def test_no_form_runs_where_its_work_has_no_row():
    for form in FORMS:
        for work, lengths in WORKS.items():
            assert set(form.lengths[work]) <= set(lengths)


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.function)
def test_contestants_compute_what_they_say(form, work, monkeypatch):
    """Three repeats at 40 positions, against exact attention at the last queries and, for elu + 1, against its own
    quadratic form."""
    module = pytest.importorskip(form.module)
    if form.needs:
        pytest.importorskip(form.needs[0])
    from quoin.bench import attention_problem

    seen = {}

    def look(output, query, key, value, causal):
        seen.update(o=output, q=query, k=key, v=value, c=causal)
        return 0.0

    monkeypatch.setattr(attention_problem, "_off_exact", look)
    monkeypatch.setattr(attention_problem, "calls_per_repeat", lambda length: 1)
    threads = torch.get_num_threads()
    try:
        figures = getattr(module, form.function)(Repeats(3, 1, io.StringIO("go\n" * 3), io.StringIO()), "40", work)
    finally:
        torch.set_num_threads(threads)
    assert set(figures) == {"MiB", "relative error"}
    output, query, key, value, causal = (seen[name].detach() if name != "c" else seen[name] for name in "oqkvc")
    assert causal == (form.name.endswith(", causal"))
    kept = torch.ones(40, 40, dtype=torch.bool).tril() if causal else torch.ones(40, 40, dtype=torch.bool)
    if "elu" in form.name or "cumsum" in form.name:
        weights = (torch.nn.functional.elu(query) + 1) @ (torch.nn.functional.elu(key) + 1).mT * kept
        within = 1e-5
    else:
        weights = (query @ key.mT / 8).exp() * kept
        within = 1e-5 if "exact" in form.name or "sdpa" in form.name else 0.5  # 256 features estimate, and no more
    expected = weights / weights.sum(-1, keepdim=True) @ value
    off = float((output - expected).norm() / expected.norm())
    assert off < within
    if work == "training":
        assert all(seen[name].grad is not None and seen[name].grad.isfinite().all() for name in "qkv")


def test_off_exact_is_zero_for_exact_attention_and_one_for_nothing():
    from quoin.bench.attention_problem import _off_exact

    query, key, value = (torch.randn(1, 8, 30, 64, generator=torch.Generator().manual_seed(seed)) for seed in range(3))
    for causal in (False, True):
        exact = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        assert _off_exact(exact, query, key, value, causal) < 1e-5
        assert math.isclose(_off_exact(torch.zeros_like(exact), query, key, value, causal), 1.0, rel_tol=1e-5)
        assert _off_exact(exact, query, key, value, not causal) > 0.01
