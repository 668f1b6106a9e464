"""Intervals and permutation tests, held against scipy, their definitions and what they promise."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin.errors import UserError
from quoin.metrics import (
    holm_correction,
    permutation_test_paired,
    permutation_test_paired_definition,
    permutation_test_unpaired,
    permutation_test_unpaired_definition,
    student_t_probability,
    student_t_quantile,
    t_interval,
)
from seeds import seeded

# Tenths: many sums are equal in the mathematics and differ in floating point.
TENTHS = st.integers(-9, 9).map(lambda k: k / 10)


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@settings(max_examples=60, deadline=None)
@given(st.lists(TENTHS, min_size=1, max_size=9))
def test_the_paired_test_is_its_definition(differences):
    found = permutation_test_paired(tensor(differences))
    assert found.exact
    assert found.num_permutations == 2 ** len(differences)
    assert found.p_value == permutation_test_paired_definition(tensor(differences))
    assert found.p_value >= found.smallest_p
    assert found.output == pytest.approx(np.mean(differences), abs=1e-15)


@settings(max_examples=60, deadline=None)
@given(st.lists(TENTHS, min_size=1, max_size=5), st.lists(TENTHS, min_size=1, max_size=5))
def test_the_unpaired_test_is_its_definition(first, second):
    found = permutation_test_unpaired(tensor(first), tensor(second))
    assert found.exact
    assert found.num_permutations == math.comb(len(first) + len(second), len(first))
    assert found.p_value == permutation_test_unpaired_definition(tensor(first), tensor(second))
    assert found.p_value >= found.smallest_p - 1e-12


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.parametrize("seed", range(4))
def test_against_scipy(n, seed):
    draw = np.random.default_rng([n, seed])
    x, y = draw.normal(0.5, 1, n), draw.normal(0, 1, n)
    theirs = scipy.stats.permutation_test((x - y,), np.mean, permutation_type="samples", n_resamples=np.inf)
    ours = permutation_test_paired(tensor(x - y))
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=1e-12)
    longer = draw.normal(0, 1, n + seed % 3)
    apart = scipy.stats.permutation_test(
        (x, longer), lambda a, b: abs(a.mean() - b.mean()), n_resamples=np.inf, alternative="greater"
    )
    assert permutation_test_unpaired(tensor(x), tensor(longer)).p_value == pytest.approx(apart.pvalue, abs=1e-12)


def test_the_smallest_p_value_is_reached():
    for n in range(1, 7):
        found = permutation_test_paired(tensor([1.0 + 0.1 * i for i in range(n)]))
        assert found.p_value == found.smallest_p == 2 / 2**n
    assert permutation_test_paired(tensor([0.1, 0.2, 0.3])).smallest_p == 0.25
    for n, m in ((3, 3), (2, 3), (1, 4), (5, 5)):
        found = permutation_test_unpaired(tensor([10.0 + i for i in range(n)]), tensor([1.0 * i for i in range(m)]))
        assert found.p_value == pytest.approx(found.smallest_p, abs=1e-12)
    assert permutation_test_unpaired(tensor([4.0, 5, 6]), tensor([1.0, 2, 3])).p_value == pytest.approx(0.1)


def test_no_difference_has_p_value_one():
    assert permutation_test_paired(torch.zeros(5)).p_value == 1
    assert permutation_test_unpaired(torch.ones(3), torch.ones(4)).p_value == 1
    assert permutation_test_paired(torch.zeros(25), num_permutations=99).p_value == 1


def test_many_values_are_tried_at_random():
    """Beyond twenty, the random p-value is near that of the normal limit, and never zero."""
    draw = np.random.default_rng(0)
    d = draw.normal(0.35, 1, 40)
    found = permutation_test_paired(tensor(d), num_permutations=9999, generator=seeded(1))
    assert (found.exact, found.num_permutations, found.smallest_p) == (False, 9999, 1 / 10_000)
    z = abs(d.sum()) / np.sqrt((d**2).sum())  # the sign flips have this variance
    assert found.p_value == pytest.approx(2 * scipy.stats.norm.sf(z), abs=0.02)
    assert permutation_test_paired(torch.ones(30), num_permutations=99).p_value == 1 / 100
    x, y = draw.normal(0.6, 1, 20), draw.normal(0, 1, 25)
    unpaired = permutation_test_unpaired(tensor(x), tensor(y), num_permutations=9999)
    assert not unpaired.exact
    assert unpaired.p_value == pytest.approx(scipy.stats.ttest_ind(x, y).pvalue, abs=0.02)
    again = permutation_test_unpaired(tensor(x), tensor(y), num_permutations=9999)
    assert again == unpaired  # the generator has a seed


def test_a_true_hypothesis_is_rejected_no_more_often_than_the_level_says():
    draw = np.random.default_rng(3)
    rejected = sum(permutation_test_paired(tensor(draw.laplace(size=6))).p_value <= 0.1 for _ in range(1000))
    # p-values are multiples of 1/32, so at most 3/32 are at or below 0.1; beyond 140 of 1000 once in a million
    assert 50 < rejected < 140


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 9, 10, 29, 100, 999])
@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.9, 0.95, 0.99, 0.9999])
def test_quantiles_of_student_t(df, confidence):
    t = student_t_quantile(confidence, df)
    assert t == pytest.approx(scipy.stats.t.ppf((1 + confidence) / 2, df), rel=1e-8)
    assert student_t_probability(math.atan(t / math.sqrt(df)), df) == pytest.approx(confidence, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 40])
def test_intervals_against_scipy(n):
    values = np.random.default_rng(n).normal(0.9, 0.03, n)
    for confidence in (0.5, 0.9, 0.95):
        found = t_interval(tensor(values), confidence)
        theirs = scipy.stats.t.interval(confidence, n - 1, loc=values.mean(), scale=scipy.stats.sem(values))
        assert (found.low, found.high) == pytest.approx(theirs, rel=1e-9)
        assert found.output == pytest.approx(values.mean())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 40).map(lambda k: k / 40), min_size=1, max_size=8))
def test_holm_is_the_closed_bonferroni_test(p_values):
    """A hypothesis is rejected if every set of hypotheses that holds it is, by Bonferroni: the adjusted p-value is the
    largest of those sets' p-values."""
    numbers = range(len(p_values))
    sets = [[i for i in numbers if chosen >> i & 1] for chosen in range(1, 2 ** len(p_values))]
    of_set = [min(1.0, len(each) * min(p_values[i] for i in each)) for each in sets]
    closed = [max(p for each, p in zip(sets, of_set) if i in each) for i in numbers]
    assert holm_correction(p_values) == pytest.approx(closed)


def test_what_cannot_be_tested_is_told():
    for call, told in (
        (lambda: t_interval(tensor([1.0])), "two or more"),
        (lambda: t_interval(tensor([1.0, 2.0]), 1.0), "between 0 and 1"),
        (lambda: permutation_test_paired(tensor([])), "at least one"),
        (lambda: permutation_test_paired(tensor([float("nan")])), "finite"),
        (lambda: permutation_test_unpaired(tensor([1.0]), tensor([[1.0]])), "shape"),
        (lambda: permutation_test_paired(torch.ones(30), num_permutations=0), "permutation"),
        (lambda: student_t_quantile(0.9, 0), "degree"),
    ):
        with pytest.raises(UserError, match=told):
            call()
