"""Lengths, angles and distances of very large and very small vectors: float32 against float64, values and gradients.

Every public function of geometry.py, norms.py and distances.py has a line here, or a reason. 1e30 squared is beyond
float32 and 1e-30 squared vanishes in it, so a form that squares before it divides shows. Expected values are those of
float64, which holds both.
"""

import math

import pytest
import torch

from quoin.tensor import (
    angle,
    cosine_similarity,
    distances,
    frobenius_norm,
    geometry,
    hyperplane_distance,
    hyperplane_side,
    manhattan_distance,
    norm,
    norms,
    project,
    scaled_offsets,
    squared_distances,
)

SIZES = [1e30, 1e-30]
GIVEN = {
    name: torch.randn(3, 4, generator=torch.Generator().manual_seed(place)).double() for place, name in enumerate("xyz")
}

# name: (function, which of x, y, z it takes, the power of the size with which it grows)
CASES = {
    "cosine_similarity": (cosine_similarity, "xy", 0),
    "angle": (angle, "xy", 0),
    "project": (lambda x, y: project(x, y[0]), "xy", 1),
    "project onto a plane": (lambda x, y: project(x, y[:2].mT), "xy", 1),
    "project onto a plane that is larger or smaller": (lambda y: project(torch.ones(4).to(y), y[:2].mT), "y", 0),
    "hyperplane_distance": (lambda x, y: hyperplane_distance(x, y[0]), "xy", 1),
    "hyperplane_distance with an offset": (
        lambda y: hyperplane_distance(torch.ones(4).to(y), y[0], y[1].sum()),
        "y",
        0,
    ),
    "hyperplane_side": (lambda x, y: hyperplane_side(x, y[0]), "xy", 0),
    "norm": (norm, "x", 1),
    "norm 1": (lambda x: norm(x, 1), "x", 1),
    "norm 3": (lambda x: norm(x, 3), "x", 1),
    "norm inf": (lambda x: norm(x, math.inf), "x", 1),
    "manhattan_distance": (manhattan_distance, "xy", 1),
    "frobenius_norm": (frobenius_norm, "x", 1),
    "scaled_offsets": (lambda x, y, z: scaled_offsets(x, y, z[0].abs()), "xyz", 0),
    "squared_distances with one width": (lambda x, y, z: squared_distances(x, y, z[0, 0].abs()), "xyz", 0),
    "squared_distances with widths": (lambda x, y, z: squared_distances(x, y, z[0].abs()), "xyz", 0),
}
REASONS = {
    "norm_definition": "may overflow",
    "cosine_similarity_definition": "may overflow",
    "squared_distances_definition": "the square of a distance of 1e30 is beyond float32 by itself",
    "is_norm": "takes a function, no vectors",
    "NormTest": "a result",
    "Bandwidth": "a type",
    "as_bandwidth": "gives back what it takes",
}


def test_every_function_of_lengths_is_listed():
    public = {name for module in (geometry, norms, distances) for name in module.__all__}
    covered = {case.split()[0] for case in CASES} | set(REASONS)
    assert public == covered, f"not listed: {public - covered}; gone: {covered - public}"
    for name, reason in REASONS.items():
        if reason == "may overflow":
            home = norms if hasattr(norms, name) else geometry
            assert reason in getattr(home, name).__doc__


def answers(function, given, dtype):
    taken = [each.to(dtype).requires_grad_() for each in given]
    value = function(*taken)
    weights = torch.linspace(1, 2, value.numel(), dtype=dtype).reshape(value.shape)
    gradients = torch.autograd.grad((value * weights).sum(), taken, allow_unused=True)
    return value.detach(), [torch.zeros_like(each) if grad is None else grad for each, grad in zip(taken, gradients)]


@pytest.mark.parametrize("size", [1.0, *SIZES])
@pytest.mark.parametrize("case", CASES)
def test_float32_is_float64_at_every_size(case, size):
    function, names, _ = CASES[case]
    given = [(GIVEN[name] * size).float() for name in names]
    value, gradients = answers(function, given, torch.float32)
    expected, slopes = answers(function, given, torch.float64)
    near(value, expected)
    for found, right in zip(gradients, slopes):
        near(found, right)


@pytest.mark.parametrize("case", CASES)
def test_sizes_only_scale_the_answer(case):
    """f(a x) = a^k f(x) exactly, for a power of two: the float64 answers above are no accident of one form."""
    function, names, degree = CASES[case]
    one = function(*(GIVEN[name] for name in names))
    scaled = function(*(GIVEN[name] * 2.0**40 for name in names))
    torch.testing.assert_close(scaled, one * 2.0 ** (40 * degree), rtol=1e-12, atol=0)


def near(found, expected):
    """To 1e-5 of the largest entry, which may be of any size."""
    assert bool(found.isfinite().all())
    largest = float(expected.abs().max())
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5 * largest)


def test_a_point_on_a_plane_of_any_size_is_on_it():
    # of these, times whole numbers, float32 rounds nothing
    for size in (
        2.0**-120,
        2.0**-100,
        1.0,
        2.0**100,
        2.0**124,
    ):
        normal = torch.tensor([3.0, -5.0, 7.0]) * size
        assert hyperplane_distance(torch.tensor([5.0, 3.0, 0.0]), normal) == 0
        assert hyperplane_side(torch.tensor([5.0, 3.0, 1.0]), normal) == 1


def test_whole_numbers_three_apart_are_one_width_of_three_apart():
    assert squared_distances(torch.tensor([[7.0]]), torch.tensor([[4.0]]), 3.0) == 1
