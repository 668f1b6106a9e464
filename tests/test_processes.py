"""Walks, kernels, the Markov test, functions of a chain and histories: brute force, closed forms and SciPy as peers;
the refusals."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from quoin.errors import UserError
from quoin.prob import (
    BrownianMotion,
    GaussianRandomWalk,
    GaussianTransition,
    KernelChain,
    MarkovChain,
    MultivariateNormal,
    RandomWalk,
    augment_history,
    function_distribution,
    history_chain,
    lumpability_test,
    markov_gaps,
    markov_test,
    next_distribution,
    stationary_distribution,
)

FIVE = torch.tensor(
    [[0, 0, 0.5, 0, 0.5], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0.2] * 5, [0, 0, 0, 1, 0]], dtype=torch.float64
)
LABELS = torch.tensor([0, 0, 0, 1, 1])
seeds = st.integers(0, 10**6)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(seed: int, *shape: int) -> torch.Tensor:
    weights = torch.rand(shape, generator=generator(seed), dtype=torch.float64) + 0.02
    return weights / weights.sum(-1, keepdim=True)


# ---- the Markov test --------------------------------------------------------------------------------------------


def test_the_five_state_example_in_exact_fractions():
    """The counterexample's numbers from fractions and sums over paths, without any of our code."""
    matrix = [[Fraction(x).limit_denominator(10) for x in row] for row in FIVE.tolist()]
    start = [Fraction(n, 24) for n in (6, 5, 4, 5, 4)]
    assert [sum(start[i] * matrix[i][j] for i in range(5)) for j in range(5)] == start
    assert stationary_distribution(FIVE).tolist() == pytest.approx([float(p) for p in start], abs=1e-15)
    joint = {y: Fraction(0) for y in product((0, 1), repeat=3)}
    for a, b, c in product(range(5), repeat=3):
        joint[tuple(LABELS[[a, b, c]].tolist())] += start[a] * matrix[a][b] * matrix[b][c]
    found = function_distribution(MarkovChain(stationary_distribution(FIVE), FIVE), LABELS, 2)
    for past, expected in (((0, 0), Fraction(5, 24)), ((1, 0), Fraction(1, 6))):
        assert joint[*past, 1] / (joint[*past, 0] + joint[*past, 1]) == expected
        assert float(next_distribution(found, past)[1]) == pytest.approx(float(expected), abs=1e-15)
    for y, probability in joint.items():
        assert float(found[y]) == pytest.approx(float(probability), abs=1e-15)


def test_the_markov_test_finds_the_example():
    joint = function_distribution(MarkovChain(stationary_distribution(FIVE), FIVE), LABELS, 2)
    by_present = {each.history[-1]: each for each in markov_gaps(joint)}
    after_one = by_present[0]
    assert after_one.output == pytest.approx(5 / 24 - 1 / 6, abs=1e-14)
    assert {after_one.history, after_one.other} == {(0, 0), (1, 0)}
    for past, probability in zip((after_one.history, after_one.other), after_one.probabilities):
        assert float(next_distribution(joint, past)[after_one.next]) == pytest.approx(probability, abs=1e-15)
    worst = markov_test(joint)
    assert not worst.holds
    assert (worst.output, {worst.history, worst.other}) == (
        pytest.approx(0.5),
        {(0, 1), (1, 1)},
    )  # 4 or 5 can tell more


@given(seeds, st.integers(2, 3), st.integers(2, 4))
@settings(max_examples=25, deadline=None)
def test_gaps_against_brute_force(seed, k, n):
    joint = rows(seed, k ** (n + 1)).reshape((k,) * (n + 1))
    expected = 0.0
    for t in range(2, n + 1):
        laws = {h: np.array([float(joint[(*h, x)].sum()) for x in range(k)]) for h in product(range(k), repeat=t)}
        laws = {h: law / law.sum() for h, law in laws.items()}
        expected = max(expected, *(np.abs(laws[a] - laws[b]).max() for a in laws for b in laws if a[-1] == b[-1]))
    assert markov_test(joint).output == pytest.approx(expected, abs=1e-12)
    assert markov_test(MarkovChain(rows(seed, k), rows(seed + 1, k, k)).joint_distribution(n)).holds


@pytest.mark.parametrize("seed", range(5))
def test_float32_does_not_make_a_chain_forget_that_it_is_one(seed):
    """Rows that agree only up to rounding are no counterexample: the chain itself, and a function that lumps it
    exactly."""
    chain = MarkovChain(rows(seed, 5).float(), rows(seed + 1, 5, 5).float())
    assert markov_test(chain.joint_distribution(4)).holds
    assert lumpability_test(chain, torch.arange(5)).holds
    labels, between = torch.tensor([0, 0, 0, 1, 1]), rows(seed + 2, 2, 2).float()
    blocks = torch.cat(
        [rows(seed + 3, 5, 3).float() * between[labels, :1], rows(seed + 4, 5, 2).float() * between[labels, 1:]], dim=1
    )
    lumped = MarkovChain(chain.initial, blocks)
    assert lumpability_test(lumped, labels).holds
    assert not lumpability_test(chain, labels).holds
    assert not markov_test(function_distribution(chain, labels, 3)).holds


def test_pasts_that_cannot_happen_do_not_count():
    joint = torch.zeros(2, 2, 2, dtype=torch.float64)
    joint[0, 0, 0], joint[0, 1, 1] = 0.5, 0.5  # X_0 = 1 is impossible
    assert markov_test(joint).output == 0
    with pytest.raises(UserError, match=r"\(1, 0\) of probability 0"):
        next_distribution(joint, (1, 0))


@given(seeds, st.integers(2, 5), st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_all_horizons_against_one(seed, k, m):
    """From a stationary start, the test over all horizons says no exactly where some horizon does (k + 1 steps are
    enough to span)."""
    labels = torch.randint(m, (k,), generator=generator(seed))
    labels = torch.unique(labels, return_inverse=True)[1]
    matrix = rows(seed, k, k)
    if seed % 2:  # made lumpable: the states of one value go to each value alike
        one = torch.nn.functional.one_hot(labels).double()
        between = rows(seed + 1, one.shape[1], one.shape[1])
        matrix = matrix / (matrix @ one)[:, labels] * between[labels][:, labels]
    chain = MarkovChain(stationary_distribution(matrix), matrix)
    whole, some = lumpability_test(chain, labels), markov_test(function_distribution(chain, labels, k + 1))
    assert whole.holds == some.holds
    if seed % 2:
        assert whole.holds
    if not whole.holds:
        joint = function_distribution(chain, labels, max(len(whole.history), len(whole.other)))
        for past, probability in zip((whole.history, whole.other), whole.probabilities):
            assert float(next_distribution(joint, past)[whole.next]) == pytest.approx(probability, abs=1e-12)


def test_a_gap_that_only_a_long_past_shows():
    """A ring of six states seen as 0 0 0 0 0 1: how long ago the 1 was decides, which no past of two steps can tell."""
    ring = torch.eye(6, dtype=torch.float64).roll(1, dims=1)
    chain, labels = MarkovChain(torch.eye(6, dtype=torch.float64)[0], ring), torch.tensor([0, 0, 0, 0, 0, 1])
    assert markov_test(function_distribution(chain, labels, 4)).holds
    found = lumpability_test(chain, labels)
    assert not found.holds
    assert len(found.history) == 5


# ---- histories --------------------------------------------------------------------------------------------------


@given(seeds, st.integers(1, 3), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_the_history_chain_has_the_law_of_the_process(seed, k, length):
    joint = rows(seed, k**length) * (torch.rand(k**length, generator=generator(seed + 1)) < 0.6)
    joint[0] += 0.1
    joint = (joint / joint.sum()).reshape((k,) * length)
    chain, words = history_chain(joint)
    place = {tuple(word.tolist()): state for state, word in enumerate(words)}
    assert len(place) == len(words) == sum(k**t for t in range(1, length + 1))
    for path in product(range(k), repeat=length):
        states = [place[tuple(word.tolist())] for word in augment_history(torch.tensor(path))]
        assert float(chain.log_prob(torch.tensor(states)).exp()) == pytest.approx(float(joint[path]), abs=1e-14)


# ---- walks and kernels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("up", [0.0, 0.3, 0.5, 1.0])
def test_random_walk_law(up):
    law = RandomWalk(up).distribution(5)
    expected = stats.binom.pmf(np.arange(7), 6, up)
    np.testing.assert_allclose(law.output, expected, atol=1e-14)
    assert law.positions.tolist() == [-6, -4, -2, 0, 2, 4, 6]
    chain_distribution = RandomWalk(up).chain(5).distribution(5)
    np.testing.assert_allclose(chain_distribution[law.positions + 6], expected, atol=1e-14)
    assert float(chain_distribution.sum()) == pytest.approx(1)


def test_random_walk_paths():
    paths = RandomWalk(0.3).sample_paths(8, 5000, generator=generator(0))
    assert bool((paths.diff(dim=1).abs() == 1).all())
    assert bool((paths[:, 0].abs() == 1).all())
    counts = torch.bincount((paths[:, -1] + 9) // 2, minlength=10).double()
    assert stats.chisquare(counts, 5000 * RandomWalk(0.3).distribution(8).output).pvalue > 1e-6


def test_gaussian_walk():
    covariance = torch.tensor([[2.0, 0.6], [0.6, 1.0]], dtype=torch.float64)
    walk = GaussianRandomWalk(torch.tensor([1.0, -1.0], dtype=torch.float64), covariance)
    last = walk.sample_paths(7, 20_000, generator=generator(1))[:, -1]
    law = walk.distribution(7)
    assert torch.equal(law.covariance, 7 * covariance)
    whitened = torch.linalg.solve_triangular(torch.linalg.cholesky(law.covariance), (last - law.mean).T, upper=False)
    for coordinate in whitened:
        assert stats.kstest(coordinate.numpy(), "norm").pvalue > 1e-6
    assert abs(float(torch.corrcoef(whitened)[0, 1])) < 6 / math.sqrt(20_000)
    path = walk.sample_paths(3, 4, generator=generator(2))
    flat = stats.multivariate_normal([0, 0], covariance.numpy())
    expected = [sum(flat.logpdf((row[t + 1] - row[t]).numpy()) for t in range(3)) for row in path]
    np.testing.assert_allclose(walk.log_prob(path), expected, rtol=1e-12)
    assert walk.log_prob(path + 1).tolist() == [-math.inf] * 4  # it does not start there
    with pytest.raises(UserError, match="from X_0 on"):
        walk.log_prob(path[..., :1])


def test_kernel_chain_is_the_gaussian_walk_step_by_step():
    covariance = torch.tensor([[1.0, 0.5], [0.5, 2.0]], dtype=torch.float64)
    start = MultivariateNormal(torch.zeros(2, dtype=torch.float64), 3 * torch.eye(2, dtype=torch.float64))
    chain = KernelChain(start, GaussianTransition(covariance))
    paths = chain.sample_paths(4, 20_000, generator=generator(3))
    assert paths.shape == (20_000, 5, 2)
    expected = start.covariance + 4 * covariance
    spread = (paths[:, -1].T.cov() - expected).abs() / expected.abs().max()
    assert float(spread.max()) < 6 * math.sqrt(2 / 20_000)
    few = paths[:3]
    by_hand = stats.multivariate_normal([0, 0], start.covariance.numpy()).logpdf(few[:, 0].numpy())
    step = stats.multivariate_normal([0, 0], covariance.numpy())
    by_hand = by_hand + step.logpdf(few.diff(dim=1).numpy()).sum(axis=1)
    np.testing.assert_allclose(chain.log_prob(few), by_hand, rtol=1e-12)


def test_brownian_motion():
    times = torch.tensor([0.0, 0.1, 0.4, 0.4, 1.0, 2.5], dtype=torch.float64)
    paths = BrownianMotion(dim=2).sample_paths(times, 20_000, generator=generator(4))
    assert bool((paths[:, 0] == 0).all())
    assert torch.equal(paths[:, 2], paths[:, 3])  # no time, no step
    expected = np.minimum.outer(times.numpy(), times.numpy())
    assert torch.equal(BrownianMotion().covariance(times), torch.from_numpy(expected))
    for coordinate in paths.unbind(dim=-1):
        assert float((coordinate.T.cov() - torch.from_numpy(expected)).abs().max()) < 6 * 2.5 * math.sqrt(2 / 20_000)
    increments = (paths[:, 4] - paths[:, 2]) / math.sqrt(0.6)
    assert stats.kstest(increments.reshape(-1).numpy(), "norm").pvalue > 1e-6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RandomWalk(1.2), "from 0 to 1"),
        (lambda: RandomWalk().distribution(-1), "from 0 up"),
        (lambda: BrownianMotion(0), "at least one dimension"),
        (lambda: BrownianMotion().sample_paths(torch.tensor([0.0, 0.5, 0.3]), generator=generator(0)), "0.3 after 0.5"),
        (lambda: BrownianMotion().sample_paths(torch.tensor([-1.0]), generator=generator(0)), "rise from 0"),
        (lambda: GaussianTransition(torch.tensor([[1.0, 2.0], [0.0, 1.0]])), "symmetric"),
        (lambda: GaussianTransition(torch.tensor([[1.0, 2.0], [2.0, 1.0]])), "positive semi-definite"),
        (
            lambda: function_distribution(MarkovChain(torch.ones(2) / 2, torch.eye(2)), torch.tensor([0, 1, 1]), 2),
            "axis k of labels",
        ),
        (
            lambda: function_distribution(MarkovChain(torch.ones(2) / 2, torch.eye(2)), torch.tensor([0, 1]), 60),
            "fewer steps",
        ),
        (lambda: markov_test(torch.ones(2, 2, 2)), "sum 7 away from one"),
        (lambda: next_distribution(torch.full((2, 2), 0.25), (0, 1)), "leave a time"),
        (lambda: next_distribution(torch.full((2, 2), 0.25), (3,)), "from 0 to 1 at time 0"),
        (lambda: history_chain(torch.full((2, 4), 0.125)), "one set of states"),
        (lambda: augment_history(torch.tensor([0.5])), "whole-number"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(UserError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)
