"""The contract of what measures samples: definitions and fast forms agree, and both with scipy and with what is known
exactly."""

import math

import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KernelDensity as TheirDensity
from torch import Tensor

from quoin.errors import UserError
from quoin.metrics import (
    bits_per_dimension,
    density_and_coverage,
    density_and_coverage_definition,
    nearest_distances,
    nearest_distances_definition,
    nn_distance_ratio,
    sample_quality,
)
from quoin.models import PPCA, DensityModel, GaussianKDE, GenerativeModel
from quoin.prob import (
    discrepancy,
    median_heuristic,
    rbf_mixture_kernel,
    squared_frechet_definition,
    squared_frechet_of_samples,
    squared_mmd,
    squared_mmd_definition,
)
from seeds import seeded

TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-9}
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**32)
few = settings(deadline=None, max_examples=15)


def near(ours: Tensor, theirs: Tensor, leaves: list[Tensor]) -> None:
    """The same value and the same slopes in all leaves, up to rounding."""
    assert ours.dtype == theirs.dtype
    weights = torch.linspace(1, 2, ours.numel(), dtype=ours.dtype).reshape(ours.shape)
    pairs = [(ours, theirs)]
    pairs += zip(*(torch.autograd.grad((each * weights).sum(), leaves) for each in (ours, theirs)), strict=True)
    for mine, its in pairs:
        assert mine.shape == its.shape
        assert float((mine - its).detach().abs().max()) <= TOLERANCE[ours.dtype] * max(
            1.0, float(its.detach().abs().max())
        )


@few
@given(
    seeds, dtypes, st.integers(2, 9), st.integers(2, 9), st.integers(1, 4), st.sampled_from([(1.0,), (0.5, 1.0, 3.0)])
)
def test_mmd_agrees_with_its_definition(seed, dtype, n, m, d, widths):
    x, y = (torch.randn(rows, d, generator=seeded(seed + rows), dtype=dtype).requires_grad_() for rows in (n, m))
    near(squared_mmd(x, y, widths), squared_mmd_definition(x, y, rbf_mixture_kernel(widths)), [x, y])


def test_mmd_in_blocks_and_far_from_the_origin(monkeypatch):
    x, y = (
        torch.randn(40, 3, generator=seeded(0), dtype=torch.float64),
        torch.randn(30, 3, generator=seeded(1), dtype=torch.float64) + 0.5,
    )
    whole = squared_mmd(x, y, [1.0])
    monkeypatch.setattr(discrepancy, "rows_per_block", lambda numbers: 2)
    assert torch.isclose(squared_mmd(x, y, [1.0]), whole, rtol=1e-12)
    assert torch.isclose(squared_mmd(x + 1e4, y + 1e4, [1.0]), whole, rtol=0, atol=1e-7)


def test_mmd_by_hand():
    """Two points at distance 2 against two at the origin: e^-2 + 1 - 2 (½ + ½ e^-2) = 0; without pairs of a point with
    itself."""
    found = squared_mmd(torch.tensor([[0.0], [2.0]]), torch.zeros(2, 1), [1.0])
    assert abs(float(found)) < 1e-7
    apart = squared_mmd(torch.zeros(3, 1), torch.full((2, 1), 2.0), [1.0])
    assert float(apart) == pytest.approx(2 - 2 * math.exp(-2))
    assert (
        float(squared_mmd_definition(torch.zeros(3, 1), torch.full((2, 1), 2.0), lambda x, y: (x * y).sum(-1))) == 4.0
    )  # |0 - 2|²


@few
@given(seeds, dtypes, st.integers(6, 12), st.integers(6, 12), st.integers(1, 4))
def test_frechet_of_samples_agrees_with_its_definition(seed, dtype, n, m, d):
    x, y = (torch.randn(rows, d, generator=seeded(seed + rows), dtype=dtype).requires_grad_() for rows in (n, m))
    definition = squared_frechet_definition(
        x.mean(0), torch.cov(x.mT).reshape(d, d), y.mean(0), torch.cov(y.mT).reshape(d, d)
    )
    near(squared_frechet_of_samples(x, y), definition, [x, y])


@few
@given(seeds, st.integers(1, 6))
def test_frechet_agrees_with_scipy(seed, d):
    roots = torch.randn(2, d, d + 2, generator=seeded(seed), dtype=torch.float64)
    p, q = roots @ roots.mT
    mean = torch.randn(2, d, generator=seeded(seed + 1), dtype=torch.float64)
    theirs = (mean[0] - mean[1]).square().sum() + np.trace(
        p.numpy() + q.numpy() - 2 * np.real(scipy.linalg.sqrtm(p.numpy() @ q.numpy()))
    )
    assert float(squared_frechet_definition(mean[0], p, mean[1], q)) == pytest.approx(float(theirs), rel=1e-7, abs=1e-7)


def test_frechet_of_few_samples_in_many_dimensions():
    """Fewer samples than dimensions: covariances are singular, and equal samples are still at distance 0."""
    x = torch.randn(5, 30, generator=seeded(0), dtype=torch.float64)
    assert float(squared_frechet_of_samples(x, x)) < 1e-12
    assert float(squared_frechet_of_samples(x, x + 1)) == pytest.approx(30)
    y = torch.randn(4, 30, generator=seeded(1), dtype=torch.float64)
    definition = squared_frechet_definition(x.mean(0), torch.cov(x.mT), y.mean(0), torch.cov(y.mT))
    assert float(squared_frechet_of_samples(x, y)) == pytest.approx(float(definition), rel=1e-6)


@few
@given(seeds, dtypes, st.integers(3, 9), st.integers(1, 9), st.integers(1, 3), st.integers(1, 2))
def test_density_and_coverage_agree_with_their_definition(seed, dtype, n, m, d, k):
    # On a coarse grid, so that points coincide and distances tie.
    real, samples = (torch.randint(0, 4, (rows, d), generator=seeded(seed + rows)).to(dtype) for rows in (n, m))
    assert density_and_coverage(real, samples, k) == pytest.approx(density_and_coverage_definition(real, samples, k))


def test_density_and_coverage_of_known_sets():
    real = torch.arange(20.0).unsqueeze(-1)  # a ball of radius 1 about each inner one, and about the two ends
    assert density_and_coverage(real, real, 1) == pytest.approx(
        (58 / 20, 1.0)
    )  # itself and its neighbours; k counts but one
    half = density_and_coverage(real, real[:10], 1)
    assert half.coverage == 11 / 20  # balls 0 to 9, and that of 10, which holds 9
    assert density_and_coverage(real, torch.full((50, 1), -30.0), 3) == (0.0, 0.0)
    one_spot = density_and_coverage(real, torch.full((50, 1), 7.0), 2)
    assert one_spot.density > 1 > one_spot.coverage  # all in the midst of real examples, and hardly any of them met


@few
@given(seeds, dtypes, st.integers(1, 8), st.integers(1, 8), st.integers(1, 4))
def test_nearest_distances_agree_with_their_definition(seed, dtype, n, m, d):
    x, y = (torch.randn(rows, d, generator=seeded(seed + rows), dtype=dtype).requires_grad_() for rows in (n, m + 10))
    near(nearest_distances(x, y), nearest_distances_definition(x, y), [x, y])


def test_nearness_finds_copies():
    train, real = torch.randn(400, 3, generator=seeded(0)), torch.randn(200, 3, generator=seeded(1))
    assert nn_distance_ratio(train[:100], real, train) == 0
    assert 0.8 < nn_distance_ratio(torch.randn(400, 3, generator=seeded(2)), real, train) < 1.25
    assert nn_distance_ratio(10 * torch.randn(400, 3, generator=seeded(2)), real, train) > 5


def test_bits_per_dimension_of_a_uniform_law():
    assert bits_per_dimension(torch.full((7,), -64 * math.log(16)), 64) == pytest.approx(4.0)


def pictures(count: int, seed: int, center: float = 0.0) -> Tensor:
    return center + torch.randn(count, 1, 4, 4, generator=seeded(seed))


def test_sample_quality_orders_what_is_known():
    """The same distribution, one beside it, half of it, and copies: each fault is seen by the measure that is made for
    it."""
    real, train = pictures(300, 0), pictures(500, 1)
    two_modes = torch.cat([pictures(150, 2), pictures(150, 3, center=8.0)])

    def quality(samples: Tensor, real: Tensor = real):
        return sample_quality(samples, real, lambda images: images.flatten(1)[:, :3], train=train)

    same, moved, copied = quality(pictures(300, 4)), quality(pictures(300, 4, center=1.0)), quality(train[:300])
    assert abs(same.mmd) < 0.005 < 0.1 < moved.mmd
    assert same.frechet < 0.2 < 2.5 < moved.frechet < 3.6  # three features, each moved by 1
    assert 0.9 < same.density < 1.1
    assert same.coverage > 0.9 > moved.coverage
    assert copied.nn_distance_ratio == 0 < 0.9 < same.nn_distance_ratio < 1.1
    dropped = quality(pictures(300, 5), real=two_modes)
    assert 0.4 < dropped.coverage < 0.55 < 0.9 < dropped.density  # one of two modes, well drawn


@few
@given(seeds, dtypes, st.integers(1, 6), st.sampled_from([(1,), (2, 3), (3, 2, 2)]))
def test_smoothed_samples_agree_with_scikit_learn(seed, dtype, n, shape):
    examples, places = (torch.randn(rows, *shape, generator=seeded(seed + rows), dtype=dtype) for rows in (n, 7))
    model = GaussianKDE(examples, 0.7)
    theirs = TheirDensity(bandwidth=0.7).fit(examples.flatten(1).numpy()).score_samples(places.flatten(1).numpy())
    assert torch.allclose(
        model.log_prob(places).double(),
        torch.from_numpy(theirs).double(),
        rtol=1e-4 if dtype == torch.float32 else 1e-9,
    )


def test_smoothed_samples_draw_from_their_law():
    model = GaussianKDE(torch.tensor([[[0.0, 0.0]], [[4.0, 2.0]]]), 0.5)
    drawn = model.sample(20_000, generator=seeded(0))
    assert drawn.shape == (20_000, 1, 2)
    assert torch.allclose(drawn.mean(0), torch.tensor([[2.0, 1.0]]), atol=0.08)  # five standard errors
    assert torch.allclose(drawn.var(0), torch.tensor([[4.25, 1.25]]), rtol=0.05)
    assert torch.equal(drawn, model.sample(20_000, generator=seeded(0)))


def test_smoothed_samples_choose_their_noise_by_other_examples():
    examples, others = torch.randn(300, 2, generator=seeded(0)), torch.randn(300, 2, generator=seeded(1))
    noises = torch.tensor([1e-3, 0.3, 30.0])
    assert GaussianKDE.fit(examples, others, noises).bandwidth == pytest.approx(0.3)
    assert GaussianKDE.fit(examples, examples, noises).bandwidth == pytest.approx(1e-3)  # itself: copying looks best


def test_what_is_a_generative_model():
    assert isinstance(GaussianKDE(torch.zeros(1, 2), 1.0), DensityModel)
    assert isinstance(PPCA(torch.ones(3, 1), torch.zeros(3), 1.0), GenerativeModel)
    assert not isinstance(torch.nn.Linear(1, 1), GenerativeModel)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: squared_mmd(torch.zeros(1, 2), torch.zeros(4, 2), [1.0]),
            "at least two examples in each sample, got 1 in first",
        ),
        (lambda: squared_mmd(torch.zeros(3, 2), torch.zeros(4, 2), [0.0]), "each above 0, got \\[0.0\\]"),
        (lambda: squared_mmd(torch.zeros(3, 2), torch.zeros(4, 2), []), "one bandwidth or more"),
        (lambda: squared_mmd(torch.zeros(3, 2), torch.full((4, 2), math.nan), [1.0]), "finite entries of second"),
        (lambda: median_heuristic(torch.zeros(5, 2)), "points that differ"),
        (
            lambda: squared_frechet_of_samples(torch.zeros(3, 2), torch.zeros(1, 2)),
            "two examples to fit a distribution to, got 1 in second",
        ),
        (
            lambda: density_and_coverage(torch.zeros(5, 2), torch.zeros(5, 2), 5),
            "from 1 to 4 neighbours among 5 real examples, got 5",
        ),
        *(
            (
                lambda form=form: form(torch.zeros(0, 2), torch.zeros(5, 2)),
                r"at least one example on each side, got shapes \(0, 2\) and \(5, 2\)",
            )
            for form in (nearest_distances, nearest_distances_definition)
        ),
        (lambda: nn_distance_ratio(torch.ones(3, 2), torch.zeros(3, 2), torch.zeros(5, 2)), "mostly copies"),
        (
            lambda: sample_quality(torch.zeros(9, 2), torch.zeros(9, 3), torch.sin, train=torch.zeros(9, 3)),
            "samples of shape \\(n, 3\\)",
        ),
        (lambda: bits_per_dimension(torch.zeros(0), 4), "examples of at least one number"),
        (lambda: GaussianKDE(torch.zeros(0, 2), 1.0), "at least one"),
        (lambda: GaussianKDE(torch.zeros(3, 2), 0.0), "width above 0"),
        (
            lambda: GaussianKDE(torch.zeros(3, 2), 1.0).sample(0, generator=seeded(0)),
            "at least one example to sample, got 0",
        ),
        (lambda: GaussianKDE(torch.zeros(3, 2), 1.0).log_prob(torch.zeros(3, 4)), "shape \\(n, 2\\)"),
        (lambda: GaussianKDE.fit(torch.zeros(3, 2), torch.zeros(3, 2), torch.tensor([])), "noises to try"),
    ],
)
def test_mistakes_are_told_in_one_line(call, told):
    with pytest.raises(UserError, match=told) as caught:
        call()
    assert "\n" not in str(caught.value)
