"""Approximation by construction: certificates that hold, estimates that say so, the modulus, many inputs, and broken
promises."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin.errors import UserError
from quoin.expressivity import (
    ContinuityModulus,
    Curvature,
    Lipschitz,
    approximate_1d,
    approximate_nd,
    check_regularity,
    exponential_sum_definition,
    fit_exponentials,
    from_relu_network,
    interpolated_exponential,
    modulus_of_continuity,
    modulus_of_continuity_definition,
    sup_error_in_span,
)

UNIT = torch.linspace(0, 1, 5003, dtype=torch.float64)


pytestmark = pytest.mark.usefixtures("one_thread")  # tensors here are too small to share out


def wave(seed: int):
    """A sum of sines, a bound of its slope and one of its second derivative."""
    generator = torch.Generator().manual_seed(seed)
    heights, rates, phases = (torch.randn(4, generator=generator, dtype=torch.float64) for _ in range(3))
    rates = 6 * rates
    bounds = float(heights.abs() @ rates.abs()), float(heights.abs() @ rates.square())
    return (lambda x: (x[:, None] * rates + phases).sin() @ heights), *bounds


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.floats(0.02, 2.0))
def test_certificates_hold_between_the_points(seed, eps):
    g, slope, bend = wave(seed)
    for promise in ({"lipschitz": slope}, {"modulus": lambda d: slope * d}, {"curvature": bend}):
        built = approximate_1d(g, eps, (0.0, 1.0), **promise)
        with torch.no_grad():
            missed = float((built.network(UNIT[:, None])[:, 0] - g(UNIT)).abs().max())
        assert built.certified
        assert missed <= built.error <= eps


def test_the_number_of_units_is_the_least_the_promise_allows():
    """K (b - a) / 2 eps pieces, sqrt(M / 8 eps) (b - a), and for √ with omega = √delta 1/eps² of them; N pieces are N
    units."""
    assert approximate_1d(torch.sin, 0.1002, (0.0, 2.0), lipschitz=1.0).num_units == 10
    assert approximate_1d(torch.sin, 0.001252, (0.0, 2.0), curvature=1.0).num_units == 20
    assert approximate_1d(torch.sqrt, 0.1002, (0.0, 1.0), modulus=math.sqrt).num_units == 100
    assert approximate_1d(torch.zeros_like, 0.1, (0.0, 1.0), lipschitz=0.0).num_units == 2


def test_without_a_promise_the_error_is_called_an_estimate():
    built = approximate_1d(torch.sin, 0.01, (0.0, 3.0))
    assert not built.certified
    assert built.measured == built.error <= 0.01
    assert "estimate" in str(built)
    assert "certified" in str(approximate_1d(torch.sin, 0.01, (0.0, 3.0), lipschitz=1.0))

    def spike(x):  # too thin for the grid: this is what an estimate may miss
        return (1 - 1e7 * (x - 0.123456789).abs()).clamp(min=0)

    assert approximate_1d(spike, 0.1, (0.0, 1.0)).measured < 1e-3
    assert float(spike(torch.tensor([0.123456789], dtype=torch.float64))) == 1


def test_the_network_is_the_function_that_it_says():
    built = approximate_1d(torch.cos, 0.05, (-1.0, 2.0), lipschitz=1.0)
    back = from_relu_network(built.network)
    torch.testing.assert_close(back.breakpoints, built.function.breakpoints)
    torch.testing.assert_close(back.slopes, built.function.slopes)
    knots = built.function.breakpoints
    torch.testing.assert_close(built.network(knots[:, None])[:, 0], knots.cos())


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.integers(2, 90), st.floats(0.0, 1.5))
def test_the_sliding_modulus_is_the_largest_over_all_pairs(seed, points, distance):
    g, _, _ = wave(seed)
    x = torch.linspace(0, 1, points, dtype=torch.float64)
    spacing = 1 / (points - 1)
    if abs(distance / spacing - round(distance / spacing)) < 1e-6:
        return  # whether such a pair is counted is a matter of rounding
    fast = modulus_of_continuity(g, (0.0, 1.0), [distance], num_points=points)[0]
    torch.testing.assert_close(fast, modulus_of_continuity_definition(x, g(x), distance), rtol=0, atol=0)


def test_moduli_known_in_closed_form():
    distances = [0.5, 0.125, 2.0**-10]
    torch.testing.assert_close(
        modulus_of_continuity(lambda x: 3 * x, (0.0, 1.0), distances), 3 * torch.tensor(distances).double()
    )
    expected = torch.tensor([d * (2 - d) for d in distances]).double()
    torch.testing.assert_close(modulus_of_continuity(torch.square, (0.0, 1.0), distances), expected)
    assert float(modulus_of_continuity(lambda x: (x > 0.3).double(), (0.0, 1.0), [1e-3])) == 1


def test_an_exponential_is_interpolated_as_near_as_it_says():
    for reach, eps in ((0.1, 1e-3), (2.0, 0.05), (8.0, 1.0)):
        f, error = interpolated_exponential(reach, eps)
        t = torch.linspace(-reach, reach, 100_001, dtype=torch.float64)
        measured = float((f(t) - t.exp()).abs().max())
        assert 0.99 * error <= measured <= error * (1 + 1e-9) + 1e-12
        assert error <= eps


@pytest.mark.parametrize(
    ("g", "box"),
    [
        (lambda x: torch.sin(2 * x[:, 0]) * x[:, 1], [(-1.0, 1.0), (0.0, 1.0)]),
        (lambda x: x[:, 0] * x[:, 1] - x[:, 2], [(10.0, 11.0), (-1.0, 0.0), (0.0, 3.0)]),
        (lambda x: torch.ones(len(x)), [(-1.0, 1.0)]),
    ],
)
def test_many_inputs(g, box):
    scale = float(g(torch.tensor([[high for _, high in box]], dtype=torch.float64)).abs()) + 1
    built = approximate_nd(g, 0.2 * scale, box)
    low, high = torch.tensor(box, dtype=torch.float64).T
    x = low + (high - low) * torch.rand(1500, len(box), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    with torch.no_grad():
        said = built.network(x)[:, 0]
    assert float((said - built.exponentials(x)).abs().max()) <= built.replacement_error * (1 + 1e-6) + 1e-9
    assert built.replacement_error + built.fit_error <= 0.2 * scale
    assert float((said - g(x)).abs().max()) <= 0.2 * scale
    assert built.measured <= built.replacement_error + built.fit_error + 1e-9


def test_exponentials_fitted_to_an_exponential_sum_are_that_sum():
    generator = torch.Generator().manual_seed(0)
    nu, gamma = torch.tensor([[1.0, 0.0], [0.0, -1.0], [2.0, 1.0]]).double(), torch.tensor([1.0, -2.0, 0.5]).double()
    x = torch.rand(60, 2, generator=generator, dtype=torch.float64)
    values = sum(gamma[i] * torch.exp(nu[i, 0] * x[:, 0] + nu[i, 1] * x[:, 1]) for i in range(3))
    torch.testing.assert_close(exponential_sum_definition(x, nu, gamma), values)
    torch.testing.assert_close(fit_exponentials(x, values, nu, torch.zeros(2).double()).coefficients, gamma)


def test_distance_from_a_span():
    x = torch.linspace(-1, 1, 201, dtype=torch.float64)
    assert sup_error_in_span(torch.stack([x, x**3], dim=1), 2 * x - x**3) < 1e-12
    assert sup_error_in_span(x.square()[:, None], x) >= 1  # an even function is farther from x at one of ±1


def test_promises_bound_what_they_say():
    assert Lipschitz(3.0).error(0.5) == 0.75
    assert Curvature(4.0).error(0.5) == 0.125
    assert ContinuityModulus(math.sqrt).error(0.25) == 0.5
    x = torch.linspace(0, 1, 65, dtype=torch.float64)
    for promise, values in (
        (Lipschitz(2.0), x.square()),
        (ContinuityModulus(math.sqrt), x.sqrt()),
        (Curvature(2.0), x.square()),
    ):
        check_regularity(promise, x, values)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: approximate_1d(torch.sin, 0.0, (0.0, 1.0)), "eps above 0, got 0.0"),
        (lambda: approximate_1d(torch.sin, -1.0, (0.0, 1.0), lipschitz=1.0), "eps above 0, got -1.0"),
        (lambda: approximate_1d(torch.sin, math.nan, (0.0, 1.0)), "got nan"),
        (lambda: approximate_1d(torch.sin, 0.1, (1.0, 0.0)), "low < high, got (1.0, 0.0)"),
        (lambda: approximate_1d(torch.sin, 0.1, (0.0, math.inf)), "finite numbers"),
        (
            lambda: approximate_1d(torch.sin, 0.1, (0.0, 1.0), lipschitz=-1.0),
            "lipschitz to be a finite number of at least 0",
        ),
        (
            lambda: approximate_1d(torch.sin, 0.1, (0.0, 1.0), lipschitz=1.0, curvature=1.0),
            "one regularity assumption on g, got lipschitz and",
        ),
        (lambda: approximate_1d(torch.sin, 0.1, (0.0, 1.0), modulus=lambda d: -d), "modulus of at least 0"),
        (
            lambda: approximate_1d(lambda x: 3 * x, 0.1, (0.0, 1.0), lipschitz=1.0),
            "> 0.0104167 at x = 0, y = 0.0104167",
        ),
        (
            lambda: approximate_1d(lambda x: (x > 0.7).double(), 0.1, (0.0, 1.0), lipschitz=1.0),
            "at x = 0.697917, y = 0.708333",
        ),
        (lambda: approximate_1d(lambda x: x.sqrt(), 0.1, (0.0, 1.0), modulus=lambda d: d), "at x = 0"),
        (lambda: approximate_1d(lambda x: (x - 0.5).abs(), 0.01, (0.0, 1.0), curvature=1.0), "at x = 0.5"),
        (lambda: approximate_1d(lambda x: 1 / x, 0.1, (0.0, 1.0), lipschitz=1.0), "inf at x = 0"),
        (lambda: approximate_1d(lambda x: x[:3], 0.1, (0.0, 1.0)), "one number for each of"),
        (lambda: approximate_1d(torch.sin, 1e-7, (0.0, 1.0), lipschitz=1.0), "131072 pieces"),
        (lambda: approximate_1d(lambda x: x.sin() + 1e9, 1e-6, (0.0, 3.0), curvature=1.0), "float64 can certify"),
        (lambda: approximate_1d(torch.sign, 0.1, (-1.0, 1.3)), "is g continuous?"),
        (lambda: modulus_of_continuity(torch.sin, (0.0, 1.0), [-0.1]), "distances of at least 0"),
        (lambda: approximate_nd(lambda x: x[:, 0], 0.0, [(0.0, 1.0)]), "eps above 0"),
        (lambda: approximate_nd(lambda x: x[:, 0], 0.1, []), "at least one side"),
        (lambda: approximate_nd(lambda x: x[:, 0].abs(), 0.01, [(-1.0, 1.0)]), "exponentials come within"),
        (lambda: approximate_nd(lambda x: 1 / x[:, 0], 0.1, [(0.0, 1.0), (0.0, 1.0)]), "inf at x = 0, 0"),
    ],
)
def test_mistakes_say_what_to_do_and_where(wrong, said):
    with pytest.raises(UserError) as caught:
        wrong()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
