"""Every claim fails where a block that it measures is wrong: no verdict "holds" is given to whatever is computed.

A block is made wrong by wrong_blocks.py, in one way after the other, until the evidence breaks its bound. A claim that
only ends in an exception does not count: it has measured nothing.
"""

import time

import pytest

from quoin.notes import claims
from quoin.notes.claims.claim import Claim
from wrong_blocks import WAYS, blinded, blocks_of, wrong_forms

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


def test_every_exception_is_a_claim():
    assert (BY_HAND | TRUE_OF_ANY_BLOCK) - EVERY.keys() == set()
    assert {name.partition(".")[0] for name in EVERY} >= SLOW


@pytest.mark.parametrize("name", CASES)
def test_a_claim_fails_where_a_block_is_wrong(name):
    assert what_breaks(EVERY[name]), f"none of {sorted(each.__name__ for each in blocks_of(EVERY[name]))} matters"


def test_a_claim_that_nothing_can_break_is_found_out():
    """The check itself: the same claim, but what it measured is left out of its evidence."""
    claim = EVERY["losses.softmax_is_shift_invariant"]
    assert what_breaks(claim)
    assert blocks_of(blinded(claim)).keys() >= blocks_of(claim).keys()  # so that all of them are tried
    assert not what_breaks(blinded(claim))
