"""Linear regions against brute force and exact formulas: polygons in a window, pieces on a segment, breakpoints between
them."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from quoin.errors import UserError
from quoin.expressivity import (
    activation_pattern,
    affine_layers,
    break_lines,
    folding_net,
    max_regions,
    max_zero_definition,
    max_zero_net,
    num_folding_regions,
    piece_maps,
    pieces_on_segment,
    regions_in_window,
    relu_network,
)
from quoin.layers import Affine
from quoin.models import MLP
from quoin.plot import PolygonMap, polygon_maps

DTYPES = [torch.float32, torch.float64]
WIDTHS = st.lists(st.integers(1, 6), min_size=1, max_size=3)


pytestmark = pytest.mark.usefixtures("one_thread")  # tensors here are too small to share out


def random_net(sizes, seed, dtype=torch.float64) -> nn.Sequential:
    generator = torch.Generator().manual_seed(seed)
    maps = [
        (torch.randn(m, n, generator=generator), torch.randn(m, generator=generator))
        for n, m in itertools.pairwise(sizes)
    ]
    return relu_network([Affine(weight.to(dtype), bias.to(dtype)) for weight, bias in maps])


def grid_patterns(net, points: int) -> set[tuple[bool, ...]]:
    """Brute force: the patterns that a grid meets, by the network's own modules and not by our reading of it."""
    line = torch.linspace(-1, 1, points, dtype=torch.float64)
    x, found = torch.cartesian_prod(line, line), []
    for module in net:
        x = module(x)
        if isinstance(module, nn.ReLU):
            found.append(x > 0)
    return {tuple(row) for row in torch.cat(found, dim=1).unique(dim=0).tolist()}


# ---- in a window ------------------------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(widths=WIDTHS, seed=st.integers(0, 10**6))
def test_regions_are_those_that_a_grid_meets(widths, seed):
    net = random_net([2, *widths, 1], seed)
    regions = regions_in_window(net)
    known = {tuple(row): area for row, area in zip(regions.patterns.tolist(), regions.mesh.areas(), strict=True)}
    met = grid_patterns(net, 161)
    assert met <= known.keys()
    step = 2 / 160
    # A region that no point of the grid met is small, or a sliver: not as wide as the grid's diagonal anywhere.
    for pattern in known.keys() - met:
        polygon = regions.polygons[regions.patterns.tolist().index(list(pattern))]
        assert inner_width(polygon) <= math.sqrt(2) * step
    assert len(known) == len(regions)  # a pattern is a convex set, so it has one polygon


def inner_width(polygon: np.ndarray) -> float:
    """The width of a convex polygon: the least, over its edges, of the largest distance of a corner from that edge."""
    edges = np.roll(polygon, -1, axis=0) - polygon
    normals = np.stack([-edges[:, 1], edges[:, 0]], axis=1) / np.linalg.norm(edges, axis=1, keepdims=True)
    return min(float(((polygon - start) @ normal).max()) for start, normal in zip(polygon, normals, strict=True))


@settings(max_examples=12, deadline=None)
@given(widths=WIDTHS, seed=st.integers(0, 10**6), dtype=st.sampled_from(DTYPES))
def test_the_mesh_fills_the_window_and_the_network_is_affine_on_each_polygon(widths, seed, dtype):
    net = random_net([2, *widths, 2], seed, dtype)
    regions = regions_in_window(net, (-2.0, -1.0), (1.0, 3.0))
    areas = regions.mesh.areas()
    assert (areas > 0).all()  # corners run round each polygon the same way
    assert areas.sum() == pytest.approx(12.0, rel=1e-12)
    edges = sum(map(len, regions.polygons)) - len(regions.mesh.neighbors())  # each inner edge is an edge of two
    assert len(regions.mesh.points) - edges + len(regions) == 1  # Euler
    weights = torch.rand(
        len(regions), 3, regions.mesh.corners.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    x = (weights / weights.sum(dim=2, keepdim=True)) @ torch.from_numpy(regions.mesh.points[regions.mesh.corners])
    claimed = x @ regions.maps.weight.mT + regions.maps.bias[:, None]
    said = net.double()(x)
    torch.testing.assert_close(claimed, said, rtol=1e-9, atol=1e-9)
    assert torch.equal(activation_pattern(net, x), regions.patterns[:, None].expand(-1, 3, -1))


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_one_layer_in_general_position_makes_the_greatest_number(n):
    net = folding_net(n, 1, 1) if n == 1 else folding_net(n, 1, 2)
    if n == 1:
        assert pieces_on_segment(net, [0.0], [1.0]).num_linear_pieces == 2
    else:
        assert (
            regions_in_window(net, (0.0, 0.0), (1.0, 1.0)).num_linear_regions
            == 1 + n + math.comb(n, 2)
            == max_regions([n], 2)
        )


@pytest.mark.parametrize(("width", "depth"), [(4, 2), (4, 3), (5, 2), (6, 2), (7, 2), (4, 4)])
def test_folding_meets_its_formula(width, depth):
    regions = regions_in_window(folding_net(width, depth, 2), (0.0, 0.0), (1.0, 1.0))
    expected = (width // 2) ** (2 * (depth - 1)) * (1 + width + width * (width - 1) // 2)
    assert (
        len(regions)
        == regions.num_linear_regions
        == num_folding_regions(width, depth, 2)
        == expected
        <= max_regions([width] * depth, 2)
    )


def test_regions_with_one_map_are_one_linear_region():
    # relu(x) + relu(-x) + relu(y) - relu(y): y's units cut the plane, but the function does not bend there.
    first = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    last = torch.tensor([[1.0, 1.0, 1.0, -1.0]])
    regions = regions_in_window(relu_network([Affine(first, torch.zeros(4)), Affine(last, torch.zeros(1))]))
    assert (len(regions), regions.num_linear_regions) == (4, 2)
    # A layer that is off everywhere leaves one region of slope zero.
    dead = relu_network(
        [
            Affine(first[:2], torch.zeros(2)),
            Affine(-torch.eye(2), torch.zeros(2)),
            Affine(torch.ones(1, 2), torch.zeros(1)),
        ]
    )
    regions = regions_in_window(dead)
    assert (len(regions), regions.num_linear_regions) == (2, 1)


def test_lines_through_one_point_and_along_the_border():
    # Ten lines through the origin cut the window in twenty; a line along the border, or one that touches a corner, cuts
    # nothing.
    angle = torch.arange(10, dtype=torch.float64) * math.pi / 10 + 0.1
    star = Affine(torch.stack([angle.cos(), angle.sin()], dim=1), torch.zeros(10, dtype=torch.float64))
    assert (
        len(regions_in_window(relu_network([star, Affine(torch.ones(1, 10).double(), torch.zeros(1).double())]))) == 20
    )
    edge = Affine(torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]), torch.tensor([-1.0, 2.0, 0.0]))
    regions = regions_in_window(relu_network([edge, Affine(torch.ones(1, 3), torch.zeros(1))]))
    assert len(regions) == 1
    assert regions.patterns.tolist() == [[False, True, False]]


def test_copies_of_a_layer_add_no_regions():
    net = random_net([2, 6, 1], 3)
    first, last = affine_layers(net)
    twice = relu_network(
        [Affine(first.weight.repeat(2, 1), first.bias.repeat(2)), Affine(last.weight.repeat(1, 2) / 2, last.bias)]
    )
    assert len(regions_in_window(twice)) == len(regions_in_window(net))


def test_an_mlp_is_read_as_it_stands_and_left_alone():
    net = MLP([2, 5, 3], generator=torch.Generator().manual_seed(0))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    regions = regions_in_window(net)
    x = torch.randn(20, 2)
    for point, pattern in zip(x.double(), activation_pattern(net, x), strict=True):
        weight, bias = piece_maps(affine_layers(net), pattern[None])
        torch.testing.assert_close(
            weight[0] @ point + bias[0], net(point[None].float())[0].double(), rtol=1e-5, atol=1e-5
        )
    assert regions.maps.weight.shape[1:] == (3, 2)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    # The Jacobian is the map's weight.
    center = torch.from_numpy(regions.polygons[0].mean(axis=0))
    jacobian = torch.autograd.functional.jacobian(lambda x: net(x[None])[0], center.float())
    torch.testing.assert_close(jacobian, regions.maps.weight[0].float())


# ---- on a segment -----------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(widths=WIDTHS, inputs=st.integers(1, 4), seed=st.integers(0, 10**6), dtype=st.sampled_from(DTYPES))
def test_pieces_on_a_segment(widths, inputs, seed, dtype):
    net = random_net([inputs, *widths, 2], seed, dtype)
    start, end = torch.randn(2, inputs, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).mul(3)
    found = pieces_on_segment(net, start, end)
    net = net.double()
    assert (found.breaks.diff() > 0).all()
    assert found.breaks[0] == 0
    assert found.breaks[-1] == 1
    torch.testing.assert_close(found.values, net(torch.lerp(start, end, found.breaks[:, None])), rtol=1e-9, atol=1e-9)
    middles = (found.breaks[1:] + found.breaks[:-1]) / 2
    torch.testing.assert_close(
        (found.values[1:] + found.values[:-1]) / 2, net(torch.lerp(start, end, middles[:, None])), rtol=1e-9, atol=1e-9
    )
    assert torch.equal(activation_pattern(net, torch.lerp(start, end, middles[:, None])), found.patterns)
    assert (found.patterns[1:] != found.patterns[:-1]).any(dim=1).all()  # no break without a reason
    if inputs == 1:
        assert len(found.patterns) <= math.prod(n + 1 for n in widths)
    if inputs == 2:  # the same crossings that the polygons have
        low, high = torch.minimum(start, end), torch.maximum(start, end)
        cut = {tuple(row) for row in regions_in_window(net, low, high).patterns.tolist()}
        assert {tuple(row) for row in found.patterns.tolist()} <= cut


# ---- breakpoints ------------------------------------------------------------------------------------------------


def test_kinks_of_shallow_networks_are_whole_lines_and_those_of_max_are_not():
    for seed in range(5):
        lines = break_lines(regions_in_window(random_net([2, 6, 1], seed), (-30.0, -30.0), (30.0, 20.0)))
        assert len(lines) == 6
        assert all(line.fraction == pytest.approx(1, abs=1e-7) and line.relative_variation < 1e-7 for line in lines)
    lines = break_lines(regions_in_window(max_zero_net(), (-1.0, -1.0), (1.0, 1.0)))
    assert sorted(line.fraction for line in lines) == pytest.approx([0.5] * 3)
    assert break_lines(regions_in_window(relu_network([Affine(torch.ones(1, 2), torch.zeros(1))]))) == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_max_zero_net_is_its_definition(dtype):
    x = torch.randn(200, 2, dtype=dtype, requires_grad=True)
    net = max_zero_net().to(dtype)
    torch.testing.assert_close(net(x)[:, 0], max_zero_definition(x))
    gradients = [torch.autograd.grad(out.sum(), x)[0] for out in (net(x), max_zero_definition(x))]
    torch.testing.assert_close(*gradients)


# ---- reading a network, and what is refused ---------------------------------------------------------------------


def test_affine_layers_collapse_and_complete():
    net = nn.Sequential(nn.ReLU(), nn.Linear(3, 4), nn.Identity(), nn.Linear(4, 2, bias=False), nn.ReLU(), nn.ReLU())
    layers = affine_layers(net)
    assert [tuple(each.weight.shape) for each in layers] == [(3, 3), (2, 3), (2, 2)]
    x = torch.randn(50, 3)
    torch.testing.assert_close(relu_network(layers)(x.double()).float(), net(x))
    shared = nn.Linear(2, 2)
    assert len(affine_layers(nn.Sequential(shared, nn.ReLU(), shared))) == 2


class Branched(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.relu, self.last = nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)

    def forward(self, x):
        return self.last(x + self.relu(self.first(x)))


REFUSED = [
    (lambda: affine_layers(nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))), "ReLU, got Tanh"),
    (lambda: affine_layers(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.Linear(2, 1))), "got Dropout"),
    (lambda: affine_layers(nn.ReLU()), "at least one Linear"),
    (lambda: affine_layers(Branched()), "got another function"),
    (lambda: affine_layers(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(2, 1))), "expected"),
    (lambda: affine_layers(relu_network([Affine(torch.full((1, 2), math.nan), torch.zeros(1))])), "inf or NaN"),
    (lambda: regions_in_window(random_net([3, 4, 1], 0)), "2 inputs, got 3"),
    (lambda: regions_in_window(random_net([2, 4, 1], 0), (1.0, 0.0), (0.0, 1.0)), "lower left"),
    (lambda: regions_in_window(random_net([2, 4, 1], 0), (0.0,), (1.0,)), "2 finite numbers"),
    (lambda: regions_in_window(random_net([2, 4, 1], 0), (0.0, 0.0), (1.0, math.inf)), "2 finite numbers"),
    (lambda: pieces_on_segment(random_net([2, 4, 1], 0), (0.0, 0.0), (0.0, 0.0)), "two different ends"),
    (lambda: break_lines(regions_in_window(random_net([2, 4, 2], 0))), "one output, got 2"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_mistakes_are_told_in_one_line(call, words):
    with pytest.raises(UserError) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- pictures ---------------------------------------------------------------------------------------------------


def test_maps_of_polygons_are_drawn_and_nothing_to_draw_is_told():
    regions = regions_in_window(random_net([2, 3, 1], 0))
    plain, colored = (
        PolygonMap(regions.polygons),
        PolygonMap(regions.polygons, list(range(len(regions))), [[0.0, 0.0]], [1]),
    )
    drawn = polygon_maps({"plain": plain, "coloured": colored}).figure.axes
    assert [len(axes.collections[0].get_paths()) for axes in drawn] == [len(regions)] * 2  # pyright: ignore
    assert [len(axes.collections) for axes in drawn] == [1, 2]  # the second has points on it
    with pytest.raises(UserError, match="at least one map"):
        polygon_maps({"none": PolygonMap([])})
