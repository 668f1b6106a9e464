"""The page on tensors: what each exhibit shows, held against numpy and closed forms."""

import math
import random

import numpy as np
import pytest
import torch

from quoin.errors import UserError
from quoin.lab import tensors
from quoin.lab.parts import digits, exhibit_of
from quoin.lab.parts.tensor_pictures import UNREACHED, ball, length, parse_matrix, rank_of_the_limit, two_terms
from quoin.lab.tensors import EXPONENTS

LEGS = exhibit_of(tensors.legs)
BALLS = exhibit_of(tensors.balls)
RANK = exhibit_of(tensors.unreachable_rank)
AGAIN = exhibit_of(tensors.again_and_again)
OWN = exhibit_of(tensors.yours)


@pytest.mark.parametrize(
    ("spec", "shapes", "cost", "shape"),
    [
        ("bik,bkj->bij", "3 2 4, 3 4 2", 48, "3 × 2 × 2"),
        ("ij,j", "2 3, 3", 6, "2"),
        ("ii", "4 4", 0, "a number"),
        ("ikm,kmj->ij", "2 3 4, 3 4 5", 120, "2 × 5"),
        ("i,j,k->ijk", "2, 3, 4", 48, "2 × 3 × 4"),
        ("ij->j", "5 6", 0, "6"),
    ],
)
def test_an_einsum_and_its_cost(spec, shapes, cost, shape):
    view = LEGS.view({"spec": spec, "shapes": shapes})
    assert [each.text for each in view.numbers] == [
        str(cost),
        shape,
        str(shape.count("×") + 1 if shape[0] != "a" else 0),
    ]
    operands = [np.zeros(tuple(map(int, part.split()))) for part in shapes.split(",")]
    assert np.einsum(spec, *operands).ndim == int(view.numbers[2].text)
    assert not view.reached


def test_as_printed_a_batch_melts_into_one_product():
    view = LEGS.view({"printed": "DE14"})
    assert view.numbers[1].text == "2 × 2"
    assert view.reached
    assert not LEGS.view({"printed": "DE14", "spec": "ik,kj->ij", "shapes": "2 3, 3 4"}).reached


def test_a_batched_product_by_entries_is_none_or_another():
    view = LEGS.view({"printed": "ZE26"})
    assert [each.text for each in view.numbers[1:]] == ["none", "none"]
    assert "3 × 2 × 4 and 3 × 4 × 2 have no product" in view.note
    square = LEGS.view({"printed": "ZE26", "shapes": "3 2 2, 3 2 2"})
    assert square.numbers[1].text == "3 × 2 × 2"
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randn(3, 2, 2, generator=generator, dtype=torch.float64) for _ in range(2))
    apart = float((first * second - first @ second).abs().max())
    assert f"off by up to {apart:.3g}" in square.note
    with pytest.raises(UserError, match="expected two tensors"):
        LEGS.view({"printed": "ZE26", "spec": "ij->j", "shapes": "2 3"})


@pytest.mark.parametrize(
    ("spec", "shapes", "message"),
    [
        ("ij,jk", "2 3, 4 5", "index j"),
        ("ij", "a b", "whole numbers"),
        ("...i", "2 3", "as a letter"),
        ("ij,jk", "64 64, 64 64", "smaller sizes"),
        ("i", "65", "1 to 64"),
        ("ij,jk", "2 3", "expected"),
    ],
)
def test_specs_that_do_not_fit(spec, shapes, message):
    with pytest.raises(UserError, match=message):
        LEGS.view({"spec": spec, "shapes": shapes})


def states():
    chance = random.Random(2)
    point = lambda: [chance.uniform(-1.6, 1.6), chance.uniform(-1.6, 1.6)]  # noqa: E731
    ends = [([-0.05, 1.0], [1.0, 0.05], 2.0), ([-1.6, -1.6], [1.6, 1.6], EXPONENTS[-1]), ([1.6, 1.6], [-1.6, 1.0], 0.3)]
    return ends + [(point(), point(), chance.choice(EXPONENTS)) for _ in range(5)]


@pytest.mark.parametrize(("x", "y", "p"), states())
def test_lengths_and_triangles(x, y, p):
    def size(v):
        if p == EXPONENTS[-1]:
            return max(map(abs, v))
        return sum(abs(each) ** p for each in v) ** (1 / p)

    view = BALLS.view({"x": x, "y": y, "p": p})
    detour = size(x) + size(y) - size([a + b for a, b in zip(x, y)])
    assert view.numbers[0].value == pytest.approx(detour, abs=1e-9)
    assert view.numbers[1].value == pytest.approx(size(x))
    assert view.numbers[2].value == pytest.approx(size([a + b for a, b in zip(x, y)]))
    assert f"p = {'∞' if p == EXPONENTS[-1] else digits(p)}:" in view.picture.alt
    assert p < 1 or view.numbers[0].value > -1e-9
    assert view.reached == (detour < -1e-9)


def test_below_one_the_detour_is_shorter():
    assert BALLS.view({"p": 0.5}).reached
    assert not BALLS.view({"p": 1.0}).reached
    # p = 1/2: the ball passes (1/4, 1/4), inside the segment from (1, 0) to (0, 1)
    assert min(math.hypot(*point) for point in ball(0.5, False)) == pytest.approx(math.sqrt(2) / 4)


def test_without_bars_signs_cancel():
    view = BALLS.view({"x": [-1.0, 1.0], "p": 1.0, "printed": True})
    assert view.numbers[1].value == 0
    assert view.numbers[1].printed
    assert BALLS.view({"x": [-1.0, 1.0], "p": 1.0}).numbers[1].value == 2
    odd = [point for point in ball(1.0, True) if math.isfinite(point[0])]
    assert all(x + y == pytest.approx(1) for x, y in odd)
    assert len(odd) < 121
    for p in (0.3, 1.0, 2.0, math.inf):
        assert all(length(torch.tensor(point, dtype=torch.float64), p) == pytest.approx(1) for point in ball(p, False))


@pytest.mark.parametrize("epsilon", [0.5, 1e-4, 1.0, 0.03, 2e-3, 0.2])
def test_two_terms_against_the_limit(epsilon):
    e1, e2 = np.eye(2)

    def cube(v):
        return np.einsum("i,j,k->ijk", v, v, v)

    aim = sum(np.einsum("i,j,k->ijk", *each) for each in ((e1, e1, e2), (e1, e2, e1), (e2, e1, e1)))
    np.testing.assert_array_equal(UNREACHED.numpy(), aim)
    near = (cube(e1 + epsilon * e2) - cube(e1)) / epsilon
    view = RANK.view({"epsilon": epsilon})
    assert view.numbers[0].value == pytest.approx(np.linalg.norm(near - aim) / np.sqrt(3), rel=1e-6)
    assert view.numbers[0].value == pytest.approx(epsilon * np.sqrt(3 + epsilon**2) / np.sqrt(3), rel=1e-6)
    assert view.numbers[1].value == pytest.approx((1 + epsilon**2) ** 1.5 / epsilon / np.sqrt(3))
    assert view.reached == (epsilon < 5e-4)
    np.testing.assert_allclose(two_terms(epsilon).tensor(), near, atol=1e-9)


def test_ranks():
    assert rank_of_the_limit() == 3  # its hyperdeterminant is 0: the classic tensor of border rank 2
    assert RANK.view().numbers[2].text == "3"
    assert RANK.view({"printed": True}).numbers[2].text == "1"
    assert tensors.zero_pure_tensors_have_rank_zero.right([torch.zeros(2), torch.ones(2), torch.ones(2)]) == 0


def matrices():
    chance = random.Random(4)
    some = [[[chance.uniform(-2, 2) for _ in range(2)] for _ in range(2)] for _ in range(3)]
    return [[[1.6, 0.0], [1.0, 1.0]], [[2.0, 2.0], [-2.0, -2.0]], [[0.0, 1.0], [-1.0, 0.0]], *some]


@pytest.mark.parametrize(("first", "second"), matrices())
def test_iterates_by_hand(first, second):
    A = np.array([first, second]).T
    vector = np.array([-0.6, 0.8])
    for _ in range(9):
        growth = np.linalg.norm(A @ vector)
        vector = A @ vector / (growth or 1)
    view = AGAIN.view({"first": first, "second": second, "steps": 9})
    assert view.numbers[0].value == pytest.approx(growth, abs=1e-12)
    values = np.linalg.eigvals(A)
    by_size = sorted(values, key=abs)
    if np.isreal(values).all() and abs(by_size[1]) > 1.15 * abs(by_size[0]):
        power = tensors.power_iteration(torch.tensor(A), max_iter=300, generator=torch.Generator().manual_seed(0))
        assert float(power.value) == pytest.approx(by_size[1].real)
        assert view.numbers[1].text != "none in 300 steps"
    if np.abs(values.imag).max() > 1e-6:
        assert view.numbers[2].text == "0"
        assert view.numbers[1].text == "none in 300 steps"


def test_a_shear_has_one_direction():
    view = AGAIN.view({"first": [1.0, 0.0], "steps": 20})
    assert view.numbers[2].text == "1"
    assert view.reached
    assert AGAIN.view().numbers[2].text == "2"
    assert AGAIN.view({"first": [1.0, 0.0], "second": [0.0, 1.0]}).numbers[2].text == "2"


def test_a_matrix_of_ones_own():
    text = "1, 2\n3 4"
    np.testing.assert_array_equal(parse_matrix(text), [[1, 2], [3, 4]])
    view = OWN.view({"matrix": text})
    assert view.numbers[0].text == "2"
    assert view.numbers[1].value == pytest.approx(-2)
    assert view.numbers[2].value == pytest.approx((5 + math.sqrt(33)) / 2)
    wide = OWN.view({"matrix": "1 2 3\n2 4 6"})
    assert [each.text for each in wide.numbers] == ["1", "2"]
    assert "Not square" in wide.note


@pytest.mark.parametrize("text", ["", "1 2\n3", "a b", "nan", "1e99", "1 " * 9, "\n".join("1" * 9)])
def test_what_is_no_matrix(text):
    with pytest.raises(UserError):
        OWN.view({"matrix": text})
