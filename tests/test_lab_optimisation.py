"""The page on optimisation: what each exhibit shows, held against plain Python and closed forms."""

import cmath
import math
import random

import numpy as np
import pytest
import torch

from lab_states import drawn
from quoin.errors import UserError
from quoin.lab import optimisation
from quoin.lab.parts import exhibit_of
from quoin.lab.parts.descent_problems import TWO_CLASSES, logistic_problem, verdicts, weights_not_lower
from quoin.lab.parts.landscape_pictures import RULES
from quoin.lab.parts.momentum_pictures import momentum_map

DROP = exhibit_of(optimisation.drop_it)
MAP = exhibit_of(optimisation.the_map_of_momentum)
PROMISE = exhibit_of(optimisation.held_to_its_bound)
CONVEX = exhibit_of(optimisation.is_it_convex)
OWN = exhibit_of(optimisation.yours)


def valley_by_hand(x, y, lr, steps):
    for _ in range(steps):
        slope = 200 * (y - x * x)
        x, y = x - lr * (-2 * (1 - x) - 2 * x * slope), y - lr * slope
    return (1 - x) ** 2 + 100 * (y - x * x) ** 2


@pytest.mark.parametrize(
    ("start", "lr"),
    [((-1.2, 1.0), 0.002), ((2.0, 2.0), 1e-4), ((-2.0, -2.0), 1e-4), ((0.3, 1.7), 5e-4), ((-0.7, -1.1), 1e-3)],
)
def test_a_descent_by_hand(start, lr):
    view = DROP.view({"start": list(start), "lr": lr})
    assert view.numbers[0].value == pytest.approx(valley_by_hand(*start, lr, 150), rel=1e-9)
    assert not view.reached


def test_newton_needs_seven_steps():
    view = DROP.view({"rule": "Newton"})
    assert view.numbers[1].text == "7"
    assert view.reached
    assert DROP.view({"landscape": "saddle", "rule": "Newton", "start": [1.0, 0.5]}).numbers[0].value == pytest.approx(
        0
    )


def test_descent_lingers_on_the_saddle_and_leaves_in_the_end():
    view = DROP.view({"landscape": "saddle", "start": [1.5, 1e-6], "lr": 0.02})
    # x shrinks by 0.96 a step, y grows by 1.04: after 150 steps it is at height 0 still
    assert view.numbers[0].value == pytest.approx((1.5 * 0.96**150) ** 2 - (1e-6 * 1.04**150) ** 2, rel=1e-6)
    assert abs(view.numbers[0].value) < 1e-4
    gone = DROP.view({"landscape": "saddle", "start": [1.5, 1e-6], "lr": 0.5})
    steps = math.floor(math.log(100 / 1e-6) / math.log(2))
    assert f"leaves the map at step {steps + 1}" in gone.note
    assert gone.numbers[0].value == pytest.approx(-((1e-6 * 2.0**steps) ** 2), rel=1e-6)


def test_every_rule_on_every_landscape():
    for landscape in optimisation.LANDSCAPES:
        for rule in RULES:
            view = DROP.view({"landscape": landscape, "rule": rule, "start": [0.5, -1.5], "lr": 0.01})
            assert len(view.picture.svg()) < 150_000
    rule = DROP.view({"landscape": "ravine", "rule": "momentum 0.9", "lr": 0.05, "start": [1.0, 0.0]})
    x, velocity = 1.0, 0.0
    for _ in range(150):
        velocity = 0.9 * velocity - 0.05 * x
        x += velocity
    assert rule.numbers[0].value == pytest.approx(x * x / 2, rel=1e-8)


def dots():
    chance = random.Random(5)
    return [
        (0.2, 0.9),
        (0.01, 0.0),
        (4.0, 0.99),
        *((chance.uniform(0.01, 4), chance.uniform(0, 0.99)) for _ in range(3)),
    ]


@pytest.mark.parametrize(("product", "m"), dots())
def test_the_factor_of_momentum(product, m):
    roots = [((1 + m - product) + sign * cmath.sqrt((1 + m - product) ** 2 - 4 * m)) / 2 for sign in (1, -1)]
    view = MAP.view({"dot": [product, m]})
    assert view.numbers[0].value == pytest.approx(max(map(abs, roots)), rel=1e-9)
    # as printed z^2 - (1 + m) z + m + product: x moves by the velocity of the step before
    printed = [((1 + m) + sign * cmath.sqrt((1 - m) ** 2 - 4 * product)) / 2 for sign in (1, -1)]
    assert MAP.view({"dot": [product, m], "printed": True}).numbers[0].value == pytest.approx(max(map(abs, printed)))
    x, velocity = 1.0, 0.0
    for _ in range(60):
        velocity = m * velocity - product * x
        x += velocity
    assert view.numbers[1].value == pytest.approx(abs(x), rel=1e-6, abs=1e-12)


def test_the_edges_of_the_map():
    for printed, edge in ((False, lambda m: min(2 * (1 + m), 4.0)), (True, lambda m: 1 - m)):
        rates = momentum_map(printed)
        rows, columns = rates.shape
        for row in range(1, rows, 7):
            m = 1 - (row + 0.5) / rows
            assert (rates[row] < 1).sum() * 4 / columns == pytest.approx(edge(m), abs=4 / columns)
    assert MAP.view({"printed": True}).reached
    assert not MAP.view({"printed": True, "dot": [0.05, 0.5]}).reached


@pytest.mark.parametrize("rate", [1.0, 0.1, 6.0, 0.4, 2.5, 3.0])
def test_the_bound_and_the_loss(rate):
    points = np.array([point[:2] for point in TWO_CLASSES])
    signs = np.array([1.0 if point[2] else -1.0 for point in TWO_CLASSES])
    cost = lambda w: np.log1p(np.exp(-signs * (points @ w))).mean()  # noqa: E731
    smoothness = np.linalg.eigvalsh(points.T @ points).max() / 4 / len(points)
    star = np.zeros(2)
    for _ in range(30):  # Newton, by hand
        s = 1 / (1 + np.exp(-points @ star))
        hessian = (points * (s * (1 - s))[:, None]).T @ points
        star = star - np.linalg.solve(hessian, points.T @ (s - (signs + 1) / 2))
    w, start, worst = np.array([-1.5, 2.0]), np.array([-1.5, 2.0]), 0.0
    for t in range(1, 61):
        w = w + rate / smoothness * (signs / (1 + np.exp(signs * (points @ w)))) @ points / len(points)
        bound = ((start - star) ** 2).sum() / (2 * rate / smoothness * t)
        worst = max(worst, (cost(w) - cost(star)) / bound)
    view = PROMISE.view({"rate": rate})
    assert view.numbers[0].value == pytest.approx(worst, rel=1e-5, abs=1e-9)
    assert view.numbers[1].value == pytest.approx(smoothness)
    assert view.reached == (rate >= 2.5)
    assert (view.numbers[0].value <= 1) == (rate < 2.5)


def test_no_minimiser_no_bound():
    view = PROMISE.view({"cost": "ln(1 + e⁻ˣ)"})
    assert view.numbers[0].value > 1
    assert "there is none" in view.note
    assert PROMISE.view({"printed": True}).numbers[0].value > 1  # any point is not a minimiser
    apart = tuple((x + (5 if label else -5), y, label) for x, y, label in TWO_CLASSES)
    with pytest.raises(UserError, match="no minimiser"):
        logistic_problem(apart)


@pytest.mark.parametrize(
    ("formula", "function", "convex", "sets"),
    [
        ("x^2 / 2", lambda x: x * x / 2, True, True),
        ("log(x)", math.log, False, True),
        ("cos(pi*x)", lambda x: math.cos(math.pi * x), False, False),
        ("exp(x/2)", lambda x: math.exp(x / 2), True, True),
        ("-x^2", lambda x: -x * x, False, False),
    ],
)
def test_chords_and_verdicts(formula, function, convex, sets):
    for a, b, weight in ((0.5, 2.5, 0.5), (3.0, 0.1, 0.25), (1.2, 2.0, 0.9)):
        view = CONVEX.view({"a": [a, 0], "b": [b, 0], "weight": weight, "formula": formula})
        expected = weight * function(a) + (1 - weight) * function(b) - function(weight * a + (1 - weight) * b)
        assert view.numbers[0].value == pytest.approx(expected, abs=1e-12)
        assert (view.numbers[1].text, view.numbers[2].text) == tuple("yes" if each else "no" for each in (convex, sets))
        assert view.reached == (formula == "log(x)")
    assert CONVEX.view({"formula": formula, "printed": "ZE29"}).numbers[1].text == ("yes" if sets else "no")
    assert verdicts(formula) == (convex, sets)


def test_without_a_range_of_weights_no_interval_is_convex():
    below = CONVEX.view({"printed": "ZE27", "level": [-3, 0.4]})  # |x| ≤ √0.8
    assert below.numbers[1].text == "no"
    assert "from 0 to 1: yes" in below.note
    assert "x = −1.5" in below.note  # 2 · 0.5 − 2.5
    assert CONVEX.view({"printed": "ZE27", "level": [-3, -1]}).numbers[1].text == "yes"  # nothing lies below -1
    two = CONVEX.view({"printed": "ZE27", "formula": "(x^2 - 1)^2", "level": [-3, 0.4]})
    assert "from 0 to 1: no" in two.note  # two intervals


@pytest.mark.parametrize(("formula", "a", "b"), [("x^2 / 2", 0.5, 2.5), ("x^2 / 2", 2.0, -1.0), ("exp(x/2)", -2, 1)])
def test_at_weight_one_nothing_is_lower(formula, a, b):
    view = CONVEX.view({"printed": "ZE28", "formula": formula, "a": [a, 0], "b": [b, 0]})
    assert view.numbers[1].text == "1 of 11"
    for printed, found in ((True, [1.0]), (False, [])):  # of a convex function it is λ = 1 alone
        assert weights_not_lower(formula, (a, b), printed)[1] == found


def test_what_cannot_be_drawn():
    with pytest.raises(UserError, match="drag it back"):
        CONVEX.view({"formula": "log(x)", "a": [-1.0, 0.0]})
    with pytest.raises(UserError, match="defined on a part"):
        verdicts("log(x - 9)")
    with pytest.raises(UserError, match="of x and y alone"):
        OWN.view({"formula": "x*z"})
    with pytest.raises(UserError, match="start where"):
        OWN.view({"formula": "log(x)", "start": [-1.0, 0.0]})


def test_a_landscape_of_ones_own():
    view = OWN.view({"formula": "(x - 1)^2 + 2*y^2", "lr": 0.1, "start": [2.0, -1.0]})
    assert view.numbers[1].value == pytest.approx(1 + 0.8**150, abs=1e-12)
    assert view.numbers[2].value == pytest.approx(-(0.6**150), abs=1e-12)
    assert torch.isfinite(torch.tensor(view.numbers[0].value))


@pytest.mark.parametrize(("a", "b", "weight"), [(0.5, 2.5, 0.25), (-1.0, 2.0, 0.6)])
def test_the_gap_is_drawn_between_curve_and_chord(a, b, weight):
    (x, low), (same, high) = drawn(CONVEX.view({"a": [a, 0], "b": [b, 0], "weight": weight}), "the gap")
    assert x == same == pytest.approx(weight * a + (1 - weight) * b, abs=0.01)
    assert low == pytest.approx(x * x / 2, abs=0.02)
    assert high == pytest.approx(weight * a * a / 2 + (1 - weight) * b * b / 2, abs=0.02)


def test_the_best_momentum_is_that_of_the_condition_number():
    root = math.sqrt(20)  # of curvatures from 1 to 20
    assert MAP.view({}).numbers[2].value == pytest.approx((root - 1) / (root + 1))
