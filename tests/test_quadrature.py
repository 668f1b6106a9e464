"""Quadratures know how far off they are: the true error is at most the estimate, over integrands whose integrals
mathematics knows.

Smooth, oscillating, kinked, jumping, peaked and singular ones, on intervals and half-lines and boxes; by fixed nodes
and by adaptive ones. And all who integrate find jumps: means and variances of densities and of torch distributions, the
gap from independence.
"""

import math

import pytest
import torch
from torch import distributions as families

from quoin.errors import UserError
from quoin.prob import (
    Density,
    covariance,
    expectation,
    independence_gap_of_density,
    integrate,
    line_quadrature,
    variance,
)

INF = math.inf
PHI = lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2)))  # noqa: E731


def normal_pdf(x):
    return torch.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


# name: f, edges, integral, and what the estimate of fixed nodes may be at most (None: they are told too little)
FAMILY = {
    "constant": (lambda x: 0 * x + 1, (0, 1), 1.0, 1e-12),
    "polynomial": (lambda x: 5 * x**4, (0, 1), 1.0, 1e-7),
    "exponential": (torch.exp, (0, 1), math.e - 1, 1e-9),
    "sine": (torch.sin, (0, math.pi), 2.0, 1e-7),
    "40 rad": (lambda x: torch.cos(40 * x), (0, 1), math.sin(40) / 40, None),
    "200 rad": (lambda x: torch.cos(200 * x), (0, 1), math.sin(200) / 200, None),
    "root": (torch.sqrt, (0, 1), 2 / 3, 1e-9),
    "infinite at an edge": (lambda x: x**-0.5, (0, 1), 2.0, 1e-9),
    "kink": (lambda x: (x - 0.3).abs(), (0, 1), (0.3**2 + 0.7**2) / 2, 0.1),
    "breakpoint in the middle": (lambda x: (x - 0.5).abs(), (0, 1), 0.25, 0.1),
    "breakpoint of a slope": (lambda x: (x - 0.3).clamp(min=0) ** 2, (0, 1), 0.7**3 / 3, 1e-3),
    "jump": (lambda x: (x < 0.3).double(), (0, 1), 0.3, 0.6),
    "jump in the middle": (lambda x: (x < 0.5).double(), (0, 1), 0.5, 0.6),
    "mirrored jumps": (lambda x: ((x > 0.123) & (x < 0.877)).double(), (0, 1), 0.754, 0.6),
    "six jumps": (lambda x: (torch.floor(7 * x) % 2).double(), (0, 1), 3 / 7, None),
    "jump of a smooth one": (
        lambda x: torch.where(x < 1 / math.e, torch.exp(x), 0),
        (0, 1),
        math.exp(1 / math.e) - 1,
        None,
    ),
    "peak": (lambda x: torch.exp(-(((x - 0.4) / 0.02) ** 2) / 2), (0, 1), 0.02 * math.sqrt(2 * math.pi), None),
    "sharp peak": (lambda x: 1e-3 / (1e-6 + (x - 0.3) ** 2), (0, 1), math.atan(700) + math.atan(300), None),
    "infinite inside": (lambda x: (x - 0.3).abs().log(), (0, 1), 0.3 * math.log(0.3) + 0.7 * math.log(0.7) - 1, None),
    "exponential tail": (lambda x: torch.exp(-x), (0, INF), 1.0, 1e-5),
    "heavy tail": (lambda x: 1 / (1 + x**2), (-INF, 0, INF), math.pi, 1e-2),
    "jump in a tail": (lambda x: torch.exp(-x) * (x > 2.3), (0, INF), math.exp(-2.3), None),
    "small jump far out": (lambda x: normal_pdf(x) * (x < 5), (-INF, -1, 0, 1, INF), PHI(5), 1e-3),
}


@pytest.mark.parametrize("name", FAMILY)
def test_the_error_of_fixed_nodes_is_at_most_the_estimate(name):
    f, edges, integral, most = FAMILY[name]
    found = line_quadrature(torch.tensor(edges, dtype=torch.float64)).integral(f)
    assert abs(float(found.output) - integral) <= float(found.error)
    if most is not None:
        assert float(found.error) <= most


@pytest.mark.parametrize("name", FAMILY)
def test_adaptive_nodes_find_what_is_not_smooth(name):
    f, edges, integral, _ = FAMILY[name]
    found = integrate(f, edges)
    assert abs(float(found.output) - integral) <= float(found.error) <= 1e-7
    shifted = integrate(lambda x: f(x - 5), tuple(edge + 5 for edge in edges))  # nothing hangs on where the line begins
    assert float(shifted.output) == pytest.approx(integral, abs=1e-7)


@pytest.mark.parametrize("seed", range(40))
def test_a_jump_anywhere_is_found_and_never_hidden_by_luck(seed):
    place = float(torch.rand((), generator=torch.Generator().manual_seed(seed), dtype=torch.float64))
    f = lambda x: (x < place).double()  # noqa: E731
    fixed = line_quadrature(torch.tensor([0.0, 1.0], dtype=torch.float64)).integral(f)
    assert abs(float(fixed.output) - place) <= float(fixed.error)
    found = integrate(f, (0, 1))
    assert abs(float(found.output) - place) <= float(found.error) <= 1e-8


BOXES = {  # f, edges, integral, the most that the error may be
    "smooth": (lambda x, y: torch.exp(x + y), ((0, 1), (0, 1)), (math.e - 1) ** 2, 1e-8),
    "breakpoints along the axes": (lambda x, y: ((x - 0.5) * (y - 0.5)).abs(), ((0, 1), (0, 1)), 1 / 16, 1e-8),
    "a corner": (lambda x, y: ((x < 0.3) & (y < 0.8)).double(), ((0, 1), (0, 1)), 0.24, 1e-3),
    "a triangle": (lambda x, y: (x + y < 1).double(), ((0, 1), (0, 1)), 0.5, 0.05),
    "another triangle": (lambda x, y: (x + 2 * y < 1).double(), ((0, 1), (0, 1)), 0.25, 0.05),
    "a disc": (lambda x, y: (x**2 + y**2 < 1).double(), ((-1, 1), (-1, 1)), math.pi, 0.3),
    "a breakpoint across": (lambda x, y: (x - y).abs(), ((0, 1), (0, 1)), 1 / 3, 1e-3),
    "three": (lambda x, y, z: x * y * z, ((0, 1), (0, 1), (0, 1)), 1 / 8, 1e-3),
    "normal": (lambda x, y: normal_pdf(x) * normal_pdf(y), ((-INF, -1, 0, 1, INF),) * 2, 1.0, 1e-6),
}


@pytest.mark.parametrize("name", BOXES)
def test_on_boxes_too(name):
    f, edges, integral, most = BOXES[name]
    found = integrate(f, *edges, num_nodes=40 if len(edges) > 2 else 80)
    assert abs(float(found.output) - integral) <= float(found.error) <= most


# ---- all who integrate ------------------------------------------------------------------------------------------


NORMAL = families.Normal(torch.zeros((), dtype=torch.float64), 1.0)
below = lambda x: (x < 0.3).double()  # noqa: E731
MEANS = {
    "Density.expectation": lambda: Density.from_distribution(NORMAL).expectation(below),
    "expectation of a density": lambda: expectation(Density.from_distribution(NORMAL), below),
    "expectation of a torch distribution": lambda: expectation(NORMAL, below),
}


@pytest.mark.parametrize("name", MEANS)
def test_the_mean_of_an_indicator_is_a_probability(name):
    assert float(MEANS[name]()) == pytest.approx(PHI(0.3), abs=1e-8)


def test_its_error_is_told():
    found = Density.from_distribution(NORMAL).integral(below)
    assert abs(float(found.output) - PHI(0.3)) <= float(found.error) <= 1e-7


@pytest.mark.parametrize("law", [NORMAL, Density.from_distribution(NORMAL)])
def test_variances_and_covariances_of_indicators(law):
    above = lambda x: (x > -1.1).double()  # noqa: E731
    p, q, both = PHI(0.3), PHI(1.1), PHI(0.3) - PHI(-1.1)
    assert float(variance(law, below)) == pytest.approx(p * (1 - p), abs=1e-8)
    assert float(covariance(law, below, above)) == pytest.approx(both - p * q, abs=1e-8)


def test_a_batch_of_torch_laws():
    laws = families.Normal(
        torch.tensor([0.0, 1.0, 30.0], dtype=torch.float64), torch.tensor([1.0, 2.0, 0.1], dtype=torch.float64)
    )
    expected = [PHI(0.3), PHI(-0.35), 0.0]
    assert expectation(laws, below).tolist() == pytest.approx(expected, abs=1e-8)


def test_the_gap_from_independence_has_kinks():
    joint = Density(lambda x, y: x + y, (0, 1), (0, 1))
    assert float(independence_gap_of_density(joint, 0)) == pytest.approx(1 / 32, abs=1e-9)
    theta = 0.7  # |θ (1 - 2x)(1 - 2y)| / 2, whose mean is θ/8, with edges where it has no breakpoint
    tilted = Density(lambda x, y: 1 + theta * (1 - 2 * x) * (1 - 2 * y), (0, 0.3, 1), (0, 1))
    assert float(independence_gap_of_density(tilted, 1)) == pytest.approx(theta / 8, abs=1e-9)


def test_gradients_reach_through_adapted_nodes():
    mean = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    law = Density(lambda x: normal_pdf(x - mean), (-INF, -1, 0, 1, INF))
    (slope,) = torch.autograd.grad(law.expectation(below), mean)
    assert float(slope) == pytest.approx(-math.exp(-0.005) / math.sqrt(2 * math.pi), abs=1e-7)  # d/dμ Φ(0.3 - μ)


def test_no_box_is_refused():
    with pytest.raises(UserError, match="edges of a box"):
        integrate(lambda: torch.ones(()))
