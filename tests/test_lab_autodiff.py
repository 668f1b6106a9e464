"""The page on automatic differentiation: what each exhibit shows, held against hand-made derivatives and numpy."""

import math
import random
import re
from itertools import pairwise

import numpy as np
import pytest
import torch

from lab_states import drawn
from quoin.autodiff import finite_differences
from quoin.errors import UserError
from quoin.lab import autodiff
from quoin.lab.parts import exhibit_of
from quoin.lab.parts.formula import function_of, last_use_apart, parse_formula
from quoin.lab.parts.graph_picture import local_derivatives, trace_formula

GO = exhibit_of(autodiff.where_does_a_derivative_go)
SHAPE = exhibit_of(autodiff.rows_or_columns)
SMALL = exhibit_of(autodiff.how_small_is_small)
TANGENT = exhibit_of(autodiff.a_curve_by_its_tangent)
OWN = exhibit_of(autodiff.yours)


def points(*values):
    return [[value, row] for value, row in zip((*values, 0.0, 0.0, 0.0, 0.0), (3.5, 2.5, 1.5, 0.5))]


def places():
    chance = random.Random(3)
    return [(1.2, 0.7), (-3.0, 3.0), (3.0, -3.0), *((chance.uniform(-3, 3), chance.uniform(-3, 3)) for _ in range(3))]


@pytest.mark.parametrize(("x", "y"), places())
def test_a_hidden_path_is_missing_exactly(x, y):
    whole, value = GO.view({"inputs": points(x, y)}).numbers
    assert whole.value == pytest.approx(y + math.cos(x), abs=1e-12)
    assert value.value == pytest.approx(x * y + math.sin(x), abs=1e-12)
    whole, rest, share = GO.view({"inputs": points(x, y), "hidden": True}).numbers
    assert whole.value == pytest.approx(y + math.cos(x), abs=1e-12)
    assert rest.value == pytest.approx(y, abs=1e-12)
    assert share.value == pytest.approx(math.cos(x), abs=1e-12)


def test_the_number_on_each_edge_is_the_derivative_of_one_step():
    x, y = 0.8, -1.3
    graph = trace_formula(parse_formula("x*y + exp(x) - x/y"), [x, y])
    found = {(graph.nodes[edge.target].op, edge.slot): edge.derivative for edge in local_derivatives(graph)}
    expected = {("mul", 0): y, ("mul", 1): x, ("exp", 0): math.exp(x), ("div", 0): 1 / y, ("div", 1): -x / y**2}
    for step, value in (expected | {("add", 0): 1.0, ("add", 1): 1.0, ("sub", 1): -1.0}).items():
        assert found[step] == pytest.approx(value, abs=1e-12)


def test_adjoints_add_over_the_edges():
    graph = trace_formula(parse_formula("x*x + exp(x*w)/(1 + exp(x*w))"), [0.7, -0.4])
    total = dict.fromkeys(range(len(graph.nodes)), 0.0)
    for edge in local_derivatives(graph):
        if graph.nodes[edge.target].adjoint is not None:
            total[edge.source] += float(graph.nodes[edge.target].adjoint) * edge.derivative
    for node in graph.nodes:
        if node.adjoint is not None and node.index not in graph.outputs:
            assert total[node.index] == pytest.approx(float(node.adjoint), abs=1e-12)


def test_a_step_back_shows_one_more_adjoint():
    marks = [GO.view({"back": back}).picture.svg().count("∂ ") for back in range(6)]
    assert marks == [1, 2, 3, 4, 5, 5]


def test_what_a_formula_may_be():
    assert last_use_apart("x*x + exp(x2) + 2*x", "x") == "x*x + exp(x2) + 2*x_hidden"
    for text in ("1 + 2", "a*b*c*d*f", "x +", "__import__('os')"):
        with pytest.raises(UserError):
            GO.view({"formula": text})
    assert "used twice" in GO.view({"formula": "x*y", "hidden": True}).note
    assert not GO.view({"formula": "x*y", "hidden": True}).reached
    long = " + ".join(["sin(x)"] * 20)
    assert len(GO.view({"formula": long, "hidden": True}).picture.svg()) < 150_000
    assert float(function_of("3", "x")(torch.zeros(()))) == 3.0
    with pytest.raises(UserError, match="of x alone, got 'y'"):
        function_of("x*y", "x")


@pytest.mark.parametrize(("n", "m", "done"), [(8, 1, 1), (1, 16, 3), (16, 16, 16), (4, 2, 2), (64, 8, 5)])
def test_a_sweep_is_a_row_or_a_column(n, m, done):
    x, mix = np.linspace(-1, 1, n), torch.randn(m, 3, generator=torch.Generator().manual_seed(1)).double().numpy()
    inner = mix @ np.array([x.sum(), (x**2).sum(), np.sin(3 * x).sum()]) / math.sqrt(n)
    by_input = np.stack([np.ones(n), 2 * x, 3 * np.cos(3 * x)]) / math.sqrt(n)
    jacobian = np.cos(inner)[:, None] * (mix @ by_input)
    for number in range(min(done, m)):
        found = autodiff.one_sweep(n, m, True, number)
        assert np.allclose(found, jacobian[number, :16], atol=2e-5 * max(1, n / 8))
    for number in range(min(done, n)):
        assert np.allclose(autodiff.one_sweep(n, m, False, number), jacobian[:16, number], atol=2e-5 * max(1, n / 8))
    cost = finite_differences(lambda x: autodiff.some_map(m)(x).sum(), torch.linspace(-1, 1, n)).num_evaluations
    texts = [number.text for number in SHAPE.view({"n": n, "m": m, "done": done}).numbers]
    assert texts == [str(m), str(n), str(cost)]


def test_a_million_inputs_need_one_sweep():
    view = SHAPE.view({"n": 1_000_000, "done": 1})
    assert [number.text for number in view.numbers] == ["1", "1,000,000", "2,000,000"]
    assert "100% filled" in view.picture.svg()
    assert "0.0001% filled" in view.picture.svg()
    assert not SHAPE.view({"n": 1_000_000, "m": 2, "done": 1}).reached


@pytest.mark.parametrize("h", [1e-3, 1.0, 1e-15, 3e-7, 4e-2, 1e-10])
@pytest.mark.parametrize("x", [1.0, -3.0, 0.35])
def test_the_error_of_differences(x, h):
    error, best, slope = (number.value for number in SMALL.view({"x": x, "h": h}).numbers)
    exact = math.exp(x) * (math.sin(x) + math.cos(x))
    assert slope == pytest.approx(exact, rel=1e-12)
    above, below = ((math.exp(at) * math.sin(at)) for at in (x + h, x - h))
    assert error == pytest.approx(abs((above - below) / ((x + h) - (x - h)) - exact), rel=1e-6, abs=4e-16 * 20 / h)
    assert best < 1e-9


def test_smaller_is_worse_below_the_best_step():
    errors, _ = autodiff.difference_errors("exp(x) * sin(x)", 1.0)
    decades = [
        np.median([e for e, h in zip(errors, autodiff.STEPS) if 10.0**k <= h < 10.0 ** (k + 1)]) for k in range(-15, -6)
    ]
    assert all(a > b for a, b in pairwise(decades))


@pytest.mark.parametrize("degree", range(7))
@pytest.mark.parametrize("x", [0.0, -1.5, 1.0])
def test_the_remainder_has_a_slope_of_the_degree_plus_one(degree, x):
    view = TANGENT.view({"degree": degree, "at": [x, 0.0]})
    assert view.numbers[0].value == pytest.approx(degree + 1, abs=0.2)
    assert not view.reached


def test_no_line_is_a_tangent_at_a_kink():
    for text in ("abs(x)", "relu(x)"):
        for degree in (1, 2, 5):
            view = TANGENT.view({"formula": text, "degree": degree})
            assert view.numbers[0].value == pytest.approx(1.0, abs=1e-6)
            assert view.reached
    assert TANGENT.view({"formula": "x^2", "degree": 3}).numbers[0].value == 0.0


def test_a_row_of_a_table():
    file = b"a;b;y\n1;2;3\n2;3;1\n5;1;2\n"
    view = autodiff.yours(file, 2, 4)
    _, rows = autodiff.own_rows(file)
    x = rows[1, :-1].double().requires_grad_()
    model = autodiff.MLP([2, 8, 8, 1], activation=torch.nn.Tanh, generator=torch.Generator().manual_seed(4)).double()
    loss = (model(x[None])[0, 0] - rows[1, -1].double()) ** 2 / 2
    loss.backward()
    assert view.numbers[0].value == pytest.approx(float(loss.detach()), rel=1e-5)
    assert abs(view.numbers[1].value) == pytest.approx(float(x.grad.abs().max()), rel=1e-4)
    assert "target y" in view.note
    with pytest.raises(UserError):
        autodiff.yours(b"a\n1\n2\n", 1, 0)


def test_the_drawn_bound_is_that_of_the_third_derivative():
    view = SMALL.view({"formula": "exp(x)", "x": 1.0})
    for h, bound in drawn(view, "|f‴| h²/6"):
        if 1e-15 < bound < 50:  # inside the picture
            assert math.log10(bound) == pytest.approx(math.log10(math.e / 6 * h * h), abs=0.05)


def test_columns_and_rows_fill_one_matrix():
    view = SHAPE.view({"n": 8, "m": 4, "done": 8})
    cells = re.findall(r'<rect x="([0-9.]+)"[^>]*fill:([^;"]*)', view.picture.svg())
    left, right = ([fill for x, fill in cells if (float(x) < 320) == first] for first in (True, False))
    assert len(left) == 32
    assert left == right
    assert len(set(left)) > 4
    for done, told in ((1, "forwards 12% of it, backwards 25%"), (6, "forwards 75% of it, backwards 100%")):
        assert told in SHAPE.view({"n": 8, "m": 4, "done": done}).picture.alt
