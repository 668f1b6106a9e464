"""The contract of random features: each map is its definition in value and gradient, safe at any length, and redrawn on
schedule only."""

import math
from functools import partial
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import hyp1f1

from quoin.errors import UserError
from quoin.layers import (
    HyperbolicFeatures,
    PerformerAttention,
    PerformerFeatures,
    PositiveRandomFeatures,
    RandomFourierFeatures,
    RandomProjection,
    antithetic_random_matrix,
    fourier_features_definition,
    fourier_variance,
    gaussian_random_matrix,
    hyperbolic_features_definition,
    hyperbolic_variance,
    orthogonal_random_matrix,
    orthogonal_variance_reduction,
    performer_attention_variance,
    performer_features_definition,
    performer_variance,
    positive_features_definition,
)
from seeds import seeded

LAWS = [gaussian_random_matrix, orthogonal_random_matrix]
DTYPES = [torch.float32, torch.float64]


def performer(width, count, seed, law):
    return PerformerFeatures(width, count, generator=seeded(seed), random_matrix=law)


def cosh(width, count, seed, law):
    return HyperbolicFeatures(width, 2 * count, generator=seeded(seed), random_matrix=law)


def positive(width, count, seed, law):
    return PositiveRandomFeatures(width, count, gamma=0.3, generator=seeded(seed), random_matrix=law)


def fourier(width, count, seed, law):
    return RandomFourierFeatures(width, count, gamma=0.3, generator=seeded(seed), random_matrix=law)


def defined(map, x):
    """What the map says it computes, by its definition."""
    directions = map.projection.matrix.to(x)
    match map:
        case HyperbolicFeatures():
            return hyperbolic_features_definition(math.sqrt(map.scale) * x, directions[: len(directions) // 2])
        case PerformerFeatures():
            return performer_features_definition(math.sqrt(map.scale) * x, directions)
        case PositiveRandomFeatures():
            return positive_features_definition(x, directions, map.gamma)
        case _:
            return fourier_features_definition(x, directions, map.phases.to(x), map.gamma)


MAPS = [performer, cosh, positive, fourier]


@pytest.mark.parametrize("make", MAPS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@settings(max_examples=10, deadline=None)
@given(
    width=st.integers(1, 9),
    count=st.integers(1, 20),
    leading=st.lists(st.integers(1, 3), max_size=2),
    positions=st.integers(0, 5),
    is_query=st.booleans(),
    seed=st.integers(0, 2**31),
    law=st.sampled_from(LAWS),
)
def test_a_map_is_its_definition(make, dtype, width, count, leading, positions, is_query, seed, law):
    map = make(width, count, seed, law).to(dtype)
    x = torch.randn(*leading, positions, width, generator=seeded(seed), dtype=dtype).requires_grad_()
    found = map(x, is_query=is_query)
    whole = found.values if found.log_scale is None else found.values * found.log_scale.exp()
    expected = defined(map, x)
    assert whole.shape == (*leading, positions, map.num_features)
    assert whole.dtype == dtype
    rtol, atol = (1e-4, 1e-5) if dtype == torch.float32 else (1e-11, 1e-13)
    torch.testing.assert_close(whole, expected, rtol=rtol, atol=atol)
    upstream = torch.randn(expected.shape, generator=seeded(seed + 1), dtype=dtype)
    slopes = [torch.autograd.grad(each, x, upstream)[0] for each in (whole, expected)]
    torch.testing.assert_close(*slopes, rtol=rtol, atol=atol * float(1 + expected.detach().abs().sum()))


@pytest.mark.parametrize("make", [performer, cosh, positive], ids=lambda make: make.__name__)
@pytest.mark.parametrize("length", [1e-3, 1.0, 1e2, 1e4, 1e8])
def test_long_vectors_stay_in_the_logarithm(make, length):
    """Exponents worked out in float64; in float32 the features themselves are zeros and infinities."""
    map = make(8, 32, 0, gaussian_random_matrix)
    x = torch.nn.functional.normalize(torch.randn(6, 8, generator=seeded(1)), dim=-1) * length
    x.requires_grad_()
    found = map(x, is_query=False)
    assert found.values.isfinite().all()
    assert found.log_scale.isfinite().all()
    assert torch.equal(found.values.amax(dim=-1), torch.ones(6))
    (slope,) = torch.autograd.grad(found.values.sum(), x)
    assert slope.isfinite().all()
    wide, drawn = x.detach().double(), map.projection.matrix.double()
    if isinstance(map, PerformerFeatures):
        exponents = math.sqrt(map.scale) * wide @ drawn.mT - map.scale / 2 * wide.square().sum(-1, keepdim=True)
    else:
        exponents = math.sqrt(0.6) * wide @ drawn.mT - 0.6 * wide.square().sum(-1, keepdim=True)
    log_features = found.values.log().double() + found.log_scale.double() + math.log(map.num_features) / 2
    seen = found.values > 1e-30  # below it floats have fewer digits
    size = float(exponents.abs().max())
    torch.testing.assert_close(log_features[seen], exponents[seen], rtol=1e-4, atol=1e-5 * (1 + size))


@pytest.mark.parametrize("make", MAPS, ids=lambda make: make.__name__)
def test_half_precision_is_widened_and_autocast_is_kept_out(make):
    map = make(64, 128, 0, gaussian_random_matrix)
    x = torch.randn(2, 5, 64, generator=seeded(1))
    wide = map(x.bfloat16().float(), is_query=True)
    half = map(x.bfloat16(), is_query=True)
    assert half.values.dtype == torch.float32
    torch.testing.assert_close(half.values, wide.values)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = map(x, is_query=True).values
    torch.testing.assert_close(inside, map(x, is_query=True).values)


# ---- directions -------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(count=st.integers(1, 30), width=st.integers(1, 8), seed=st.integers(0, 2**31))
def test_orthogonal_directions_stand_at_right_angles_in_blocks(count, width, seed):
    found = orthogonal_random_matrix(count, width, generator=seeded(seed))
    assert found.shape == (count, width)
    for block in torch.nn.functional.normalize(found, dim=-1).split(width):
        torch.testing.assert_close(block @ block.mT, torch.eye(len(block), dtype=torch.float64), rtol=0, atol=1e-10)


@pytest.mark.parametrize("law", [*LAWS, partial(antithetic_random_matrix, random_matrix=orthogonal_random_matrix)])
def test_each_direction_alone_is_standard_normal(law):
    """Means, covariances and fourth moments of 60,000 directions, each at six standard errors."""
    found = law(60_000, 3, generator=seeded(0))
    assert float(found.mean(dim=0).abs().max()) < 6 / math.sqrt(60_000)
    torch.testing.assert_close(
        found.mT @ found / 60_000, torch.eye(3, dtype=torch.float64), rtol=0, atol=6 * math.sqrt(2 / 30_000)
    )
    assert float(found.pow(4).mean(dim=0).sub(3).abs().max()) < 6 * math.sqrt(96 / 30_000)
    first = found[
        0::3
    ]  # the place in a block says nothing about the distribution: lengths are χ² of three degrees everywhere
    assert float(first.square().sum(dim=1).mean()) == pytest.approx(3, abs=6 * math.sqrt(6 / 20_000) * 1.5)


def test_opposites_come_in_pairs():
    found = antithetic_random_matrix(6, 2, generator=seeded())
    assert torch.equal(found[:3], -found[3:])
    with pytest.raises(UserError, match="even number of features"):
        antithetic_random_matrix(5, 2, generator=seeded())


@pytest.mark.parametrize("causal", [False, True])
def test_directions_are_redrawn_in_training_only_and_between_passes(causal):
    attention = PerformerAttention(3, 4, generator=seeded(), redraw_interval=2, chunk_size=2)
    q, k, v = torch.randn(3, 1, 1, 5, 3, generator=seeded(1)).unbind()

    def seen():
        output = attention(q, k, v, causal=causal)
        # Queries and keys of a pass look along the same directions; asking for the weights is no pass.
        torch.testing.assert_close(output, attention.weights(q, k, causal=causal) @ v)
        return attention.feature_map.projection.matrix

    draws = [seen() for _ in range(6)]
    assert [torch.equal(a, b) for a, b in pairwise(draws)] == [True, False, True, False, True]
    attention.eval()
    assert all(torch.equal(seen(), draws[-1]) for _ in range(5))
    still = PerformerAttention(3, 4, generator=seeded())
    for _ in range(5):
        still(q, k, v)
    assert torch.equal(still.feature_map.projection.matrix, draws[0])


def test_every_rank_and_a_resumed_run_see_the_same_draws():
    x = torch.randn(3, 1, 1, 5, 3, generator=seeded(1))

    def advance(attention, passes):
        drawn = []
        for _ in range(passes):
            attention(*x)
            drawn.append(attention.feature_map.projection.matrix.clone())
        return drawn

    def make(seed=0):
        return PerformerAttention(3, 4, generator=seeded(seed), redraw_interval=3)

    whole, other_rank, begun = make(), make(), make()
    expected = advance(whole, 11)
    for ours, theirs in zip(expected, advance(other_rank, 11), strict=True):
        assert torch.equal(ours, theirs)
    first = advance(begun, 4)
    resumed = make(seed=99)
    resumed.load_state_dict(begun.state_dict())
    for ours, theirs in zip(expected, [*first, *advance(resumed, 7)], strict=True):
        assert torch.equal(ours, theirs)
    assert not torch.equal(expected[0], make(seed=1).feature_map.projection.matrix)


def test_a_graph_from_before_a_draw_can_still_go_back():
    map = PerformerFeatures(3, 4, generator=seeded())
    x = torch.randn(5, 3, generator=seeded(1), requires_grad=True)
    first = map(x, is_query=True).values
    (expected,) = torch.autograd.grad(map(x, is_query=True).values.sum(), x)
    held = map.projection.matrix.clone()
    map.projection.redraw()
    assert not torch.equal(held, map.projection.matrix)
    (slope,) = torch.autograd.grad(first.sum(), x)
    assert torch.equal(slope, expected)


# ---- attention --------------------------------------------------------------------------------------------------


@settings(max_examples=10, deadline=None)
@given(
    n=st.integers(1, 7),
    m=st.integers(1, 7),
    v=st.integers(1, 4),
    length=st.sampled_from([1.0, 30.0]),
    seed=st.integers(0, 2**31),
)
def test_performer_attention_is_its_equation(n, m, v, length, seed):
    """Σ_m φ_m(q) S_m / Σ_m φ_m(q) E_m written out from the definition of φ, in value and gradient; long vectors by
    logarithms."""
    generator = seeded(seed)
    attention = PerformerAttention(3, 6, generator=generator, chunk_size=2).double()
    q, k, value = (
        torch.randn(1, 1, count, width, generator=generator, dtype=torch.float64)
        for count, width in ((n, 3), (m, 3), (m, v))
    )
    inputs = [(length * q).requires_grad_(), (length * k).requires_grad_(), value.requires_grad_()]
    directions = attention.feature_map.projection.matrix

    def log_features(x):
        x = x / 3**0.25
        return x @ directions.mT - x.square().sum(dim=-1, keepdim=True) / 2

    scores = torch.logsumexp(log_features(inputs[0]).unsqueeze(-2) + log_features(inputs[1]).unsqueeze(-3), dim=-1)
    expected = scores.softmax(dim=-1) @ value
    found = attention(*inputs)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    upstream = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    for ours, theirs in zip(
        torch.autograd.grad(found, inputs, upstream), torch.autograd.grad(expected, inputs, upstream), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-7)


def test_the_variance_of_performer_attention_is_seen_in_draws():
    """2,000 draws of 256 independent features: mean squared errors are the closed form, to six standard errors and its
    second order."""
    generator, draws, count = seeded(0), 2000, 256
    query, key, value = 0.3 * torch.randn(3, 4, 3, generator=generator, dtype=torch.float64)
    exact = torch.softmax(query @ key.mT / math.sqrt(3), dim=-1) @ value
    bank = gaussian_random_matrix(draws * count, 3, generator=generator)
    phi_q, phi_k = (
        performer_features_definition(x / 3**0.25, bank).unflatten(-1, (draws, count)).transpose(0, 1)
        for x in (query, key)
    )
    scores = phi_q @ phi_k.mT
    errors = (scores / scores.sum(dim=-1, keepdim=True) @ value - exact).square()
    expected = performer_attention_variance(query, key, value, count)
    near = 6 * errors.std(dim=0) / math.sqrt(draws) + 0.03 * expected
    assert ((errors.mean(dim=0) - expected).abs() < near).all()
    assert (near < 0.35 * expected).all()  # tight enough to tell


# ---- errors in closed form --------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("size", [0.0, 1e-3, 0.5, 3.0, 30.0])
def test_the_saving_of_right_angles_is_kummers_function(width, size):
    """Against SciPy's M; the whole saving is for k = d directions, (d - 1)/d of what one pair saves."""
    x = torch.zeros(width, dtype=torch.float64)
    y = torch.full((width,), math.sqrt(size / width), dtype=torch.float64)
    expected = (1 - math.exp(-size) * hyp1f1(width, width / 2, size / 2)) * (width - 1) / width
    found = float(orthogonal_variance_reduction(x, y, width))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert found >= 0
    assert found <= float(performer_variance(x, y, width)) + 1e-12
    assert float(orthogonal_variance_reduction(x, y, 1)) == 0


def test_variances_of_simple_pairs():
    zero, unit = torch.zeros(2, dtype=torch.float64), torch.tensor([1.0, 0.0], dtype=torch.float64)
    assert float(performer_variance(unit, -unit, 5)) == 0  # e^{ω·0} is no estimate but the truth
    assert float(hyperbolic_variance(unit, -unit, 5)) == 0
    # x = 0, |y| = 1: the estimate is e^{-1/2} e^{ω·y} with variance e - 1, and e^{-1/2} cosh with ½ (e - 1) (1 - 1/e).
    assert float(performer_variance(zero, unit, 4)) == pytest.approx((math.e - 1) / 4)
    assert float(hyperbolic_variance(zero, unit, 4)) == pytest.approx((math.e - 1) * (1 - 1 / math.e) / 4)
    assert float(fourier_variance(unit, unit, 10, 0.7)) == pytest.approx(0.05)  # 2 cos²(...) has variance ½
    assert float(fourier_variance(unit, 100 * unit, 10, 0.7)) == pytest.approx(0.1)


# ---- mistakes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PerformerFeatures(4, 0, generator=seeded()), "at least one feature"),
        (lambda: PerformerFeatures(0, 4, generator=seeded()), "at least one feature"),
        (lambda: HyperbolicFeatures(4, 7, generator=seeded()), "give 8"),
        (lambda: PerformerFeatures(4, 8, generator=seeded(), scale=-1.0), "scale of scores above 0"),
        (lambda: PerformerFeatures(4, 8, generator=seeded(), redraw_interval=-1), "redraw_interval"),
        (lambda: PerformerFeatures(4, 8, generator=seeded())(torch.zeros(2, 5), is_query=True), "4 entries"),
        (lambda: RandomFourierFeatures(4, 8, gamma=0.0, generator=seeded()), "gamma above 0"),
        (lambda: PositiveRandomFeatures(4, 8, gamma=-1.0, generator=seeded()), "gamma above 0"),
        (lambda: PositiveRandomFeatures(4, 8, gamma=math.nan, generator=seeded()), "gamma above 0"),
        (lambda: performer_features_definition(torch.zeros(3), torch.zeros(5, 4)), "axis d of projection"),
        (lambda: performer_features_definition(torch.zeros(3, dtype=torch.int64), torch.zeros(5, 3)), "int64"),
        (lambda: performer_variance(torch.zeros(3), torch.zeros(3), 0), "at least one feature"),
        (lambda: orthogonal_random_matrix(0, 3, generator=seeded()), "at least one feature"),
        (lambda: RandomProjection(4, 3, generator=seeded())(torch.tensor(1.0)), "3 entries"),
    ],
)
def test_mistakes_are_told_in_one_line(call, words):
    with pytest.raises(UserError, match=words) as told:
        call()
    assert "\n" not in str(told.value)
