"""Modes of convergence, i.i.d. sums and the Lévy-Prokhorov distance: SciPy, enumeration and linear programming as
peers; the refusals."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from quoin.errors import UserError
from quoin.prob import (
    exceedance,
    iid_distribution,
    iid_sample,
    iid_sum_distribution,
    iid_sum_distribution_definition,
    kolmogorov_distance,
    lp_error,
    prokhorov_distance,
    prokhorov_distance_definition,
    running_means,
    scaled_sums,
    set_probability_gap,
    tail_exceedance,
    total_variation_distance,
    typewriter,
    typewriter_interval,
    weak_gap,
)

seeds = st.integers(0, 10**6)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def laws(seed: int, *sizes: int, dtype=torch.float64) -> list[torch.Tensor]:
    g = generator(seed)
    return [torch.rand(size, generator=g, dtype=dtype).softmax(-1) for size in sizes]


# ---- tables of draws --------------------------------------------------------------------------------------------


@given(seeds, st.integers(1, 6), st.integers(1, 6), st.floats(0.1, 2))
@settings(max_examples=25, deadline=None)
def test_modes_against_loops(seed, w, n, epsilon):
    sequence = torch.randn(w, n, generator=generator(seed), dtype=torch.float64)
    limit = torch.randn(w, generator=generator(seed + 1), dtype=torch.float64)
    away = [[abs(float(sequence[i, j] - limit[i])) for j in range(n)] for i in range(w)]
    for j in range(n):
        assert float(exceedance(sequence, limit, epsilon)[j]) == pytest.approx(
            sum(row[j] > epsilon for row in away) / w
        )
        assert float(tail_exceedance(sequence, limit, epsilon)[j]) == pytest.approx(
            sum(max(row[j:]) > epsilon for row in away) / w
        )
        assert float(lp_error(sequence, limit, 1.7)[j]) == pytest.approx(sum(row[j] ** 1.7 for row in away) / w)


def test_lp_error_has_gradients():
    sequence = torch.randn(3, 2, generator=generator(0), dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda s: lp_error(s, torch.zeros(3, dtype=torch.float64), 2), sequence)


def test_typewriter_by_hand():
    """The first nine intervals, and 1000 blocks against exact fractions."""
    by_hand = [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2), (4, 3)]
    found = typewriter_interval(torch.arange(1, 10))
    assert list(zip(found.parts.tolist(), found.part_index.tolist())) == by_hand
    listed = [(m, j) for m in range(2, 1000) for j in range(m)]
    found = typewriter_interval(torch.arange(1, len(listed) + 1))
    assert list(zip(found.parts.tolist(), found.part_index.tolist())) == listed
    huge = torch.tensor([m * (m - 1) // 2 + d for m in (10**6, 94906267, 10**9) for d in (-1, 0)])
    assert typewriter_interval(huge).parts.tolist() == [10**6 - 1, 10**6, 94906266, 94906267, 10**9 - 1, 10**9]


@given(st.floats(0, 1, exclude_max=True), st.integers(2, 5000))
@settings(max_examples=60, deadline=None)
def test_every_block_strikes_every_omega_once(omega, m):
    n = torch.arange(m * (m - 1) // 2, m * (m + 1) // 2)
    assert float(typewriter(n, torch.tensor(omega, dtype=torch.float64)).sum()) == 1


def test_typewriter_outside():
    n = torch.arange(1, 50)
    for omega in (-0.1, 1.0, 1.5):
        assert float(typewriter(n, torch.tensor(omega)).sum()) == 0


@given(seeds, st.integers(1, 40))
@settings(max_examples=25, deadline=None)
def test_kolmogorov_distance_of_a_sample_is_scipys(seed, size):
    sample = torch.randn(size, generator=generator(seed), dtype=torch.float64).round(decimals=1)  # with ties
    ours = kolmogorov_distance(sample, torch.full((size,), 1 / size, dtype=torch.float64), torch.special.ndtr)
    assert float(ours) == pytest.approx(stats.kstest(sample.numpy(), "norm").statistic, abs=1e-13)


def test_weak_gap():
    x, y = torch.tensor([0.0, 1.0]), torch.tensor([0.5])
    assert float(weak_gap(x, y, [lambda x: x, lambda x: x.square()])) == 0.25
    assert float(set_probability_gap(x, y, lambda x: x > 0.7)) == 0.5


# ---- i.i.d. -----------------------------------------------------------------------------------------------------


def test_iid_law_is_the_product():
    (law,) = laws(0, 3)
    joint = iid_distribution(law, 4)
    for outcome in product(range(3), repeat=4):
        assert float(joint[outcome]) == pytest.approx(math.prod(float(law[i]) for i in outcome))


def test_iid_sample_has_the_law_and_is_independent():
    x = iid_sample(torch.distributions.Cauchy(0.0, 1.0).icdf, 5000, 2, generator=generator(0))
    assert x.dtype == torch.float64
    for column in x.T:
        assert stats.kstest(column.numpy(), "cauchy").pvalue > 1e-6
    assert stats.spearmanr(x[:, 0], x[:, 1]).pvalue > 1e-6


@given(seeds, st.integers(1, 5), st.integers(1, 9), st.sampled_from([torch.float32, torch.float64]))
@settings(max_examples=25, deadline=None)
def test_law_of_a_sum(seed, k, n, dtype):
    (law,) = laws(seed, k, dtype=dtype)
    law = law.requires_grad_()
    definition, fast = iid_sum_distribution_definition(law, n), iid_sum_distribution(law, n)
    torch.testing.assert_close(fast, definition)
    upstream = torch.randn(definition.shape, generator=generator(seed), dtype=dtype)
    grads = [torch.autograd.grad(each, law, upstream) for each in (fast, definition)]
    torch.testing.assert_close(*grads, atol=1e-4 if dtype == torch.float32 else 1e-10, rtol=1e-4)
    expected = np.array([1.0])
    for _ in range(n):
        expected = np.convolve(expected, law.detach().double().numpy())
    np.testing.assert_allclose(
        definition.detach().double().numpy(), expected, atol=1e-6 if dtype == torch.float32 else 1e-14
    )


def test_running_means_and_scaled_sums():
    x = torch.randn(2, 50, generator=generator(1), dtype=torch.float64)
    for n in (1, 7, 50):
        np.testing.assert_allclose(running_means(x)[:, n - 1], x[:, :n].mean(1), atol=1e-14)
        np.testing.assert_allclose(scaled_sums(x)[:, n - 1], x[:, :n].sum(1) / math.sqrt(n), atol=1e-13)


# ---- Lévy-Prokhorov ---------------------------------------------------------------------------------------------


def by_linear_programming(p: np.ndarray, q: np.ndarray, distances: np.ndarray) -> float:
    """Bisection on ε of: the least P[d(X, Y) > ε] over couplings is at most ε."""
    n, m = distances.shape
    margins = np.concatenate([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])

    def far(epsilon: float) -> float:
        cost = (distances.reshape(-1) > epsilon).astype(float)
        return optimize.linprog(cost, A_eq=margins, b_eq=np.concatenate([p, q]), bounds=(0, None)).fun

    low, high = 0.0, 1.0
    for _ in range(22):
        middle = (low + high) / 2
        low, high = (low, middle) if far(middle) <= middle else (middle, high)
    return high


@given(seeds, st.integers(1, 6), st.integers(1, 6), st.sampled_from([torch.float32, torch.float64]))
@settings(max_examples=25, deadline=None)
def test_prokhorov_by_events_and_by_flow(seed, n, m, dtype):
    p, q = (law.requires_grad_() for law in laws(seed, n, m, dtype=dtype))
    points = torch.rand(n + m, 2, generator=generator(seed + 1), dtype=dtype)
    distances = torch.linalg.vector_norm(points[:n, None] - points[n:], dim=-1)
    fast, definition = prokhorov_distance(p, q, distances), prokhorov_distance_definition(p, q, distances)
    torch.testing.assert_close(fast.output, definition)
    torch.testing.assert_close(fast.coupling.sum(1), p.detach())
    torch.testing.assert_close(fast.coupling.sum(0), q.detach())
    grads = [torch.autograd.grad(each, (p, q), allow_unused=True) for each in (fast.output, definition)]
    for ours, theirs in zip(*grads):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("seed", range(3))
def test_prokhorov_against_linear_programming(seed):
    p, q = laws(seed, 5, 4)
    points = torch.rand(9, 1, generator=generator(seed), dtype=torch.float64)
    distances = (points[:5] - points[5:].T).abs()
    expected = by_linear_programming(p.numpy(), q.numpy(), distances.numpy())
    assert float(prokhorov_distance(p, q, distances).output) == pytest.approx(expected, abs=1e-6)


def test_prokhorov_values_by_hand():
    one = torch.ones(1, dtype=torch.float64)
    for a in (0.0, 0.3, 1.0, 7.0):
        assert float(prokhorov_distance(one, one, torch.tensor([[a]], dtype=torch.float64)).output) == pytest.approx(
            min(a, 1)
        )
    p, q = laws(4, 6, 6)
    discrete = 1 - torch.eye(6, dtype=torch.float64)  # at distance one from each other, it is total variation
    assert float(prokhorov_distance(p, q, discrete).output) == pytest.approx(
        float(total_variation_distance(p, q)), abs=1e-14
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: exceedance(torch.zeros(3, 2), torch.zeros(3), 0.0), "positive epsilon"),
        (lambda: exceedance(torch.zeros(3, 2), torch.zeros(2), 1.0), "axis w of limit"),
        (lambda: exceedance(torch.full((1, 1), math.nan), torch.zeros(1), 1.0), "NaN"),
        (lambda: lp_error(torch.zeros(3, 2), torch.zeros(3), 0.5), "from 1 up"),
        (lambda: weak_gap(torch.zeros(3), torch.zeros(2), []), "at least one of each"),
        (lambda: typewriter(torch.tensor([0]), torch.tensor(0.5)), "from 1 up"),
        (lambda: typewriter(torch.tensor([1]), torch.tensor(1)), "float dtype"),
        (
            lambda: kolmogorov_distance(torch.zeros(2), torch.tensor([0.5, 0.6]), torch.special.ndtr),
            "0.1 away from one",
        ),
        (lambda: iid_distribution(torch.full((10,), 0.1), 9), "take fewer"),
        (lambda: iid_sum_distribution(torch.full((10,), 0.1), 0), "1 or more"),
        (lambda: running_means(torch.arange(3)), "float dtype"),
        (lambda: prokhorov_distance(torch.ones(1), torch.ones(1), torch.tensor([[-1.0]])), "from 0 up"),
        (lambda: prokhorov_distance(torch.ones(1), torch.ones(2), torch.ones(1, 2)), "1 away from one"),
        (lambda: prokhorov_distance(torch.ones(1), torch.ones(1), torch.ones(2, 1)), "axis n of distances"),
        (
            lambda: prokhorov_distance_definition(torch.ones(20) / 20, torch.ones(1), torch.ones(20, 1)),
            "use prokhorov_distance",
        ),
    ],
)
def test_refusals(make, words):
    with pytest.raises(UserError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)
