"""The machinery that lets a sentence fail: evidence, errata, seeds, processes."""

import importlib
import json
import math
import sys
from typing import Any

import pytest
import torch

from quoin.errors import UserError
from quoin.notes import claims
from quoin.notes.claims import Evidence, claim

INVENTED = """
import os
import torch
from quoin.notes.claims import Evidence, claim

def measured(value, bound=1.0): return Evidence("value", value, bound, "exact", 1)

@claim("Z3.4", "a sample")
def sample(generator): return measured(torch.rand((), generator=generator, dtype=torch.float64))

@claim("Z3.5", "another sample, of the global generator")
def other(generator): return measured(torch.rand((), dtype=torch.float64))

@claim("Z3.9", "broken")
def broken(generator): raise KeyError("no such\\nthing")

@claim("Z3.10", "quits")
def quits(generator): raise SystemExit(3)

@claim("Z3.13", "returns nothing")
def nothing(generator): pass

@claim("Z3.15", "false")
def false(generator): return measured(2.0)

@claim("Z3.18", "its process dies")
def dies(generator): os._exit(1)
"""


@pytest.fixture
def invented(tmp_path, monkeypatch):
    """The claims of a module that worker processes can import too."""
    (tmp_path / "invented_claims.py").write_text(INVENTED)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("invented_claims")
    del sys.modules["invented_claims"]


def evidence(value: Any, bound: Any = 1.0, cases: int = 1, comparison: Any = "<=") -> Evidence:
    return Evidence("value", value, bound, "exact", cases, comparison)


@pytest.mark.parametrize(
    ("value", "comparison", "holds"),
    [
        (1.0, "<=", True),
        (1.1, "<=", False),
        (1.0, ">=", True),
        (0.9, ">=", False),
        (1.0, "==", True),
        (0.9, "==", False),
        (math.nan, "<=", False),
        (math.nan, ">=", False),
        (math.nan, "==", False),
        (math.inf, "<=", False),
    ],
)
def test_evidence_holds_when_its_value_keeps_the_bound(value, comparison, holds):
    assert evidence(value, comparison=comparison).holds is holds


def test_evidence_that_could_not_fail_does_not_hold():
    assert not evidence(0.0, cases=0).holds
    assert not evidence(0.0, math.inf).holds
    assert not evidence(0.0, math.nan).holds


def test_evidence_takes_tensors_and_gives_strict_json():
    taken = evidence(torch.tensor(0.5), torch.tensor(1.0))
    assert (type(taken.value), type(taken.bound)) == (float, float)
    assert json.loads(json.dumps(evidence(math.nan).as_json(), allow_nan=False))["value"] == "nan"
    with pytest.raises(ValueError, match="comparison"):
        evidence(0.0, comparison="<")


def of_form(form, generator):
    return evidence(form())


def raises(error):
    def form():
        raise error

    return form


@pytest.mark.parametrize(
    ("right", "printed", "verdict"),
    [
        (lambda: 0.0, lambda: 2.0, "holds"),
        (lambda: 0.0, lambda: 0.0, "fails"),  # the printed form passes: nothing was shown to be wrong
        (lambda: 2.0, lambda: 2.0, "fails"),
        (lambda: 2.0, lambda: 0.0, "fails"),
        (lambda: 0.0, lambda: math.nan, "holds"),
        (lambda: math.nan, lambda: 2.0, "fails"),
        (lambda: 0.0, raises(RuntimeError("shapes do not fit")), "holds"),  # ill-defined as printed
        (lambda: 0.0, raises(NameError("no such name")), "fails"),  # our slip, not the printer's
        (raises(RuntimeError("shapes do not fit")), lambda: 2.0, "fails"),
    ],
)
def test_an_erratum_holds_only_if_right_passes_and_printed_fails(right, printed, verdict):
    outcome = claim("ZE7", "s", right=right, printed=printed)(of_form).run()
    assert outcome.verdict == verdict


def test_an_erratum_keeps_the_evidence_of_both_forms():
    outcome = claim("ZE7", "s", right=lambda: 0.25, printed=lambda: 2.5)(of_form).run()
    assert outcome.printed is not None
    assert (outcome.evidence.value, outcome.printed.value) == (0.25, 2.5)
    assert "2.5" in outcome.evidence.counterexample
    assert json.loads(json.dumps(outcome.as_json()))["evidence"]["printed"]["value"] == 2.5


def test_both_forms_meet_the_same_cases():
    sampled = []

    @claim("ZE7", "s", right=lambda: 0.0, printed=lambda: 2.0)
    def erratum(form, generator):
        sampled.append(torch.rand(3, generator=generator))
        return evidence(form())

    erratum.run()
    assert torch.equal(*sampled)


def test_json_has_the_documented_fields(invented):
    written = json.loads(json.dumps(invented.sample.run().as_json(), allow_nan=False))
    assert list(written) == ["ids", "statement", "not_shown", "verdict", "evidence", "seconds"]
    assert (written["ids"], written["statement"], written["verdict"]) == (["Z3.4"], "a sample", "holds")
    assert {"quantity", "value", "bound", "source", "cases"} <= set(written["evidence"])


def test_a_claim_of_several_ids_is_one_claim_with_all_of_them():
    outcome = claim(("Z3.9", "Z3.10"), "s")(invented_holds).run()
    assert outcome.as_json()["ids"] == ["Z3.9", "Z3.10"]
    assert outcome.id == "Z3.9"


def test_what_a_claim_does_not_show_travels_with_its_outcome(invented):
    partly = claim("Z3.9", "s", not_shown="all n above 5")(invented_holds)
    assert partly.run().not_shown == partly.run().as_json()["not_shown"] == "all n above 5"
    assert invented.sample.run().as_json()["not_shown"] == ""


def invented_holds(generator):
    return evidence(0.0)


@pytest.mark.parametrize(
    ("name", "word"), [("broken", "KeyError"), ("quits", "SystemExit"), ("nothing", "NoneType"), ("false", "")]
)
def test_a_broken_or_false_claim_fails_and_ends_nothing(invented, name, word):
    outcome = getattr(invented, name).run()
    assert outcome.verdict == "fails"
    assert word in outcome.evidence.counterexample
    assert "\n" not in outcome.evidence.counterexample
    json.dumps(outcome.as_json(), allow_nan=False)


def test_numbers_depend_on_the_seed_and_the_claim_alone(invented):
    for one in (invented.sample, invented.other):
        first = one.run(0).evidence
        torch.rand(7)
        assert one.run(0).evidence == first
        assert one.run(1).evidence != first
    assert invented.sample.run(0).evidence.value != invented.other.run(0).evidence.value


def test_a_run_leaves_the_global_generator_and_the_threads_alone(invented):
    state, threads = torch.manual_seed(1).get_state(), torch.get_num_threads()
    invented.other.run()
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_parallel_equals_serial(invented):
    several = [
        invented.sample,
        invented.broken,
        invented.other,
        invented.quits,
        *claims.select(claims.collect(), ["3"]),
    ]
    serial = list(claims.check(several, seed=5, num_workers=1))
    parallel = list(claims.check(several, seed=5, num_workers=2))
    assert [o.ids for o in parallel] == [one.ids for one in several]

    def of(outcomes):  # as text, because NaN equals nothing
        return [(o.verdict, str(o.evidence), repr(o.evidence.value), str(o.printed)) for o in outcomes]

    assert of(parallel) == of(serial)


def test_a_worker_that_dies_is_a_failed_claim(invented):
    outcomes = list(claims.check([invented.dies, invented.dies], num_workers=2))
    assert [o.verdict for o in outcomes] == ["fails", "fails"]
    assert "BrokenProcessPool" in outcomes[0].evidence.counterexample


@pytest.mark.parametrize(
    "declare",
    [
        lambda: claim("Z99.9", "s"),
        lambda: claim((), "s"),
        lambda: claim("Z3.4", " "),
        lambda: claim("ZE7", "s", right=abs),
        lambda: claim("ZE7", "s", printed=abs),
        lambda: claim("ZE7", "s")(of_form),
        lambda: claim("ZE7", "s", right=abs, printed=abs)(invented_holds),
    ],
)
def test_a_misdeclared_claim_fails_at_import(declare):
    with pytest.raises(ValueError, match=r"claim|ids"):
        declare()


def test_our_claims_are_collected_once_each_and_chosen_by_words():
    ours = claims.collect()
    assert len({one.name for one in ours}) == len(ours) > 20
    assert {id for one in claims.select(ours, ["ze7"]) for id in one.ids} == {"ZE7"}
    with pytest.raises(UserError, match="ZE7"):
        claims.select(ours, ["ZE77"])


@pytest.mark.parametrize("one", claims.collect(), ids=lambda one: f"{one.ids[0]}-{one.function.__name__}")
def test_our_claims_hold(one):
    outcome = one.run()
    assert outcome.verdict == "holds", f"{outcome.evidence} {outcome.evidence.counterexample}"
