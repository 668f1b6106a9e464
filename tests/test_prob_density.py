"""Densities and quadrature: scipy's integrals, closed forms, gradients against differences and formulas, and the words
of each refusal."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from torch import distributions as families

from quoin.errors import UserError
from quoin.info import differential_entropy, differential_entropy_definition
from quoin.prob import (
    Density,
    condition_density,
    condition_normal,
    covariance,
    expectation,
    independence_gap_of_density,
    kl_divergence,
    line_quadrature,
    normal_density_1d,
    product_density,
    support_edges,
    variance,
)

INF = math.inf
LINE = (-INF, -1.0, 0.0, 1.0, INF)
SUM = Density(lambda x, y: x + y, (0, 1), (0, 1))


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


# ---- the rule itself --------------------------------------------------------------------------------------------

INTEGRALS = [  # edges, f, and the integral from the mathematics
    ((0, 1), lambda x: x**-0.5, 2),
    ((0, 1), lambda x: x.log(), -1),
    ((2, 5), lambda x: x**3, (5**4 - 2**4) / 4),
    ((-INF, INF), lambda x: torch.exp(-(x**2)), math.sqrt(math.pi)),
    ((-INF, 1), lambda x: torch.exp(x), math.e),
    ((0, INF), lambda x: torch.exp(4 * x.log() - x), 24),
    ((1, INF), lambda x: x**-1.5, 2),
    ((-INF, 0, INF), lambda x: 1 / (1 + x**2), math.pi),
    ((-INF, 0, INF), lambda x: torch.exp(-x.abs()), 2),
]


@pytest.mark.parametrize(("edges", "f", "integral"), INTEGRALS)
def test_integrals(edges, f, integral):
    x, w = line_quadrature(double(*edges))
    assert float((w * f(x)).sum()) == pytest.approx(integral, abs=1e-9)
    assert bool((x.diff() >= 0).all())
    x, w = line_quadrature(torch.tensor(edges, dtype=torch.float32))
    assert float((w * f(x)).sum()) == pytest.approx(integral, rel=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.floats(-5, 5), st.floats(0.1, 10), st.floats(-2, 2))
def test_a_smooth_integral_agrees_with_scipy(low, width, slope):
    x, w = line_quadrature(double(low, low + width))
    theirs, _ = integrate.quad(lambda x: math.cos(x) * math.exp(slope * x / 5), low, low + width, epsabs=1e-12)
    assert float((w * torch.cos(x) * torch.exp(slope * x / 5)).sum()) == pytest.approx(theirs, abs=1e-9)


def test_an_integral_knows_its_derivatives_in_the_ends():
    a, b = (torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in (0.5, 2.0))
    x, w = line_quadrature(torch.stack([a, b]))
    slopes = torch.autograd.grad((w * x**2).sum(), (a, b))
    assert [float(each) for each in slopes] == pytest.approx([-0.25, 4])  # -f(a) and f(b)
    batch = line_quadrature(double(0, 1, 1, 3).reshape(2, 2))
    torch.testing.assert_close((batch.weights * batch.points).sum(-1), double(0.5, 4))


# ---- one density ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=0, max_size=2), st.integers(0, 99))
def test_the_normal_density_is_that_of_torch(dtype, shape, seed):
    generator = torch.Generator().manual_seed(seed)
    x, mean, raw = (torch.randn(tuple(shape), generator=generator, dtype=dtype).requires_grad_() for _ in range(3))
    std = raw.exp()
    ours, theirs = normal_density_1d(x, mean, std), families.Normal(mean, std).log_prob(x).exp()
    torch.testing.assert_close(ours, theirs)
    slopes = [torch.autograd.grad(each.sum(), (x, mean, raw), retain_graph=True) for each in (ours, theirs)]
    torch.testing.assert_close(*slopes)
    expected = torch.as_tensor(
        stats.norm.pdf(x.detach().numpy(), mean.detach().numpy(), std.detach().numpy()), dtype=dtype
    )
    torch.testing.assert_close(ours.detach(), expected)


LAWS = [
    (families.Normal(double(3)[0], 0.01), stats.norm(3, 0.01)),
    (families.Gamma(double(0.5)[0], 2.0), stats.gamma(0.5, scale=0.5)),
    (families.Beta(double(2)[0], 3.0), stats.beta(2, 3)),
    (families.Cauchy(double(1)[0], 2.0), stats.cauchy(1, 2)),
    (families.Laplace(double(1)[0], 2.0), stats.laplace(1, 2)),
    (families.Uniform(double(1)[0], 3.0), stats.uniform(1, 2)),
    (families.LogNormal(double(0)[0], 2.0), stats.lognorm(2)),
]


@pytest.mark.parametrize(("distribution", "peer"), LAWS, ids=lambda each: type(each).__name__)
def test_probabilities_are_differences_of_the_distribution_function(distribution, peer):
    density = Density.from_distribution(distribution)
    for a, b in ((0.02, 0.3), (0.3, 0.31), (0.5, 0.999)):
        low, high = float(peer.ppf(a)), float(peer.ppf(b))
        assert float(density.probability((low, high))) == pytest.approx(b - a, abs=1e-8)
        # By the indicator the nodes are not told where the jump is, and find it.
        event = lambda x, low=low, high=high: ((low <= x) & (x <= high)).double()  # noqa: E731
        assert float(density.expectation(event)) == pytest.approx(b - a, abs=1e-8)
    assert float(density.probability((-INF, INF))) == pytest.approx(1, abs=1e-7)
    assert float(density.probability((-INF, float(peer.ppf(0.5))))) == pytest.approx(0.5, abs=1e-7)
    for end in peer.support():
        outside = end + math.copysign(1, end - peer.median())
        assert math.isinf(end) or float(density(outside)) == 0


def test_probabilities_and_means_have_gradients_in_the_parameters():
    mean, std = (torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in (0.4, 1.3))
    density = Density(lambda x: normal_density_1d(x, mean, std), LINE)
    ours = torch.autograd.grad(density.probability((-1, 2)), (mean, std))
    normal = families.Normal(mean, std)
    theirs = torch.autograd.grad(normal.cdf(double(2)[0]) - normal.cdf(double(-1)[0]), (mean, std))
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(density.expectation(lambda x: x**2), (mean, std)), (2 * mean, 2 * std)
    )
    low, high = (torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in (1.0, 4.0))
    uniform = Density.from_distribution(families.Uniform(low, high))
    for ours, theirs in (
        (uniform.probability((0, 2)), (2 - low) / (high - low)),
        (uniform.expectation(), (low + high) / 2),
    ):
        torch.testing.assert_close(ours, theirs)
        torch.testing.assert_close(
            *(torch.autograd.grad(each, (low, high), retain_graph=True) for each in (ours, theirs))
        )


def test_a_kink_belongs_at_an_edge():
    triangle = Density(lambda x: 1 - x.abs(), (-1, 0, 1))
    assert float(triangle.expectation(lambda x: x**2)) == pytest.approx(1 / 6, abs=1e-12)
    assert float(variance(triangle)) == pytest.approx(1 / 6, abs=1e-12)


# ---- pairs and triples ------------------------------------------------------------------------------------------


def gaussian(matrix):
    """The centred normal density of two coordinates."""
    (a, c), (_, b) = matrix.tolist()
    det = a * b - c * c
    normalizer = 2 * math.pi * math.sqrt(det)

    def density(x, y):
        return torch.exp(-(b * x**2 - 2 * c * x * y + a * y**2) / (2 * det)) / normalizer

    return Density(density, (-INF, -1.5, 0.0, 1.5, INF), (-INF, -1.0, 0.0, 1.0, INF))


def test_marginals_and_slices_of_a_normal_pair_are_the_known_ones():
    matrix = double(2.0, 0.9, 0.9, 1.0).reshape(2, 2)
    pair, x = gaussian(matrix), torch.linspace(-4, 4, 17, dtype=torch.float64)
    torch.testing.assert_close(pair.marginal(0)(x), normal_density_1d(x, 0.0, math.sqrt(2)))
    torch.testing.assert_close(pair.marginal(1)(x), normal_density_1d(x))
    for y in (-1.0, 0.3, 2.5):
        known = condition_normal(double(0, 0), matrix, [1], double(y))
        slice_ = condition_density(pair, {1: y})
        torch.testing.assert_close(slice_(x), normal_density_1d(x, known.mean[0], known.covariance[0, 0].sqrt()))
        torch.testing.assert_close(expectation(slice_), known.mean[0])
    torch.testing.assert_close(covariance(pair, lambda x, y: x, lambda x, y: y), double(0.9)[0])
    box = float(pair.probability((-1, 0.5), (-INF, 0)))
    peer = stats.multivariate_normal([0, 0], matrix.numpy())
    assert box == pytest.approx(float(peer.cdf([0.5, 0], lower_limit=[-1, -40])), abs=1e-6)


def test_three_coordinates():
    triple = Density(lambda x, y, z: 2 / 3 * (x + y + z), (0, 1), (0, 1), (0, 1), num_nodes=40)
    x, z = torch.linspace(0, 1, 5, dtype=torch.float64), torch.linspace(1, 0.2, 5, dtype=torch.float64)
    torch.testing.assert_close(triple.marginal(0, 2)(x, z), 2 / 3 * (x + z + 0.5))
    torch.testing.assert_close(triple.marginal(2, 0)(z, x), 2 / 3 * (x + z + 0.5))
    torch.testing.assert_close(condition_density(triple, {2: 0.5, 0: 0.25})(x), (x + 0.75) / 1.25)
    torch.testing.assert_close(condition_density(triple, {1: 0.5})(x, z), (x + z + 0.5) / 1.5)


@settings(max_examples=15, deadline=None)
@given(st.floats(-1, 1))
def test_dependence_of_a_tilted_square(theta):
    tilted = Density(lambda x, y: 1 + theta * (1 - 2 * x) * (1 - 2 * y), (0, 0.5, 1), (0, 0.5, 1), num_nodes=40)
    assert float(independence_gap_of_density(tilted, 0)) == pytest.approx(abs(theta) / 8, abs=1e-6)
    y = 0.25
    slice_ = condition_density(tilted, {1: y})
    assert float(slice_(0.1)) == pytest.approx(1 + theta * 0.8 * 0.5, abs=1e-6)


def test_products():
    first, second = Density(lambda x: 2 * x, (0, 1)), Density.from_distribution(families.Exponential(double(1)[0]))
    pair = product_density(first, second)
    assert pair.dim == 2
    assert float(pair(0.5, 1.0)) == pytest.approx(math.exp(-1))
    assert float(independence_gap_of_density(pair, 1)) == pytest.approx(0, abs=1e-10)
    assert float(pair.expectation(lambda x, y: x * y)) == pytest.approx(2 / 3)
    assert float(condition_density(pair, {0: 0.3})(2.0)) == pytest.approx(math.exp(-2))


def test_where_nothing_is_likely_another_law_must_be_named():
    split = Density(lambda x, y: torch.where((y < 1) | (y > 2), x, 0), (0, 1), (0, 1, 2, 3))
    other = Density(lambda x: torch.ones_like(x), (0, 1))
    for nowhere in (1.5, 17.0):
        with pytest.raises(UserError, match=f"{nowhere}.*density 0"):
            condition_density(split, {1: nowhere})
        assert condition_density(split, {1: nowhere}, fallback=other) is other
    assert float(condition_density(split, {1: 2.5}, fallback=other)(0.25)) == pytest.approx(0.5)
    with pytest.raises(UserError, match="in 1 dimensions, got 2"):
        condition_density(split, {1: 1.5}, fallback=split)


def test_edges_of_a_batch():
    laws = families.Normal(double(0, 100), double(1, 0.1))
    edges = support_edges(laws)
    assert edges.shape == (2, 5)
    torch.testing.assert_close(edges[:, 2], double(0, 100))


def mixture(weights, means, stds):
    return families.MixtureSameFamily(
        families.Categorical(double(*weights)), families.Normal(double(*means), double(*stds))
    )


@pytest.mark.parametrize("gap", [20.0, 40.0, 400.0])
@pytest.mark.parametrize("std", [1.0, 0.1, 0.01])
def test_edges_find_every_mode_of_a_mixture(gap, std):
    """Modes that do not touch: KL is that of their weights, and the entropies are sums."""
    p, q = (mixture(weights, (0, gap), (std, std)) for weights in ((0.3, 0.7), (0.6, 0.4)))
    of_weights = 0.3 * math.log(0.3 / 0.6) + 0.7 * math.log(0.7 / 0.4)
    assert float(kl_divergence(p, q)) == pytest.approx(of_weights, rel=1e-9)
    of_normal = 0.5 * math.log(2 * math.pi * math.e * std**2)
    chosen = -(0.3 * math.log(0.3) + 0.7 * math.log(0.7))
    assert float(differential_entropy(p)) == pytest.approx(of_normal + chosen, rel=1e-9)
    assert float(expectation(p)) == pytest.approx(0.7 * gap, rel=1e-9)


def test_edges_of_mixtures_in_a_batch_on_half_lines_and_of_equal_components():
    equal = families.Normal(torch.zeros(2, 3), torch.ones(2, 3))
    edges = support_edges(families.MixtureSameFamily(families.Categorical(torch.ones(2, 3)), equal))
    assert edges.shape == (2, 17)
    assert bool((edges.diff(dim=-1) > 0).all())
    gammas = families.Gamma(double(2, 3), double(1, 500))
    half = families.MixtureSameFamily(families.Categorical(double(0.5, 0.5)), gammas)
    assert float(support_edges(half)[0]) == 0
    assert float(expectation(half)) == pytest.approx(0.5 * (2 + 3 / 500), rel=1e-9)


def test_mass_that_the_nodes_miss_is_told():
    class Elsewhere(families.Normal):
        icdf = families.Distribution.icdf
        mean = property(lambda self: self.loc + 1e3)

    with pytest.raises(UserError, match=r"a probability of 1, got .*; build a Density"):
        kl_divergence(Elsewhere(0.0, 1.0), families.Cauchy(1e3, 1.0))
    with pytest.raises(UserError, match=r"a probability of 1, got .*; build a Density"):
        differential_entropy_definition(Elsewhere(0.0, 1.0))


REFUSED = [
    (lambda: Density(lambda x: 2 * x, (0, 2)), "3 away from one"),
    (lambda: Density(lambda x: 3 * x**2 - 0.5 + x, (0, 1)), "least value of -0.5"),
    (lambda: Density(lambda x: x * math.nan, (0, 1)), "nan"),
    (lambda: Density(lambda x: normal_density_1d(x, 1e3, 1e-3), LINE), "set edges where the mass is"),
    (lambda: Density(lambda x: x), "got none"),
    (lambda: Density(lambda x: x, (1, 0)), "increase"),
    (lambda: Density(lambda x: x, (0, INF, 3)), "increase"),
    (lambda: Density(lambda x: x, (0,)), "two edges"),
    (lambda: Density(lambda x: x, (0, 1), num_nodes=3), "at least 8 nodes"),
    (lambda: Density(lambda *x: x[0], *[(0, 1)] * 5), "nodes in all"),
    (lambda: Density.from_distribution(families.Poisson(2.0)), "got Poisson"),
    (lambda: Density.from_distribution(families.Normal(torch.zeros(2), 1.0)), "got a batch"),
    (lambda: SUM(0.5), "2 coordinates, got 1"),
    (lambda: SUM.expectation(), "function of 2 coordinates"),
    (lambda: SUM.probability((0, 1)), "2 intervals"),
    (lambda: SUM.probability((0, 1), (1, 0)), "2 intervals"),
    (lambda: SUM.marginal(0, 1), "some but not all"),
    (lambda: SUM.marginal(2), "some but not all"),
    (lambda: condition_density(SUM, {}), "some but not all"),
    (lambda: Density.from_distribution(families.Cauchy(0.0, 1.0)).expectation(), "infinite"),
    (lambda: normal_density_1d(torch.zeros(2), 0.0, 0.0), "above zero"),
    (lambda: line_quadrature(torch.tensor([0, 1])), "float dtype"),
    (lambda: line_quadrature(double(0, INF, 0, 1).reshape(2, 2)), "both kinds"),
]


@pytest.mark.parametrize(("mistaken", "words"), REFUSED, ids=range(len(REFUSED)))
def test_refusals_say_what_came(mistaken, words):
    with pytest.raises(UserError) as caught:
        mistaken()
    assert words in str(caught.value)
    assert str(caught.value).startswith("expected")
    assert "\n" not in str(caught.value)
