"""Divergences: torch and scipy as peers in value and gradient, brute force over events, the edges, and the words of
each refusal."""

import math

import pytest
import torch
from scipy.spatial import distance as peer
from torch.distributions import Categorical
from torch.distributions import kl_divergence as torch_kl_divergence

from quoin.errors import UserError
from quoin.prob import (
    distribution_cross_entropy,
    kl_divergence,
    lp_distance,
    lp_distance_definition,
    total_variation_distance,
    total_variation_distance_definition,
)


def random_pair(seed: int, dtype: torch.dtype):
    generator = torch.Generator().manual_seed(seed)
    shape = torch.randint(1, 7, (1 + seed % 3,), generator=generator).tolist()
    scores = torch.randn(2, *shape[:-1], shape[-1] + 1, generator=generator, dtype=dtype)
    p, q = scores.softmax(-1)
    return p.requires_grad_(), q.requires_grad_(), generator


def assert_agree(ours, theirs, inputs, generator):
    torch.testing.assert_close(ours, theirs)
    upstream = torch.randn(ours.shape, generator=generator, dtype=ours.dtype)
    grads = [torch.autograd.grad(each, inputs, upstream, retain_graph=True) for each in (ours, theirs)]
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_definitions_agree_with_fast_forms_and_torch(dtype, seed):
    p, q, generator = random_pair(seed, dtype)
    for order in (1, 1.5, 2, 4, math.inf):
        assert_agree(lp_distance_definition(p, q, order), lp_distance(p, q, order), (p, q), generator)
    assert_agree(kl_divergence(p, q), (p * (p / q).log()).sum(-1), (p, q), generator)
    assert_agree(distribution_cross_entropy(p, q), -(p * q.log()).sum(-1), (p, q), generator)
    torch.testing.assert_close(kl_divergence(p, q), torch_kl_divergence(Categorical(p), Categorical(q)))
    torch.testing.assert_close(distribution_cross_entropy(p, p), Categorical(p).entropy())
    assert_agree(total_variation_distance(p, q), (p - q).abs().sum(-1) / 2, (p, q), generator)


@pytest.mark.parametrize("seed", range(0, 9, 3))
def test_total_variation_over_every_event(seed):
    scores = [each.detach().log().requires_grad_() for each in random_pair(seed, torch.float64)[:2]]
    p, q = (each.softmax(-1) for each in scores)
    found = total_variation_distance_definition(p, q)
    # Off the distributions the two formulas part, so gradients are compared in scores, which never leave them.
    assert_agree(found.output, total_variation_distance(p, q), scores, torch.Generator().manual_seed(seed))
    assert float((p - q)[found.event].sum().abs().detach()) == pytest.approx(float(found.output.detach()), abs=1e-15)


def test_lp_distance_agrees_with_scipy():
    p, q, _ = random_pair(5, torch.float64)
    a, b = p.detach().reshape(-1, p.shape[-1]), q.detach().reshape(-1, p.shape[-1])
    for order in (1, 3):
        theirs = [peer.minkowski(x, y, order) for x, y in zip(a.numpy(), b.numpy())]
        assert lp_distance(a, b, order).tolist() == pytest.approx(theirs, rel=1e-13)


def test_values_by_hand():
    p, q = torch.tensor([0.5, 0.5], dtype=torch.float64), torch.tensor([0.25, 0.75], dtype=torch.float64)
    assert kl_divergence(p, q).item() == pytest.approx(0.5 * math.log(4 / 3), rel=1e-14)  # ½ ln 2 + ½ ln ⅔
    assert distribution_cross_entropy(p, q).item() == pytest.approx(0.5 * math.log(16 / 3), rel=1e-14)
    assert total_variation_distance(p, q).item() == 0.25
    assert lp_distance(p, q, 2).item() == pytest.approx(math.sqrt(1 / 8), rel=1e-14)


def test_nothing_times_log_nothing():
    p, q = torch.tensor([0.0, 0.4, 0.6], requires_grad=True), torch.tensor([0.0, 0.5, 0.5], requires_grad=True)
    for divergence in (kl_divergence, distribution_cross_entropy):
        value = divergence(p, q)
        assert value.isfinite()
        assert all(slope.isfinite().all() for slope in torch.autograd.grad(value, (p, q)))
        assert divergence(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([1.0, 0.0, 0.0])).item() == math.inf
        assert divergence(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([1.0, 0.0, 0.0])).item() == 0
    (slope,) = torch.autograd.grad(lp_distance(p, p.detach(), 2), p)  # where the definition has no gradient
    assert slope.tolist() == [0, 0, 0]


def test_rounded_laws_pass():
    thousand = torch.randn(1000, generator=torch.Generator().manual_seed(0)).softmax(-1)
    assert kl_divergence(thousand, thousand).item() == 0
    assert total_variation_distance(thousand.double(), thousand.double()).item() == 0
    half = thousand[:2].half() / thousand[:2].half().sum()
    assert total_variation_distance(half, half).item() == 0


def l2(p, q):
    return lp_distance(p, q, 2)


@pytest.mark.parametrize(
    "divergence",
    [kl_divergence, distribution_cross_entropy, total_variation_distance, total_variation_distance_definition, l2],
)
@pytest.mark.parametrize(
    ("p", "q", "words"),
    [
        ([0.5, 0.4], [0.5, 0.5], "p to be non-negative and to sum to one .* a sum 0.1 away"),
        ([0.5, 0.5], [1.5, -0.5], "q to be non-negative .* least entry of -0.5"),
        ([math.nan, 0.5], [0.5, 0.5], "p to be non-negative"),
        ([math.inf, 0.5], [0.5, 0.5], "p to be non-negative"),
        ([0.5, 0.5], [0.2, 0.3, 0.5], "axis n of q to be 2 as in p, got 3"),
        ([1, 0], [0.5, 0.5], "p as floats"),
        ([], [], "at least one outcome"),
        (1.0, 1.0, "at least one outcome"),
    ],
)
def test_refusals(divergence, p, q, words):
    with pytest.raises(UserError, match=words) as caught:
        divergence(torch.tensor(p), torch.tensor(q))
    assert "\n" not in str(caught.value)


def test_other_refusals():
    law = torch.full((21,), 1 / 21)
    for order in (0.5, 0, -1, math.nan):
        for form in (lp_distance, lp_distance_definition):
            with pytest.raises(UserError, match="at least 1"):
                form(law, law, order)
    with pytest.raises(UserError, match="at most 20 outcomes"):
        total_variation_distance_definition(law, law)
    with pytest.raises(UserError, match="leading axes"):
        kl_divergence(law.expand(2, 21), law)
