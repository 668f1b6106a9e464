"""What the page on regularisation shows, against numpy, plain Python and the closed forms."""

import base64
import math
import random

import numpy as np
import pytest

from quoin.lab.parts import exhibit_of
from quoin.lab.parts.noisy_curve import sample_curve
from quoin.lab.parts.two_weights import FEATURES, TARGETS
from quoin.lab.regularisation import SEEN, any_labels, drop, pull, what_dropout_adds, wiggle, your_degree


def numbers(show, **state):
    return [number.value for number in exhibit_of(show).view(state).numbers]


@pytest.mark.parametrize(("degree", "more"), [(5, 0), (0, 0), (13, 126), (3, 14), (8, 56), (2, 126)])
def test_the_risk_is_an_integral(degree, more):
    risk, training = numbers(wiggle, degree=degree, more=more)
    new_x, new_y = (each.numpy() for each in sample_curve(more))
    x = np.concatenate([[a for a, _ in SEEN], new_x])
    y = np.concatenate([[b for _, b in SEEN], new_y])
    fit = np.polynomial.Polynomial.fit(x, y, degree)  # numpy's own, in a scaled basis
    assert training == pytest.approx(np.mean((fit(x) - y) ** 2) / 2, rel=1e-5)
    fine = np.linspace(-3, 3, 20001)
    bias = np.trapezoid((fit(fine) - np.sin(1.5 * fine)) ** 2, fine) / 6
    assert risk == pytest.approx((bias + 0.3**2) / 2, rel=1e-3)


def test_degree_13_touches_every_point_and_ten_times_the_data_tame_it():
    risk, training = numbers(wiggle, degree=13)
    assert training == 0
    assert risk > 100 * numbers(wiggle, degree=5)[0]
    assert numbers(wiggle, degree=13, more=126)[0] < 0.055  # half the variance of the noise is 0.045


@pytest.mark.parametrize(
    ("l2", "start"), [(0.5, (-1.5, 1.5)), (0.0, (2.4, -2.4)), (2.0, (-2.4, -2.4)), (0.15, (1, 1)), (1.3, (0, 2))]
)
def test_weight_decay_goes_to_the_ridge_and_the_printed_step_does_not(l2, start):
    loss, length, printed = numbers(pull, l2=l2, start=list(start), printed=True)
    X, y = FEATURES.numpy(), TARGETS.numpy()
    gram = X.T @ X / len(y)
    best = np.linalg.solve(gram + l2 * np.eye(2), X.T @ y / len(y))

    def penalised(w):
        return np.mean((X @ w - y) ** 2) / 2 + l2 / 2 * w @ w

    assert loss == pytest.approx(penalised(best), abs=1e-3)
    assert length == pytest.approx(np.linalg.norm(best), abs=0.02)
    assert printed == pytest.approx(penalised(np.array([1.6, 1.1])), abs=0.02)  # the weights without a penalty
    assert exhibit_of(pull).view({"l2": l2, "start": list(start), "printed": True}).reached == (l2 > 0.1)


@pytest.mark.parametrize(("p", "draw"), [(0.2, 0), (0.0, 0), (0.9, 50), (0.5, 3), (0.35, 17)])
def test_scaled_survivors_keep_the_mean(p, draw):
    mean, _, printed = numbers(drop, p=p, draw=draw, printed=True)
    error = 3 * math.sqrt(p / (1 - p) / 16000)  # the standard error of 16 000 units
    assert mean == pytest.approx(3, abs=6 * error + 1e-6)
    assert printed == pytest.approx(mean * (1 - p), rel=1e-4)


def test_only_zeroed_the_mean_of_threes_is_two_point_four():
    assert numbers(drop, p=0.2, printed=True)[2] == pytest.approx(2.4, abs=0.05)


@pytest.mark.parametrize(("weight", "p", "masks"), [(2.2, 0.5, 1), (0.0, 0.0, 4096), (3.0, 0.8, 4096), (1.1, 0.3, 50)])
def test_dropout_adds_a_ridge(weight, p, masks):
    penalty, added = numbers(what_dropout_adds, weight=[weight, 0.0], p=p, masks=masks)
    X = FEATURES.numpy()
    expected = sum(p / (1 - p) * w**2 * sum(x**2 for x in X[:, j]) for j, w in enumerate((weight, 1.1)))
    assert penalty == pytest.approx(expected, rel=1e-6)
    if masks > 1000 and p > 0:
        assert added == pytest.approx(penalty, rel=0.1)
    if p == 0:
        assert added == pytest.approx(0)


@pytest.mark.parametrize("shuffle", [0, 1, 7, 50])
def test_any_labels_are_fitted_but_not_two_on_one_input(shuffle):
    points = [[i / 2 - 2, random.Random(i + shuffle).uniform(-1, 1)] for i in range(9)]
    assert numbers(any_labels, points=points, shuffle=shuffle) == [0, 9]
    assert numbers(any_labels, points=points, shuffle=shuffle, printed=True) == [0.5, 9]
    points[3] = [points[4][0], points[4][1] - 0.8]  # by hand, without the switch
    assert numbers(any_labels, points=points)[0] == pytest.approx(0.4, abs=1e-6)


def test_folds_choose_the_degree_of_your_curve():
    draw = random.Random(5)
    rows = [(x, x**3 - 3 * x + draw.gauss(0, 0.05)) for x in (draw.uniform(-2, 2) for _ in range(120))]
    table = "x,y\n" + "\n".join(f"{x},{y}" for x, y in rows)
    state = {"table": base64.b64encode(table.encode()).decode(), "l2": 1e-6}
    line, best, test = numbers(your_degree, **state, degree=1)
    cubic, _, _ = numbers(your_degree, **state, degree=3)
    assert 3 <= best <= 6
    assert cubic < line / 20
    assert test == pytest.approx(0.05**2 / 2, rel=0.7)
    few = {"table": base64.b64encode(b"x,y\n1,2\n3,4\n").decode()}
    with pytest.raises(Exception, match="expected at least 12 rows"):
        numbers(your_degree, **few)
