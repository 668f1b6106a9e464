"""Piecewise linear functions and ReLU networks: definitions against fast forms, both ways between them, and what is
refused."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.expressivity import (
    PiecewiseLinear,
    affine_layers,
    from_relu_network,
    interpolant,
    piecewise_linear_definition,
    relu_form_definition,
    relu_network,
    shallow_definition,
    stack_networks,
    to_relu_network,
    to_relu_network_with_identity,
)
from quoin.layers import Affine

pytestmark = pytest.mark.usefixtures("one_thread")  # tensors here are too small to share out


def function(seed: int, p: int, dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    gaps = 0.25 + torch.rand(p + 1, generator=generator, dtype=dtype)
    slopes, offset = (torch.randn(shape, generator=generator, dtype=dtype) for shape in ((p + 2,), ()))
    return [part.requires_grad_() for part in (gaps.cumsum(0) - gaps.sum() / 2, slopes, offset)]


def random_net(sizes: list[int], seed: int) -> nn.Sequential:
    generator = torch.Generator().manual_seed(seed)
    layers = [
        Affine(
            torch.randn(m, n, generator=generator, dtype=torch.float64),
            torch.randn(m, generator=generator, dtype=torch.float64),
        )
        for n, m in pairwise(sizes)
    ]
    return relu_network(layers)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(0, 7), st.sampled_from([torch.float32, torch.float64]))
def test_three_forms_are_one_function_with_one_gradient(seed, p, dtype):
    parts = function(seed, p, dtype)
    x = (8 * torch.rand(3, 9, generator=torch.Generator().manual_seed(seed), dtype=dtype) - 4).requires_grad_()
    upstream = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed + 1), dtype=dtype)
    forms = [PiecewiseLinear(*parts)(x), piecewise_linear_definition(x, *parts), relu_form_definition(x, *parts)]
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 1e-11, "atol": 1e-11}
    gradients = [torch.autograd.grad(form, [x, *parts], upstream, retain_graph=True) for form in forms]
    for form, gradient in zip(forms[1:], gradients[1:]):
        torch.testing.assert_close(form, forms[0], **tolerance)
        torch.testing.assert_close(gradient, gradients[0], **tolerance)


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 10**6),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 4),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_the_shallow_definition_is_the_sequential(seed, inputs, units, outputs, dtype):
    net = random_net([inputs, units, outputs], seed).to(dtype)
    hidden, last = Affine(net[0].weight, net[0].bias), Affine(net[2].weight, net[2].bias)
    x = torch.randn(4, inputs, generator=torch.Generator().manual_seed(seed), dtype=dtype, requires_grad=True)
    ours, theirs = shallow_definition(x, hidden, last), net(x)
    torch.testing.assert_close(ours, theirs)
    everything = [x, *net.parameters()]
    torch.testing.assert_close(
        torch.autograd.grad(ours.sum(), everything), torch.autograd.grad(theirs.sum(), everything)
    )


def test_a_hand_made_function():
    """|x| on [-1, 1], flat outside: values read off the graph."""
    f = PiecewiseLinear(torch.tensor([-1.0, 0.0, 1.0]), torch.tensor([0.0, -1.0, 1.0, 0.0]), torch.tensor(1.0))
    x = torch.tensor([-3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 5.0])
    expected = torch.tensor([1.0, 1.0, 0.5, 0.0, 0.25, 1.0, 1.0])
    for network, units in ((to_relu_network(f), 4), (to_relu_network_with_identity(f), 5)):
        assert network[0].out_features == units
        torch.testing.assert_close(network(x[:, None])[:, 0], expected)
    torch.testing.assert_close(f(x), expected)
    assert f.values.tolist() == [1.0, 0.0, 1.0]
    assert f.offsets.tolist() == [1.0, 0.0, 0.0, 1.0]


def test_an_affine_function_needs_no_breakpoint():
    f = PiecewiseLinear(torch.zeros(0), torch.tensor([2.0]), torch.tensor(-1.0))
    x = torch.tensor([-3.0, 0.0, 0.5, 4.0])
    for network in (to_relu_network(f), to_relu_network_with_identity(f)):
        torch.testing.assert_close(network(x[:, None])[:, 0], 2 * x - 1)
        back = from_relu_network(network)
        assert (back.num_pieces, float(back.slopes), float(back.offset)) == (1, 2.0, -1.0)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 9), max_size=5))
def test_extraction_gives_the_network_back(seed, widths):
    net = random_net([1, *widths, 1], seed)
    f = from_relu_network(net)
    ends = torch.tensor([-50.0, 50.0], dtype=torch.float64)
    x = torch.cat([torch.linspace(-4, 4, 301, dtype=torch.float64), f.breakpoints, ends])
    with torch.no_grad():
        expected = net(x[:, None])[:, 0]
    torch.testing.assert_close(f(x), expected, rtol=1e-11, atol=1e-11 * float(1 + expected.abs().max()))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 8), min_size=1, max_size=3))
def test_extraction_finds_the_slopes_that_autograd_sees(seed, widths):
    """Between two neighbouring breakpoints there is one slope, and at every breakpoint another one begins."""
    net = random_net([1, *widths, 1], seed)
    f = from_relu_network(net)
    around = torch.cat([f.breakpoints, torch.zeros(1).double()])  # 0, for there may be no breakpoint
    ends = torch.cat([around.min()[None] - 1, f.breakpoints, around.max()[None] + 1])
    for share in (0.2, 0.5, 0.8):
        x = (ends[:-1] + share * ends.diff()).requires_grad_()
        (slopes,) = torch.autograd.grad(net(x[:, None]).sum(), x)
        torch.testing.assert_close(f.slopes, slopes, rtol=1e-9, atol=1e-9)
    assert (f.jumps.abs() > 0).all()


def test_a_grid_finds_the_same_number_of_pieces():
    for seed in range(4):
        net = random_net([1, 4, 4, 1], seed)
        f = from_relu_network(net)
        x = torch.linspace(-5, 5, 200_001, dtype=torch.float64).requires_grad_()
        (slopes,) = torch.autograd.grad(net(x[:, None]).sum(), x)
        changes = int((slopes.diff().abs() > 1e-9).sum())
        inside = f.breakpoints[(f.breakpoints > -5) & (f.breakpoints < 5)]
        assert changes == len(inside), seed  # these seeds have no two breakpoints within one step of the grid


def test_sawtooth_of_depth_ten():
    tent = relu_network(
        [
            Affine(torch.tensor([[2.0], [4.0]]).double(), torch.tensor([0.0, -2.0]).double()),
            Affine(torch.tensor([[1.0, -1.0]]).double(), torch.zeros(1).double()),
        ]
    )
    f = from_relu_network(nn.Sequential(*[tent] * 10))
    inside = (f.breakpoints > 0) & (f.breakpoints < 1)
    assert torch.equal(f.breakpoints[inside], torch.arange(1, 1024, dtype=torch.float64) / 1024)
    assert f.slopes[1:-2].abs().unique().tolist() == [1024.0]
    assert torch.equal(f.values[inside], torch.arange(1, 1024, dtype=torch.float64) % 2)


def test_a_unit_that_only_rounding_tilts_makes_no_far_breakpoint():
    """0.1 + 0.2 - 0.3 is not 0 in float64: a flat unit would cross zero at 1e16."""
    net = relu_network(
        [
            Affine(torch.ones(3, 1).double(), torch.ones(3).double()),
            Affine(torch.tensor([[0.1, 0.2, -0.3]]).double(), torch.tensor([-1.0]).double()),
            Affine(torch.ones(1, 1).double(), torch.zeros(1).double()),
        ]
    )
    assert from_relu_network(net).num_pieces == 1


def test_interpolation_meets_its_points():
    x = torch.tensor([0.0, 0.5, 2.0, 3.0], dtype=torch.float64)
    y = torch.tensor([1.0, -1.0, 0.5, 0.5], dtype=torch.float64)
    f = interpolant(x, y)
    torch.testing.assert_close(f(x), y)
    assert f.breakpoints.tolist() == [0.5, 2.0]
    torch.testing.assert_close(f(torch.tensor([0.25, 2.5, 10.0]).double()), torch.tensor([0.0, 0.5, 0.5]).double())


@pytest.mark.parametrize("sizes", [[2, 5, 1], [3, 4, 4, 2]])
def test_stacked_networks_answer_side_by_side(sizes):
    nets = [random_net(sizes, seed) for seed in range(3)]
    x = torch.randn(20, sizes[0], generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    together = stack_networks(nets)
    torch.testing.assert_close(together(x), torch.cat([net(x) for net in nets], dim=1))
    assert together[0].out_features == 3 * sizes[1]
    assert len(affine_layers(together)) == len(sizes) - 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda: PiecewiseLinear(torch.tensor([0.0, 0.0]), torch.ones(3), torch.tensor(0.0)),
            "increasing breakpoints, got 0 before 0",
        ),
        (
            lambda: PiecewiseLinear(torch.tensor([1.0, 2.0, 0.5]), torch.ones(4), torch.tensor(0.0)),
            "got 2 before 0.5 at index 1",
        ),
        (
            lambda: PiecewiseLinear(torch.zeros(1), torch.ones(3), torch.tensor(0.0)),
            "one slope more than breakpoints, got 3 for 1",
        ),
        (lambda: PiecewiseLinear(torch.zeros(1), torch.tensor([1.0, torch.nan]), torch.tensor(0.0)), "finite"),
        (lambda: PiecewiseLinear(torch.zeros(1, 1), torch.ones(2), torch.tensor(0.0)), "breakpoints with 1 axis"),
        (lambda: interpolant(torch.zeros(1), torch.zeros(1)), "at least two points"),
        (lambda: from_relu_network(nn.Sequential(nn.Linear(1, 3), nn.Tanh(), nn.Linear(3, 1))), "Tanh"),
        (lambda: from_relu_network(random_net([2, 3, 1], 0)), "one input and one output, got 2 and 1"),
        (lambda: from_relu_network(random_net([1, 3, 2], 0)), "one input and one output, got 1 and 2"),
        (lambda: stack_networks([]), "at least one network"),
        (lambda: stack_networks([random_net([1, 2, 1], 0), random_net([1, 2, 2, 1], 0)]), "one depth, got [2, 3]"),
        (
            lambda: stack_networks([random_net([1, 2, 1], 0), random_net([2, 2, 1], 0)]),
            "one number of inputs, got [1, 2]",
        ),
    ],
)
def test_mistakes_say_what_to_do(wrong, said):
    with pytest.raises(UserError) as caught:
        wrong()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert ";" in str(caught.value)
