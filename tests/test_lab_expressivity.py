"""What the page on expressivity shows, against numpy and the closed forms."""

import base64
import math
import random
from itertools import pairwise

import numpy as np
import pytest
import torch

from quoin.errors import UserError
from quoin.lab.expressivity import LINE, draw_a_curve, fold, hinges, polynomials_stick, your_curve
from quoin.lab.parts import exhibit_of
from quoin.lab.parts.drawn_curve import DrawnCurve, own_curve


def numbers(show, **state):
    found = [number.value for number in exhibit_of(show).view(state).numbers]
    return [float(value) for value in found]


def slopes_of(corners):
    return [(d - b) / (c - a) for (a, b), (c, d) in pairwise(corners)]


def drift_of_hinges(corners):
    """The largest |printed - right| of the ReLU form: each jump of the slope comes one breakpoint too late."""
    slopes, inner = slopes_of(corners), [a for a, _ in corners[1:-1]]
    jumps = [b - a for a, b in pairwise(slopes)]
    x = np.linspace(-3, 3, 241)
    late = [*inner[1:], math.inf]
    return max(abs(sum(j * (max(0.0, at - t) - max(0.0, at - s)) for j, t, s in zip(jumps, inner, late))) for at in x)


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_hinges_add_up_and_the_printed_ones_come_too_late(seed):
    state = {"printed": True}
    if seed is None:
        corners = exhibit_of(hinges).controls[0].initial
    else:
        draw = random.Random(seed)
        corners = [[-2.5 + i, draw.uniform(-2, 2)] for i in range(4 + seed % 2)]
        state["corners"] = random.Random(seed).sample(corners, len(corners))  # in any order
    units, ramps, late = numbers(hinges, **state)
    assert units == len(corners) - 2 + 1
    assert late == pytest.approx(drift_of_hinges(corners), rel=1e-9)
    if seed is None:
        assert ramps == pytest.approx(8.75, abs=0.005)


def test_the_network_of_hinges_is_the_curve():
    view = exhibit_of(hinges).view({})
    line = view.picture.svg().split('stroke-width="3"')[0].rsplit('d="', 1)[1].split('"')[0]
    drawn = [tuple(map(float, pair.split())) for pair in line.replace("M", "L").split("L") if pair.strip()]
    corners = exhibit_of(hinges).controls[0].initial
    for x, y in drawn:  # the axes are 584 by 186 at (40, 26), for 6 by 6
        expected = np.interp((x - 40) / 584 * 6 - 3, *np.array(corners).T)
        if corners[0][0] < (x - 40) / 584 * 6 - 3 < corners[-1][0]:
            assert 3 - (y - 26) / 186 * 6 == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize(
    ("eps", "known"), [(0.2, "its slope"), (0.01, "its curvature"), (0.5, "its slope"), (0.07, "its slope")]
)
def test_a_drawn_curve_is_certified(eps, known):
    heights = [random.Random(round(1000 * eps) + i).random() for i in range(8)]
    points = [[(j + 0.5) / 8, height] for j, height in enumerate(heights)]
    units, _ = numbers(draw_a_curve, curve=points, eps=eps, known=known)
    g = DrawnCurve(heights)
    x = torch.linspace(0, 1, 20001, dtype=torch.float64)
    y = g(x)
    assert g(torch.tensor([p[0] for p in points]).double()).tolist() == pytest.approx(heights)
    assert float((y.diff() / x.diff()).abs().max()) <= g.lipschitz
    assert float((y.diff().diff() / (x[1] - x[0]) ** 2).abs().max()) <= g.curvature * (1 + 1e-3)
    # the fewest pieces of width h with K h / 2, or M h^2 / 8, below eps; a thousandth is left for rounding
    pieces = g.lipschitz / (2 * eps) if known == "its slope" else math.sqrt(g.curvature / (8 * eps))
    assert math.ceil(pieces) <= units <= math.ceil(1.002 * pieces) + 1
    knots = np.linspace(0, 1, int(units) + 1)
    assert np.abs(np.interp(x, knots, g(torch.tensor(knots))) - y.numpy()).max() <= eps


@pytest.mark.parametrize("eps", [0.5, 0.2])
def test_the_third_term_as_printed_is_off_by_the_rise_of_the_steepest_piece(eps):
    """|L(t_l) - L(x)| counted from the other end: at an end it is 0 for one and the whole rise for the other."""
    heights = [random.Random(i).random() for i in range(8)]
    points = [[(j + 0.5) / 8, height] for j, height in enumerate(heights)]
    units, _, off = numbers(draw_a_curve, curve=points, eps=eps, known="its slope", printed=True)
    rises = np.abs(np.diff(DrawnCurve(heights)(torch.linspace(0, 1, int(units) + 1, dtype=torch.float64))))
    assert 0.9 * rises.max() <= off <= rises.max() * (1 + 1e-9)


def test_a_jump_of_the_readers_curve_is_refused_with_the_way_out():
    table = base64.b64encode(b"x,y\n0,0\n0.5,0\n0.5000001,1\n1,1\n").decode()
    with pytest.raises(UserError, match="expected a curve without jumps, got a slope too steep for this ε; enlarge"):
        numbers(your_curve, table=table, eps=0.01)


def test_half_the_epsilon_is_twice_the_units():
    units, first = numbers(draw_a_curve, eps=0.1)
    assert 1.9 <= units / first <= 2.1
    assert numbers(draw_a_curve, eps=0.1, known="its curvature")[0] < units


@pytest.mark.parametrize(("k", "pieces"), [(3, 9), (1, 2), (9, 64), (7, 9), (5, 17), (6, 30)])
def test_the_distance_to_a_sawtooth(k, pieces):
    distance, bound, printed = numbers(fold, k=k, pieces=pieces, printed=True)
    assert bound == pytest.approx(max(0, (1 - (2 * pieces + 2) / 2**k) / 8))
    assert printed == pytest.approx(max(0, (1 - (2 * 25 + 2) / 2**k) / 8))
    p = min(pieces, 2**k)
    assert distance == pytest.approx((1 - (p - 1.5) / 2**k) / 4)  # half a tooth short, then 1/4 from the middle
    assert distance >= bound


def test_few_pieces_stay_away_and_the_printed_count_does_not_say_so():
    assert numbers(fold, k=7, pieces=9)[1] > 1 / 32
    assert numbers(fold, k=6, printed=True)[2] < 1 / 32 < numbers(fold, k=6, pieces=9)[1]


@pytest.mark.parametrize(("activation", "degree"), [("x²", 2), ("x³ − x", 3)])
def test_a_polynomial_activation_stops_at_its_degree(activation, degree):
    x = LINE.numpy()
    y = np.abs(x) + np.sin(3 * x)
    best = np.abs(np.polynomial.Polynomial.fit(x, y, degree)(x) - y).max()
    for width in (8, 32, 128):
        assert numbers(polynomials_stick, activation=activation, width=width)[0] == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("activation", ["ReLU", "tanh"])
def test_others_go_on(activation):
    errors = [numbers(polynomials_stick, activation=activation, width=width)[0] for width in (1, 8, 128)]
    assert errors[2] < errors[1] / 3 < errors[0]
    assert errors[2] < 0.1


def test_your_curve():
    rows = [(3, 1.0), (1, 0.0), (2, 2.0), (2, 0.0), (5, 1.0)]  # not in order, one x twice
    table = base64.b64encode(("a,b\n" + "\n".join(f"{x},{y}" for x, y in rows)).encode()).decode()
    units, exact, measured = numbers(your_curve, table=table, eps=0.1)
    assert exact == 3  # four points, two corners inside, and one unit for the left end
    assert measured <= 0.1
    assert units == pytest.approx(4 / (2 * 0.1), abs=1)  # slope 1 over a width of 4, height 1
    assert own_curve(base64.b64decode(table)).heights.tolist() == [0, 1, 1, 1]
    with pytest.raises(Exception, match="at least 3 different values of a"):
        numbers(your_curve, table=base64.b64encode(b"a,b\n1,2\n1,3\n").decode())
