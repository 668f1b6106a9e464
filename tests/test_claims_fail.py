"""Every claim fails where a block that it measures is wrong: no verdict "holds" is given to whatever is computed.

A block is made wrong by wrong_blocks.py, in one way after the other, until the evidence breaks its bound. A claim that
only ends in an exception does not count: it has measured nothing.
"""

import ast
import inspect
import itertools
import math
import time
from collections.abc import Iterator

import pytest

from quoin.notes import claims
from quoin.notes.claims import rounding, runner
from quoin.notes.claims.claim import Claim, Evidence
from wrong_blocks import (
    WAYS,
    blinded,
    blocks_of,
    by_chance,
    claim_modules,
    clearly,
    not_a_number,
    slightly,
    wrong_forms,
)

# Claims whose blocks no general way makes wrong, for they give verdicts, networks or counts. All but one have a wrong
# block of their own in test_claims_bite.py.
BY_HAND = {
    "autodiff.tape_agrees_with_torch",
    "chains.networks_give_normal_distributions",
    "convexity.second_derivative_decides",
    "convexity.segments_stay_inside",
    "depth.narrow_networks_approximate",
    "depth.narrow_networks_of_many_variables",
    "descent.learning_rates",
    "images.neighbours_correlate",
    "initialisation.equal_units_stay_equal",
    "linear_algebra.p_is_at_least_one",
    "linear_algebra.power_iteration_needs_one_dominant_eigenvalue",
    "linear_models_classes.outputs_need_not_sum_to_one",
    "processes.gaussian_walk_adds_covariances",
    "random_features.cost_is_a_product",
    "recurrent.clipping_keeps_the_direction",
    "regions.order_keeps_below_the_bound",
    "regions.regions_of_one_layer",
    "residual.gradients_pass_fifty_layers",
}
TRUE_OF_ANY_BLOCK = {"approximation.three_terms"}  # the triangle inequality; that the printed form fails is the claim
# Their claims take a second or more each.
SLOW = {
    "activations",
    "convergence",
    "convexity",
    "dense_spans",
    "densities",
    "descent",
    "diffusion_samplers",
    "divergence_of_densities",
    "elbo",
    "generalisation",
    "inductive_bias",
    "information_densities",
    "initialisation",
    "linear_attention",
    "pixelcnn",
    "positions",
    "tensors",
}
# Claims that rightly hold where these blocks give NaN.
RIGHT_WITHOUT = {
    ("mixtures.likelihood_never_falls", "precisions"),  # EM then takes the form that needs none
    ("hmm.likelihood_never_falls", "relative"),  # so does Baum-Welch
    ("depth.width_for_many_outputs", "affine_distance"),  # of the printed form alone, which must not hold
}
PATIENCE = 300.0  # seconds for one claim, tens of times what the slowest takes


def short_name(claim: Claim) -> str:
    return claim.name.split("claims.")[1]


EVERY = {short_name(each): each for each in claims.collect()}
CASES = [
    pytest.param(name, marks=[pytest.mark.deep] if name.partition(".")[0] in SLOW else [])
    for name in EVERY
    if name not in BY_HAND | TRUE_OF_ANY_BLOCK
]


def what_breaks(claim: Claim) -> str:
    """The first wrong block with which the claim fails on its evidence, or nothing."""
    blocks, began = blocks_of(claim), time.monotonic()
    for way in WAYS:
        for block, places in blocks.items():
            for name, wrong in wrong_forms(claim, block, places, way):
                with wrong as changed:
                    outcome = changed.run()
                if outcome.verdict == "fails" and outcome.evidence.cases:
                    return f"{name}, {way.__name__}"
                if time.monotonic() - began > PATIENCE:
                    return ""
    return ""


def fails(wrong) -> bool:
    with wrong as changed:
        outcome = changed.run()
    return outcome.verdict == "fails" and bool(outcome.evidence.cases)


def holds_without(claim: Claim) -> Iterator[str]:
    """Blocks whose wrong numbers the claim sees, and whose NaN it does not."""
    for block, places in blocks_of(claim).items():
        for number, (name, wrong) in enumerate(wrong_forms(claim, block, places, not_a_number)):
            with wrong as changed:
                if changed.run().verdict == "fails":
                    continue
            if any(
                fails(next(itertools.islice(wrong_forms(claim, block, places, way), number, None))[1])
                for way in (clearly, slightly, by_chance)
            ):
                yield name


def test_every_exception_is_a_claim():
    assert (BY_HAND | TRUE_OF_ANY_BLOCK | {name for name, _ in RIGHT_WITHOUT}) - EVERY.keys() == set()
    assert {name.partition(".")[0] for name in EVERY} >= SLOW


@pytest.mark.parametrize("name", CASES)
def test_a_claim_fails_where_a_block_is_wrong(name):
    assert what_breaks(EVERY[name]), f"none of {sorted(each.__name__ for each in blocks_of(EVERY[name]))} matters"


@pytest.mark.deep
@pytest.mark.parametrize("name", [each for each in EVERY if each.partition(".")[0] not in SLOW])
def test_a_claim_sees_a_block_that_gives_no_number(name):
    """Python's `max(worst, nan)` is `worst`, and `nan > bound` is false: written so, a claim holds of NaN."""
    assert [
        block for block in holds_without(EVERY[name]) if (name, block.rpartition(".")[-1]) not in RIGHT_WITHOUT
    ] == []


@pytest.mark.parametrize(
    "module",
    [each for each in claim_modules() if each is not runner],  # which has no claims, but counts processes
    ids=lambda module: module.__name__.rpartition(".")[-1],
)
def test_the_worst_of_many_is_not_pythons(module):
    names = {each.id for each in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(each, ast.Name)}
    assert all(getattr(module, name, None) is getattr(rounding, name) for name in {"max", "min"} & names)


@pytest.mark.parametrize("numbers", [(1.0, math.nan), (math.nan, 1.0), (2.0, math.nan, 1.0)])
def test_nan_is_the_worst_of_many(numbers):
    for choose in (rounding.max, rounding.min):
        assert math.isnan(choose(*numbers))
        assert math.isnan(choose(list(numbers)))
        assert math.isnan(choose([(number, 0) for number in numbers], key=lambda pair: pair[0])[0])
    assert (rounding.max(3, 1, 2), rounding.min([3, 1, 2]), rounding.max("ab", "c", key=len)) == (3, 1, "ab")
    assert rounding.distance(math.nan, 1.0) == math.inf
    assert rounding.distance(0.25, 1.0) == 0.75


def test_what_is_infinitely_far_keeps_no_bound():
    assert not Evidence("distance", math.inf, 1.0, "exact", 1, ">=").holds


def test_a_claim_that_nothing_can_break_is_found_out():
    """The check itself: the same claim, but what it measured is left out of its evidence."""
    claim = EVERY["losses.softmax_is_shift_invariant"]
    assert what_breaks(claim)
    assert blocks_of(blinded(claim)).keys() >= blocks_of(claim).keys()  # so that all of them are tried
    assert not what_breaks(blinded(claim))
