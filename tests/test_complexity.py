"""Growth bounds and fitted powers against NumPy and Python's own search and sort; what is refused."""

import bisect
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin.errors import UserError
from quoin.tensor import (
    LinkedList,
    PowerLaw,
    array_access,
    binary_search,
    bubble_sort,
    fit_complexity,
    growth_constant,
    linked_list_access,
    merge_sort,
)

costs = st.floats(1e-6, 1e6)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 10**6), costs), min_size=3, max_size=30, unique_by=lambda run: run[0]))
def test_one_exponent_is_numpys_line_through_the_logarithms(runs):
    sizes, found = zip(*runs)
    law = fit_complexity(sizes, found)
    slope, level = np.polyfit(np.log(sizes), np.log(found), 1)
    away = np.log(sizes) - np.log(sizes).mean()
    left = np.log(found) - slope * np.log(sizes) - level
    error = math.sqrt((left**2).sum() / (len(runs) - 2) / (away**2).sum())
    scale = max(1.0, abs(slope))
    assert law.exponent == pytest.approx(slope, abs=1e-7 * scale)
    assert law.standard_errors[0] == pytest.approx(error, rel=1e-6, abs=1e-7 * scale)
    assert math.log(law(sizes[0])) == pytest.approx(slope * math.log(sizes[0]) + level, abs=1e-5 * scale)


@settings(deadline=None)
@given(
    st.lists(st.floats(-2, 3), min_size=1, max_size=4),
    st.floats(0.01, 100),
    st.integers(0, 2**32 - 1),
)
def test_several_exponents_are_recovered(exponents, constant, seed):
    sizes = np.random.default_rng(seed).integers(1, 1000, (12, len(exponents))).tolist()
    law = fit_complexity(sizes, [constant * math.prod(n**a for n, a in zip(row, exponents)) for row in sizes])
    assert law.exponents == pytest.approx(exponents, abs=1e-8)
    assert law.constant == pytest.approx(constant, rel=1e-6)
    assert max(law.standard_errors) < 1e-8


def test_noise_opens_the_exponent_as_far_as_theory_says():
    """Over many draws the error divided by its standard error has Student's t distribution with r - 2 = 8 degrees:
    variance 8/6."""
    random = np.random.default_rng(0)
    sizes = [2.0**k for k in range(10)]
    scores = []
    for _ in range(2000):
        law = fit_complexity(sizes, [n**1.5 * math.exp(0.1 * random.standard_normal()) for n in sizes])
        scores.append((law.exponent - 1.5) / law.standard_errors[0])
    assert np.var(scores) == pytest.approx(8 / 6, rel=0.25)  # its own standard deviation is about 5%


def test_a_constant_is_the_largest_quotient_from_the_start_on():
    sizes = [(1, 9), (4, 4), (5, 6), (6, 5)]
    assert growth_constant(sizes, [99.0, 16.0, 60.0, 30.0], lambda n, m: n * m, start=4) == 2.0
    assert growth_constant(sizes, [99.0, 16.0, 60.0, 30.0], lambda n, m: n * m) == 11.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fit_complexity([1, 2], [1.0, 2.0]), "expected 3 runs or more to fit 1 exponents, got 2"),
        (lambda: fit_complexity([1, 2, 3], [1.0, 2.0]), "one cost for each run, got 2 for 3"),
        (lambda: fit_complexity([1, 2, 3], [1.0, 0.0, 2.0]), "positive costs, got 0"),
        (lambda: fit_complexity([0, 2, 3], [1.0, 1.0, 2.0]), "finite sizes above zero"),
        (lambda: fit_complexity([1, 2, 3], [1.0, math.nan, 2.0]), "finite costs"),
        (lambda: fit_complexity([4, 4, 4], [1.0, 1.0, 2.0]), "change independently"),
        (lambda: fit_complexity([(1, 2), (2, 4), (3, 6), (5, 10)], [1.0, 2.0, 3.0, 4.0]), "change independently"),
        (
            lambda: fit_complexity([(1, 2), (2,), (3, 6), (5, 10)], [1.0, 2.0, 3.0, 4.0]),
            r"as many sizes in every run, got \[1, 2\]",
        ),
        (lambda: PowerLaw(1.0, (1.0, 2.0), (0.0, 0.0)).exponent, "one size, got one in 2"),
        (lambda: PowerLaw(1.0, (1.0,), (0.0,))(1, 2), "expected 1 sizes, got 2"),
        (lambda: growth_constant([1, 2], [1.0, 2.0], lambda n: n, start=3), "every size at 3 or above, got none"),
        (lambda: growth_constant([1, 2], [1.0, 2.0], math.log), "positive and finite, got 0"),
        (lambda: array_access([1], 1), "from 0 to 0, got 1"),
        (lambda: linked_list_access(LinkedList.from_values([1]), -1), "got -1"),
        (lambda: linked_list_access(LinkedList.from_values([1]), 1), "got 1"),
        (lambda: LinkedList.from_values([]), "one value or more"),
    ],
)
def test_mistakes_are_told_in_one_line(call, words):
    with pytest.raises(UserError, match=words) as told:
        call()
    assert "\n" not in str(told.value)


@settings(deadline=None)
@given(st.lists(st.integers(-50, 50), max_size=60))
def test_sorts_are_pythons(values):
    assert merge_sort(values).output == bubble_sort(values).output == sorted(values)


def test_equal_values_keep_their_order():
    class Card(tuple):
        def __lt__(self, other):
            return self[0] < other[0]

    cards = [Card(pair) for pair in ((2, "a"), (1, "b"), (2, "c"), (1, "d"), (2, "e"))]
    assert merge_sort(cards).output == bubble_sort(cards).output == sorted(cards)
    assert "".join(name for _, name in merge_sort(cards).output) == "bdace"


@settings(deadline=None)
@given(st.sets(st.integers(-50, 50)).map(sorted), st.integers(-60, 60))
def test_search_is_bisect(values, sought):
    place = bisect.bisect_left(values, sought)
    there = place < len(values) and values[place] == sought
    found = binary_search(values, sought)
    assert found.output == (place if there else None)
    assert found.operations <= len(values).bit_length()


@settings(deadline=None)
@given(st.lists(st.integers(), min_size=1, max_size=50), st.data())
def test_both_accesses_read_the_entry(values, data):
    index = data.draw(st.integers(0, len(values) - 1))
    assert array_access(values, index) == (values[index], 1)
    assert linked_list_access(LinkedList.from_values(values), index) == (values[index], index + 1)
