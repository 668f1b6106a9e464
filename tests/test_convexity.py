"""Searches for broken segments: what they find, what they cannot, and what they refuse; the bounds' refusals beside
them."""

import math

import pytest
import torch

from quoin.errors import UserError
from quoin.optim import (
    Constants,
    GradientDescent,
    convex_bound,
    convex_combination,
    descend,
    distance_bound,
    hessian_test,
    is_convex,
    is_convex_set,
    jensen_gap,
    least_squares_constants,
    logistic_constants,
    observed_constants,
    quadratic_constants,
    rate_proof,
    second_difference,
    sublevel_set,
)

LINE = torch.linspace(-2, 2, 41, dtype=torch.float64)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(5))
def test_convex_functions_are_not_refuted(seed, dtype):
    points = 3 * torch.randn(30, 4, generator=generator(seed), dtype=dtype)
    slope = torch.randn(4, generator=generator(seed + 1), dtype=dtype)
    for f in (
        torch.norm,
        lambda x: x @ slope,
        lambda x: x.logsumexp(0),
        lambda x: x.relu().sum(),
        lambda x: x.square().sum(),
        torch.max,
    ):
        found = is_convex(f, points, generator=generator(seed))
        assert found
        assert found.counterexample is None
        assert found.tried == "400 points on segments between 30 points"


@pytest.mark.parametrize(
    "f", [torch.cos, lambda x: x**3, lambda x: x.abs().sqrt(), lambda x: -(x**2), lambda x: (-(x**2)).exp()]
)
def test_a_counterexample_is_one(f):
    found = is_convex(f, LINE, generator=generator()).counterexample
    assert found is not None
    assert 0 <= found.weight <= 1
    chord = found.weight * f(found.a) + (1 - found.weight) * f(found.b)
    assert float(f(convex_combination(found.a, found.b, found.weight)) - chord) == pytest.approx(found.violation)
    assert found.violation > 0


def test_a_narrow_dent_is_seen_by_short_segments():
    """x² with a bump of height 1e-3 and width 0.02: long chords lie far above it."""
    dented = lambda x: x**2 + 1e-3 * torch.exp(-((x - 0.3) ** 2) / 2e-4)  # noqa: E731
    assert not is_convex(dented, torch.linspace(0, 0.6, 5, dtype=torch.float64), generator=generator())


def test_a_function_of_no_convex_domain_is_refuted():
    holed = lambda x: torch.where(x.abs() < 0.5, math.inf, x**2)  # noqa: E731
    assert not is_convex(holed, LINE, generator=generator())
    assert is_convex(lambda x: torch.where(x.abs() > 1.5, math.inf, x**2), LINE, generator=generator())


def test_a_module_is_a_function_too():
    """Its value carries a gradient, which must not show as a warning."""
    layer = torch.nn.Linear(2, 1)
    points = torch.randn(10, 2, generator=generator())
    assert is_convex(layer, points, generator=generator())
    assert is_convex_set(sublevel_set(layer, 5.0), points, generator=generator())
    assert abs(float(jensen_gap(layer, points).detach())) < 1e-5


def test_sets():
    points = torch.randn(200, 2, generator=generator(), dtype=torch.float64)
    assert is_convex_set(lambda x: float(x.norm()) <= 1, points, generator=generator())
    assert is_convex_set(sublevel_set(lambda x: x.abs().sum(), 1.0), points, generator=generator())
    star = is_convex_set(lambda x: float(x.abs().sqrt().sum()) <= 1, points, generator=generator()).counterexample
    assert star is not None
    assert float(convex_combination(*star[:3]).abs().sqrt().sum()) > 1


def test_hessian_test_names_the_place():
    found = hessian_test(
        lambda x: x[0] ** 2 + torch.cos(x[1]), torch.tensor([[0.0, 3.0], [0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    )
    assert not found
    assert found.point is not None
    assert found.direction is not None
    assert found.point.tolist() == [0.0, 0.0]
    assert found.direction.abs().tolist() == pytest.approx([0.0, 1.0])
    assert found.least.tolist() == pytest.approx([-math.cos(3.0), -1.0, -math.cos(1.0)])
    assert hessian_test(lambda x: x.sum(), torch.zeros(1, 3))  # flat is convex


def test_second_differences_of_a_kink():
    assert float(second_difference(torch.abs, torch.tensor(0.0), torch.tensor(1.0), 0.25)) == 8.0


def test_a_run_that_breaks_the_theorem_shows_where():
    f, zero = lambda x: x.square().sum() / 2, torch.zeros(1, dtype=torch.float64)  # L = 1
    path = descend(f, torch.ones(1, dtype=torch.float64), GradientDescent(1.9), 5)
    proof = rate_proof(f, path.points, zero, lr=1.9, smoothness=1.0)
    assert bool((proof.decrease < 0).all())
    assert bool((proof.descent_lemma >= -1e-12).all())
    assert bool((proof.tangent >= 0).all())
    too_smooth = rate_proof(f, path.points, zero, lr=1.9, smoothness=0.5)  # a constant that is too small
    assert bool((too_smooth.descent_lemma < 0).all())
    bump = lambda x: -(-x.square() / 2).exp().sum()  # noqa: E731
    away = descend(bump, torch.full((1,), 3.0, dtype=torch.float64), GradientDescent(0.5), 5)
    assert float(rate_proof(bump, away.points, zero, lr=0.5, smoothness=1.0).tangent.min()) < 0


ONE = torch.ones(2, dtype=torch.float64)
PAIR = torch.eye(2, dtype=torch.float64)
STRONG = Constants(1.0, 0.1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: is_convex(torch.log, LINE, generator=generator()), "inside its domain"),
        (lambda: is_convex(torch.exp, PAIR, generator=generator()), "one number from f"),
        (lambda: is_convex(torch.exp, LINE[:1], generator=generator()), "at least two points"),
        (lambda: is_convex(torch.exp, LINE.long(), generator=generator()), "float dtype"),
        (lambda: is_convex(torch.exp, LINE * math.nan, generator=generator()), "finite"),
        (lambda: is_convex(torch.exp, LINE, generator=generator(), num_cases=0), "at least one case"),
        (lambda: is_convex_set(lambda x: float(x) > 5, LINE, generator=generator()), "at least two points of the set"),
        (lambda: jensen_gap(torch.exp, LINE[:3], torch.ones(3)), "sum one"),
        (lambda: jensen_gap(torch.exp, LINE[:2], torch.tensor([2.0, -1.0])), "at least 0"),
        (lambda: jensen_gap(torch.exp, LINE[:2], torch.ones(3) / 3), "2.*3"),
        (lambda: second_difference(torch.exp, ONE[0], ONE[0], 0.0), "positive step"),
        (lambda: hessian_test(lambda x: x.sqrt().sum(), torch.zeros(1, 2)), "finite second derivatives"),
        (lambda: quadratic_constants(torch.tensor([[1.0, 2.0], [0.0, 1.0]])), "symmetric"),
        (lambda: least_squares_constants(PAIR, l2=-1.0), "l2"),
        (lambda: least_squares_constants(PAIR[:0]), "at least one example"),
        (lambda: logistic_constants(PAIR * math.inf), "finite"),
        (lambda: logistic_constants(PAIR, radius=-1.0), "radius"),
        (lambda: observed_constants(torch.sum, PAIR, PAIR), "different points"),
        (lambda: observed_constants(torch.sum, PAIR, ONE), "pair them up"),
        (lambda: convex_bound(ONE, 0 * ONE, 5, lr=1.1, smoothness=1.0), "1/L = 1"),
        (lambda: convex_bound(ONE, 0 * ONE, 5, lr=0.1, smoothness=0.0), "smoothness"),
        (lambda: convex_bound(ONE, ONE * math.inf, 5, lr=0.1, smoothness=1.0), "without a minimiser"),
        (lambda: convex_bound(ONE, ONE[:1], 5, lr=0.1, smoothness=1.0), "reshape"),
        (lambda: convex_bound(ONE, ONE, -1, lr=0.1, smoothness=1.0), "steps"),
        (lambda: distance_bound(ONE, ONE, 5, lr=2.0, constants=STRONG), r"2/\(L \+ μ\) = 1.8"),
        (lambda: distance_bound(ONE, ONE, 5, lr=0.1, constants=Constants(1.0, -0.1)), "not convex"),
        (lambda: rate_proof(torch.sum, PAIR[:1], ONE, lr=0.1, smoothness=1.0), "two points"),
    ],
)
def test_mistakes_say_what_to_do(call, words):
    with pytest.raises(UserError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert ";" in str(caught.value)


def test_constants_know_a_singular_matrix():
    assert quadratic_constants(torch.ones(3, 3)).strong_convexity == 0
    assert quadratic_constants(torch.ones(3, 3)).condition_number == math.inf
    X = torch.randn(9, 2, generator=generator(), dtype=torch.float64)
    assert least_squares_constants(torch.cat([X, X.sum(dim=1, keepdim=True)], dim=1)).strong_convexity == 0
    assert Constants(4.0, 2.0).condition_number == 2
