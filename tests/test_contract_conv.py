"""The contract of convolution and pooling: each definition equals its fast form, and torch's, in value and in every
gradient.

Shapes, strides, paddings, dilations and groups are random; sums are checked a second time, against scipy and loops over
numbers.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy
import pytest
import scipy.signal
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from quoin import layers
from quoin.layers import (
    avg_pool2d_definition,
    conv_output_size,
    convolution_as_dense,
    convolution_integral,
    convolution_matrix,
    convolutional_layer_definition,
    cross_correlate2d,
    cross_correlate2d_definition,
    cut_offsets,
    image_dense_definition,
    max_pool2d_definition,
    offset_dense_definition,
    pool2d_definition,
    receptive_field,
    shared_dense_definition,
    slide_kernel,
    split_padding,
    weights_by_offset,
)
from quoin.tensor import channels_first, channels_last, flatten_images, unflatten_images

AXES = {
    1: (layers.cross_correlate1d_definition, layers.cross_correlate1d, nn.functional.conv1d),
    2: (layers.cross_correlate2d_definition, layers.cross_correlate2d, nn.functional.conv2d),
}
CONVOLUTIONS = {
    1: (layers.convolve1d_definition, layers.convolve1d),
    2: (layers.convolve2d_definition, layers.convolve2d),
}
DTYPES = st.sampled_from([torch.float32, torch.float64])


class Case(NamedTuple):
    x: Tensor
    weight: Tensor
    bias: Tensor | None
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    groups: int

    @property
    def given(self) -> list[Tensor]:
        return [tensor for tensor in (self.x, self.weight, self.bias) if tensor is not None]


pytestmark = pytest.mark.usefixtures("one_thread")  # tensors here are too small to share out


@st.composite
def cases(draw, axes: int, *, alike: bool = False) -> Case:
    """A random convolution that fits its input; `alike` pads both sides alike, as torch can."""

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(axes))

    groups, kernel, stride, dilation = draw(st.integers(1, 3)), each(1, 4), each(1, 3), each(1, 2)
    before = each(0, 3)
    after = before if alike else each(0, 3)
    least = [max(1, r * (k - 1) + 1 - p - q) for k, r, p, q in zip(kernel, dilation, before, after, strict=True)]
    sizes = [low + draw(st.integers(0, 5)) for low in least]
    channels, outputs = groups * draw(st.integers(1, 3)), groups * draw(st.integers(1, 3))
    dtype, generator = draw(DTYPES), torch.Generator().manual_seed(draw(st.integers(0, 10_000)))

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()

    x, weight = normal(draw(st.integers(1, 3)), channels, *sizes), normal(outputs, channels // groups, *kernel)
    bias = normal(outputs) if draw(st.booleans()) else None
    return Case(x, weight, bias, stride, tuple(zip(before, after, strict=True)), dilation, groups)


def agree(ours: Tensor, theirs: Tensor, given: Sequence[Tensor]) -> None:
    """Equal in value, dtype and every gradient."""
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if ours.dtype == torch.float32 else {"rtol": 1e-11, "atol": 1e-11}
    torch.testing.assert_close(ours, theirs, **tolerance)
    upstream = torch.randn(ours.shape, generator=torch.Generator().manual_seed(1), dtype=ours.dtype)
    slopes = (torch.autograd.grad(each, given, upstream, retain_graph=True) for each in (ours, theirs))
    torch.testing.assert_close(*slopes, **tolerance)


@pytest.mark.parametrize("axes", [1, 2])
def test_cross_correlation_agrees_with_its_fast_form_and_torch(axes):
    definition, fast, torch_form = AXES[axes]

    @settings(max_examples=100, deadline=None, derandomize=True)
    @given(cases(axes))
    def holds(case):
        x, weight, bias, stride, padding, dilation, groups = case
        ours = definition(x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)
        agree(ours, fast(x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups), case.given)
        around = [side for sides in reversed(padding) for side in sides]
        theirs = torch_form(nn.functional.pad(x, around), weight, bias, stride, 0, dilation, groups)
        agree(ours, theirs, case.given)
        sizes = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
        assert list(ours.shape[2:]) == [
            conv_output_size(n, k, stride=s, total_padding=sum(p), dilation=r) for n, k, s, p, r in sizes
        ]

    holds()


@pytest.mark.parametrize("axes", [1, 2])
def test_a_number_pads_every_side_as_in_torch(axes):
    definition, fast, torch_form = AXES[axes]

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(cases(axes, alike=True))
    def holds(case):
        how = {"stride": case.stride, "dilation": case.dilation, "groups": case.groups}
        theirs = torch_form(case.x, case.weight, case.bias, padding=[before for before, _ in case.padding], **how)
        agree(fast(case.x, case.weight, case.bias, padding=case.padding, **how), theirs, case.given)
        theirs = torch_form(case.x, case.weight, case.bias, padding=6, **how)
        agree(definition(case.x, case.weight, case.bias, padding=6, **how), theirs, case.given)
        agree(fast(case.x, case.weight, case.bias, padding=6, **how), theirs, case.given)

    holds()


def test_cross_correlation_by_loops_over_numbers():
    """A third implementation that shares nothing with the other two: indices as in the equation, on Python's
    numbers."""
    generator = torch.Generator().manual_seed(0)
    x, weight = (
        torch.randn(1, 4, 6, 5, generator=generator).double(),
        torch.randn(6, 2, 3, 2, generator=generator).double(),
    )
    bias = torch.randn(6, generator=generator).double()
    ours = cross_correlate2d_definition(
        x, weight, bias, stride=(2, 1), padding=((1, 2), (0, 3)), dilation=(1, 2), groups=2
    )
    assert ours.shape == (1, 6, 4, 6)

    def entry(c: int, i: int, j: int) -> float:
        return float(x[0, c, i, j]) if 0 <= i < 6 and 0 <= j < 5 else 0.0

    for d, i, j in itertools.product(range(6), range(4), range(6)):
        first = 0 if d < 3 else 2  # the first input channel of d's group
        total = float(bias[d])
        for c, a, b in itertools.product(range(2), range(3), range(2)):
            total += float(weight[d, c, a, b]) * entry(first + c, 2 * i + a - 1, j + 2 * b)
        assert float(ours[0, d, i, j]) == pytest.approx(total, abs=1e-12)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(1, 2), st.lists(st.integers(1, 6), min_size=4, max_size=4), DTYPES, st.integers(0, 10_000))
def test_convolution_proper_agrees_with_scipy(axes, sizes, dtype, seed):
    definition, fast = CONVOLUTIONS[axes]
    generator = torch.Generator().manual_seed(seed)
    f, g = (
        torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_()
        for shape in (sizes[:axes], sizes[2 : 2 + axes])
    )
    agree(definition(f, g), fast(f, g), [f, g])
    theirs = scipy.signal.convolve(f.detach().numpy(), g.detach().numpy(), method="direct")
    torch.testing.assert_close(definition(f, g).detach(), torch.tensor(theirs.copy()), rtol=1e-4, atol=1e-5)


def test_a_convolution_of_functions_is_its_closed_form():
    x = torch.linspace(-2.5, 2.5, 101, dtype=torch.float64).unsqueeze(-1)

    def box(z: Tensor) -> Tensor:  # of height 1 on (-1/2, 1/2)
        return (z.abs() < 0.5).all(dim=-1).double()

    def bell(variance: float):
        return lambda z: (
            torch.exp(-z.square().sum(dim=-1) / (2 * variance)) / (2 * torch.pi * variance) ** (z.shape[-1] / 2)
        )

    tent = (1 - x.squeeze(-1).abs()).clamp(min=0)
    found = convolution_integral(box, box, x, [(-0.5, 0.5)], num_points=1000)
    torch.testing.assert_close(found, tent, rtol=0, atol=1.01e-3)  # a jump of g falls into one cell of a thousand
    wide = [(-9.0, 9.0)]
    torch.testing.assert_close(convolution_integral(bell(1.0), bell(0.5), x, wide), bell(1.5)(x), rtol=0, atol=1e-12)
    plane = torch.randn(7, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(
        convolution_integral(bell(1.0), bell(0.5), plane, wide * 2, num_points=120),
        bell(1.5)(plane),
        rtol=0,
        atol=1e-12,
    )


@pytest.mark.parametrize("axes", [1, 2])
def test_the_matrix_of_a_convolution_is_the_convolution(axes):
    _, fast, _ = AXES[axes]

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(cases(axes))
    def holds(case):
        how = {"stride": case.stride, "padding": case.padding, "dilation": case.dilation, "groups": case.groups}
        matrix = convolution_matrix(case.weight, case.x.shape[1:], **how)
        theirs = fast(case.x, case.weight, **how)
        agree((case.x.flatten(1) @ matrix.T).unflatten(1, theirs.shape[1:]), theirs, [case.x, case.weight])

    holds()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_kernel_on_one_vector(dtype):
    generator = torch.Generator().manual_seed(0)
    kernel, x = (torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_() for shape in [(3,), (5, 9)])
    theirs = torch.relu(torch.conv1d(x.unsqueeze(1), kernel.reshape(1, 1, 3)).squeeze(1))
    agree(slide_kernel(x, kernel), theirs, [x, kernel])
    assert torch.equal(convolution_matrix(kernel.reshape(1, 1, 3), (1, 9)), convolution_as_dense(kernel, 9))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_convolutional_layer_is_conv2d_and_relu(dtype):
    block = nn.Conv2d(2, 3, 3, dtype=dtype)
    x = torch.randn(2, 2, 6, 5, generator=torch.Generator().manual_seed(0), dtype=dtype).requires_grad_()
    assert block.bias is not None
    agree(
        convolutional_layer_definition(x, block.weight, block.bias), torch.relu(block(x)), [x, block.weight, block.bias]
    )


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(1, 4), st.integers(1, 4), DTYPES, st.integers(0, 10_000))
def test_from_dense_to_shared_to_local(height, width, dtype, seed):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()

    x, weight, bias = normal(3, height, width), normal(height, width, height, width), normal(height, width)
    pixels = height * width
    dense = nn.functional.linear(x.flatten(1), weight.reshape(pixels, pixels), bias.flatten()).unflatten(
        1, (height, width)
    )
    agree(image_dense_definition(x, weight, bias), dense, [x, weight, bias])
    offsets = weights_by_offset(weight)
    agree(offset_dense_definition(x, offsets, bias), dense, [x, weight, bias])
    by_offset, by_place = offsets.tolist(), weight.tolist()
    for i, j, a, b in itertools.product(
        range(height), range(width), range(1 - height, height), range(1 - width, width)
    ):
        inside = 0 <= i + a < height and 0 <= j + b < width
        assert by_offset[i][j][a + height - 1][b + width - 1] == (by_place[i][j][i + a][j + b] if inside else 0.0)

    kernel, u = normal(2 * height - 1, 2 * width - 1), normal()
    everywhere = kernel.expand(height, width, -1, -1), u.expand(height, width)
    agree(shared_dense_definition(x, kernel, u), offset_dense_definition(x, *everywhere), [x, kernel, u])

    reach = min(height, width) - 1
    local = cut_offsets(kernel, reach)
    fast = cross_correlate2d(x.unsqueeze(1), local[None, None], u.reshape(1), padding=reach).squeeze(1)
    agree(shared_dense_definition(x, local, u), fast, [x, kernel, u])
    near = torch.ones_like(kernel)
    near[: height - 1 - reach], near[height + reach :] = 0, 0
    near[:, : width - 1 - reach], near[:, width + reach :] = 0, 0
    agree(
        shared_dense_definition(x, local, u), shared_dense_definition(x, kernel * near, u), [x, kernel, u]
    )  # far weights set to zero


POOLS = {
    "max": (max_pool2d_definition, nn.functional.max_pool2d),
    "average": (avg_pool2d_definition, nn.functional.avg_pool2d),
}


@pytest.mark.parametrize("name", POOLS)
def test_pooling_agrees_with_torch(name):
    definition, fast = POOLS[name]
    pair = st.tuples(st.integers(1, 4), st.integers(1, 4))

    @settings(max_examples=80, deadline=None, derandomize=True)
    @given(pair, st.none() | pair, st.data(), DTYPES, st.booleans(), st.integers(0, 10_000))
    def holds(window, stride, data, dtype, tied, seed):
        padding = tuple(data.draw(st.integers(0, size // 2)) for size in window)
        sizes = [max(1, size - 2 * q) + data.draw(st.integers(0, 5)) for size, q in zip(window, padding, strict=True)]
        x = torch.randn(2, 3, *sizes, generator=torch.Generator().manual_seed(seed), dtype=dtype)
        x = (x.round() if tied else x).requires_grad_()  # whole numbers are often equal: both must choose the same
        ours = definition(x, window, stride=stride, padding=[(q, q) for q in padding])
        agree(ours, fast(x, window, stride, padding), [x])

    holds()


def test_pooling_with_a_summary_of_ones_own():
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    least = pool2d_definition(x, 2, lambda entries: entries.amin(dim=-1))
    assert torch.equal(least, torch.tensor([[[[0.0, 2.0], [8.0, 10.0]]]]))
    assert torch.equal(least, -max_pool2d_definition(-x, 2))
    one_side = max_pool2d_definition(x, 2, padding=((1, 0), (0, 1)))
    assert torch.equal(one_side, torch.tensor([[[[1.0, 3.0], [9.0, 11.0]]]]))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 2)), min_size=1, max_size=4))
def test_the_receptive_field_is_where_the_gradient_is(stack):
    """Positive kernels cancel nothing, so that the inputs with a gradient are exactly those an output depends on."""
    windows = [layers.WindowSpec(*each) for each in stack]
    field = receptive_field(windows)
    x = torch.zeros(1, 1, field + 7, dtype=torch.float64, requires_grad=True)
    h = x
    for kernel, stride, dilation in windows:
        h = nn.functional.conv1d(h, torch.ones(1, 1, kernel, dtype=torch.float64), stride=stride, dilation=dilation)
    (slope,) = torch.autograd.grad(h[0, 0, 0], x)
    assert int(slope[0, 0].nonzero().max()) + 1 == field


@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_odd_padding_has_the_one_more_behind():
    assert split_padding(0, 1, 2, 5) == ((0, 0), (0, 1), (1, 1), (2, 3))
    x, weight = torch.randn(1, 1, 6, 6, generator=torch.Generator().manual_seed(0)), torch.ones(1, 1, 2, 4)
    same = nn.functional.conv2d(x, weight, padding="same")  # torch, too, pads an odd total more behind
    torch.testing.assert_close(cross_correlate2d(x, weight, padding=split_padding(1, 3)), same)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.tuples(*(st.integers(1, 4) for _ in range(4))))
def test_images_turn_and_flatten_and_back(shape):
    count, channels, height, width = shape
    images = torch.arange(float(numpy.prod(shape))).reshape(shape)
    behind = channels_last(images)
    assert behind.shape == (count, height, width, channels)
    assert torch.equal(channels_first(behind), images)
    vectors = flatten_images(images)
    assert torch.equal(unflatten_images(vectors, (channels, height, width)), images)
    for c, i, j in itertools.product(range(channels), range(height), range(width)):
        assert torch.equal(behind[:, i, j, c], images[:, c, i, j])
        assert torch.equal(vectors[:, (c * height + i) * width + j], images[:, c, i, j])
