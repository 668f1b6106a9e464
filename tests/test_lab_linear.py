"""The page on linear models: what each exhibit shows, held against numpy, scipy and closed forms."""

import base64
import random

import numpy as np
import pytest
from scipy import optimize, stats

from quoin.errors import UserError
from quoin.lab import linear
from quoin.lab.parts import exhibit_of
from quoin.lab.parts.lines import START, examples, sgd_path

PULL = exhibit_of(linear.pull_a_point)
STEP = exhibit_of(linear.a_step_by_hand)
GUESS = exhibit_of(linear.the_best_guess)
CLASSES = exhibit_of(linear.classes_by_regression)
OWN = exhibit_of(linear.yours)


def point_sets():
    chance = random.Random(3)
    some = [[(chance.uniform(-4, 4), chance.uniform(-2.6, 2.6)) for _ in range(n)] for n in (3, 9, 20)]
    return [list(linear.TROUPE), list(linear.PULLED), *some]


@pytest.mark.parametrize("points", point_sets())
def test_two_lines_through_points(points):
    x, y = np.array(points).T
    slope, level = np.polyfit(x, y, 1)
    view = PULL.view({"points": [list(each) for each in points]})
    assert view.numbers[0].value == pytest.approx(((slope * x + level - y) ** 2).mean() / 2)
    assert view.numbers[1].value == pytest.approx(slope)
    # least absolute error as a linear programme: minimise Σt with -t <= wx + b - y <= t
    n, one = len(x), np.eye(len(x))
    rows = np.block([[x[:, None], np.ones((n, 1)), -one], [-x[:, None], -np.ones((n, 1)), -one]])
    found = optimize.linprog(np.r_[0, 0, np.ones(n)], rows, np.r_[y, -y], bounds=[(None, None)] * 2 + [(0, None)] * n)
    fit = linear.least_absolute_line(*linear.torch.tensor(points, dtype=linear.torch.float64).unbind(dim=1))
    error = np.abs(float(fit.weight[0]) * x + float(fit.bias) - y).sum()
    assert error == pytest.approx(found.fun)
    assert view.numbers[2].value == pytest.approx(float(fit.weight[0]))


def test_one_outlier_swings_one_line_only():
    before, after = PULL.view(), PULL.view({"points": [list(each) for each in linear.PULLED]})
    assert after.reached
    assert before.numbers[1].value - after.numbers[1].value > 0.2
    assert abs(before.numbers[2].value - after.numbers[2].value) < 0.05


def test_as_printed_one_x_has_as_many_answers_as_there_are_rows():
    view = PULL.view({"printed": True})
    assert view.numbers[2].value == len(linear.TROUPE)
    assert view.numbers[2].printed


def test_points_above_one_another_have_a_line():
    view = PULL.view({"points": [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]})
    assert view.numbers[2].value == 0


@pytest.mark.parametrize(
    ("batch", "rate", "steps"), [(4, 0.3, 8), (1, 0.02, 30), (16, 2.0, 30), (2, 0.7, 3), (8, 0.1, 17), (1, 0.2, 1)]
)
@pytest.mark.parametrize("printed", [False, True])
def test_steps_by_hand(batch, rate, steps, printed):
    X, y = (each.numpy() for each in examples())
    x, (w, b) = X[:, 0], START
    for step in range(steps):
        rows = np.arange(16)[(step * batch) % 16 :][:batch]
        r = w * x[rows] + b - y[rows]
        w, b = w - rate * (r * x[rows]).mean(), (w if printed else b) - rate * r.mean()
    view = STEP.view({"batch": batch, "rate": [rate, 0.0], "steps": steps, "printed": printed})
    assert view.numbers[0].value == pytest.approx(((w * x + b - y) ** 2).mean() / 2, rel=1e-9)
    assert sgd_path(batch, rate, printed)[steps] == pytest.approx((w, b), rel=1e-9)
    slope, level = np.polyfit(x, y, 1)
    assert view.numbers[1].value == pytest.approx(((slope * x + level - y) ** 2).mean() / 2)
    assert view.reached <= printed


def test_as_printed_the_path_ends_elsewhere():
    for steps in (8, 20, 30):
        assert STEP.view({"printed": True, "steps": steps}).reached
    # where it stands still w's gradient is 0 and b = w - rate * mean residual: far from b = -1
    _, b = sgd_path(16, 0.3, True)[30]
    assert b > 0.5
    assert sgd_path(16, 0.3, False)[30][1] < 0


@pytest.mark.parametrize(
    ("middle", "bend", "noise"),
    [(0.0, 0.5, 0.8), (-2.0, 0.0, 0.0), (2.0, 1.0, 2.0), (0.0, 1.0, 0.8), (1.3, 0.2, 1.1), (-0.4, 0.7, 0.3)],
)
def test_the_best_guess_by_moments(middle, bend, noise):
    offsets = np.linspace(-3, 3, 25)
    p = np.exp(-(offsets**2) / 2)
    p, x = p / p.sum(), middle + offsets
    truth = (1 - bend) * x + bend * x**2
    slope = p @ ((x - p @ x) * truth) / (p @ (x - p @ x) ** 2)
    line = p @ truth + slope * (x - p @ x)
    view = GUESS.view({"middle": [middle, 0.0], "bend": bend, "noise": noise})
    assert view.numbers[0].value == pytest.approx(p @ (truth - line) ** 2 + noise**2, abs=1e-12)
    assert view.numbers[1].value == pytest.approx(noise**2, abs=1e-12)
    assert view.numbers[2].value == pytest.approx(slope, abs=1e-11)
    assert slope == pytest.approx((1 - bend) + 2 * bend * middle)
    assert view.reached == ((middle, bend) == (0.0, 1.0))


def places():
    chance = random.Random(9)
    anywhere = [[[chance.uniform(-3, 3), chance.uniform(-2, 2)] for _ in range(3)] for _ in range(3)]
    return [list(map(list, linear.CORNERS.values())), [[-3, -2], [0, 0], [3, 2]], *anywhere]


@pytest.mark.parametrize("centers", places())
@pytest.mark.parametrize("printed", [False, True])
def test_classes_by_hand(centers, printed):
    points, labels = (each.numpy() for each in linear.three_clouds(*map(tuple, centers)))
    design = points if printed else np.c_[points, np.ones(60)]
    outputs = design @ np.linalg.lstsq(design, np.eye(3)[labels], rcond=None)[0]
    view = CLASSES.view({**dict(zip(linear.CORNERS, centers)), "printed": printed})
    assert view.numbers[1].value == pytest.approx((outputs.argmax(1) == labels).mean(), abs=1 / 60)
    assert view.numbers[0].text == f"{(outputs[20:40].argmax(1) == 1).sum()} of 20"
    spread = np.abs(outputs.sum(1) - 1).max()
    assert (spread > 1e-3) == printed
    assert (view.numbers[2].text == "1.00 to 1.00") == (not printed)


def test_the_middle_class_is_masked():
    assert CLASSES.view({"middle": [0.0, -0.8]}).numbers[0].text == "0 of 20"
    assert CLASSES.view().numbers[0].text == "20 of 20"
    assert not CLASSES.view({"middle": [0.0, -0.8], "printed": True}).reached


def test_regions_are_where_the_score_is_largest():
    torch = linear.torch
    generator = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(4, 2, generator=generator), torch.randn(4, generator=generator)
    from quoin.lab.parts.class_pictures import argmax_region

    square = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
    grid = torch.cartesian_prod(torch.linspace(-1, 1, 201), torch.linspace(-1, 1, 201))
    winner = (grid @ weight.mT + bias).argmax(-1)
    for index in range(4):
        corners = np.array(argmax_region(weight, bias, index, square)).reshape(-1, 2)
        x, y = corners.T
        area = abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2 if len(corners) else 0.0
        assert area / 4 == pytest.approx(float((winner == index).float().mean()), abs=0.01)


def test_weights_of_ones_own_table():
    chance = np.random.default_rng(0)
    X = chance.normal(size=(30, 2)) * [1, 10]
    y = X @ [2, 0] + 1 + chance.normal(size=30)
    text = "a,b,target\n" + "\n".join(f"{p},{q},{r}" for (p, q), r in zip(X, y))
    view = OWN.view({"file": base64.b64encode(text.encode()).decode()})
    design = np.c_[X, np.ones(30)]
    weights, squares, *_ = np.linalg.lstsq(design, y, rcond=None)
    assert view.numbers[0].value == pytest.approx(np.sqrt(squares[0] / 27), rel=1e-4)
    found = linear.fit_with_errors(*(linear.torch.tensor(each) for each in (X, y)))
    errors = np.sqrt(squares[0] / 27 * np.diag(np.linalg.inv(design.T @ design)))[:2]
    np.testing.assert_allclose(found.standard_errors, errors)
    np.testing.assert_allclose(found.fit.weight, weights[:2])
    assert found.t == pytest.approx(stats.t.ppf(0.975, 27))
    line = stats.linregress(X[:, 0], y)
    alone = linear.fit_with_errors(linear.torch.tensor(X[:, :1]), linear.torch.tensor(y))
    assert float(alone.standard_errors[0]) == pytest.approx(line.stderr)
    assert "1 of 2 weights differ" in view.picture.alt


def test_tables_that_do_not_do():
    for text, message in (("a\n1\n2\n3\n", "columns of numbers"), ("a,b,c\n1,2,3\n2,3,4\n", "more rows")):
        with pytest.raises(UserError, match=message):
            OWN.view({"file": base64.b64encode(text.encode()).decode()})
    twice = "a,b,c\n" + "\n".join(f"{i},{2 * i},{i * i}" for i in range(9))
    with pytest.raises(UserError):
        OWN.view({"file": base64.b64encode(twice.encode()).decode()})
