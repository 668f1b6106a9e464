"""Convolution: from dense layers to shared kernels, the flipped kernel, sizes, channels, pooling, and what sharing
saves."""

import itertools
import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from quoin.layers import (
    WindowSpec,
    avg_pool2d_definition,
    conv_output_size,
    convolution_as_dense,
    convolution_integral,
    convolution_matrix,
    convolve1d_definition,
    convolve2d,
    convolve2d_definition,
    cross_correlate1d,
    cross_correlate1d_definition,
    cross_correlate2d,
    cross_correlate2d_definition,
    cut_offsets,
    image_dense_definition,
    max_pool2d_definition,
    offset_dense_definition,
    pool2d_definition,
    receptive_field,
    relu,
    shared_dense_definition,
    slide_kernel,
    split_padding,
    weights_by_offset,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, min, randint, roundings
from quoin.tensor import channels_first, channels_last

CASES = 20
ROUNDING, ROUNDING_SOURCE = roundings(256), "256 float64 roundings, for sums of at most 100 terms"
EXACT = "exact: a count"
CLEARLY = 1e-3  # what random numbers of size one differ by where they are not the same sum


@claim(
    "Z7.3",
    "a dense layer on images may be summed by offsets: V_ijab = W_i,j,i+a,j+b gives the same H, and as many weights",
)
def weights_may_be_named_by_offset(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        h, w = randint(1, 5, generator), randint(1, 5, generator)
        x, weight, bias = (
            normal(3, h, w, generator=generator),
            normal(h, w, h, w, generator=generator),
            normal(h, w, generator=generator),
        )
        offsets = weights_by_offset(weight)
        worst = max(worst, gap(offset_dense_definition(x, offsets, bias), image_dense_definition(x, weight, bias)))
        worst = max(worst, abs(int((offsets != 0).sum()) - weight.numel()))  # nothing lost, nothing twice
    return Evidence("largest |by offsets - dense|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


def circular(
    x: Float[Tensor, "n c h w"], weight: Float[Tensor, "d c 3 3"], stride: int = 1
) -> Float[Tensor, "n d p q"]:
    """A layer on a grid whose ends meet, where a shift pushes nothing out."""
    return cross_correlate2d(nn.functional.pad(x, (1, 1, 1, 1), mode="circular"), weight, stride=stride)


def output_moves_along(
    shifted: Float[Tensor, "n d h w"], output: Float[Tensor, "n d h w"], by: tuple[int, int]
) -> float:
    return gap(shifted, output.roll(by, dims=(-2, -1)))


def output_stays(shifted: Float[Tensor, "n d h w"], output: Float[Tensor, "n d h w"], by: tuple[int, int]) -> float:
    return gap(shifted, output)


@claim(
    "ZE15",
    "shift the input and a convolution's output shifts along; it does not stay",
    right=output_moves_along,
    printed=output_stays,
)
def convolution_is_equivariant(
    form: Callable[[Tensor, Tensor, tuple[int, int]], float], generator: torch.Generator
) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        x, weight = normal(2, 2, 8, 8, generator=generator), normal(3, 2, 3, 3, generator=generator)
        by = (randint(1, 7, generator), randint(0, 7, generator))
        worst = max(worst, form(circular(x.roll(by, dims=(-2, -1)), weight), circular(x, weight), by))
    return Evidence("largest |layer(shifted) - expected|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim(
    ("Z7.4", "ZE15"),
    "shared weights commute with shifts, with zero padding only off the border, with stride s only for multiples of s; "
    "pooling over all positions makes them invariant",
)
def where_equivariance_ends(generator: torch.Generator) -> Evidence:
    wrong = 0
    for _ in range(CASES):
        x, kernel, u = normal(8, 8, generator=generator), normal(3, 3, generator=generator), normal(generator=generator)
        before, after = shared_dense_definition(x, kernel, u), shared_dense_definition(x.roll(1, dims=0), kernel, u)
        # rows whose window neither saw the border nor what wrapped around
        wrong += gap(after[2:-1], before[1:-2]) > ROUNDING
        wrong += gap(after[-1:], before[-2:-1]) < CLEARLY  # the last row now ends at a border of zeros
        images, weight = normal(1, 2, 8, 8, generator=generator), normal(3, 2, 3, 3, generator=generator)
        strided = circular(images, weight, stride=2)
        wrong += gap(circular(images.roll(2, dims=-1), weight, stride=2), strided.roll(1, dims=-1)) > ROUNDING
        odd = circular(images.roll(1, dims=-1), weight, stride=2)
        wrong += min(gap(odd, strided.roll(by, dims=-1)) for by in range(4)) < CLEARLY
        pooled, moved = (
            circular(each, weight).amax(dim=(-2, -1)) for each in (images, images.roll((3, 1), dims=(-2, -1)))
        )
        wrong += gap(pooled, moved) > ROUNDING
    return Evidence("shifts for which the sentence fails", wrong, 0, "exact but for rounding", 5 * CASES, "==")


@claim(
    "Z7.5",
    "(hw)² weights become (2h−1)(2w−1) when shared and (2Δ+1)² when cut to |a|, |b| ≤ Δ, which is a 2-D convolution",
)
def sharing_and_cutting_count(generator: torch.Generator) -> Evidence:
    wrong = 0
    for _ in range(CASES):
        h, w, reach = randint(4, 7, generator), randint(4, 7, generator), randint(0, 3, generator)
        x, shared = normal(h, w, generator=generator), normal(2 * h - 1, 2 * w - 1, generator=generator)
        u = normal(generator=generator)
        local = cut_offsets(shared, reach)
        far = {(a, b) for a in range(1 - h, h) for b in range(1 - w, w) if max(abs(a), abs(b)) > reach}
        zeroed = shared.clone()
        for a, b in far:
            zeroed[a + h - 1, b + w - 1] = 0
        matrix = convolution_matrix(local[None, None], (1, h, w), padding=reach)
        everywhere = convolution_matrix(shared[None, None], (1, h, w), padding=((h - 1, h - 1), (w - 1, w - 1)))
        wrong += everywhere.numel() != (h * w) ** 2 or everywhere.unique().numel() != (2 * h - 1) * (2 * w - 1)
        wrong += matrix.numel() != (h * w) ** 2 or matrix[matrix != 0].unique().numel() != (2 * reach + 1) ** 2
        wrong += gap((matrix @ x.flatten() + u).reshape(h, w), shared_dense_definition(x, zeroed, u)) > ROUNDING
        wrong += gap(shared_dense_definition(x, local, u), shared_dense_definition(x, zeroed, u)) > ROUNDING
    return Evidence("cases with other counts or outputs", wrong, 0, EXACT, 4 * CASES, "==")


@claim("Z7.6", "two boxes convolve to a tent, and two bell curves to the one whose variance is the sum")
def convolutions_of_functions(generator: torch.Generator) -> Evidence:
    cells = 100
    x = torch.arange(-2 * cells, 2 * cells + 1, dtype=torch.float64).unsqueeze(-1) / cells
    box = lambda z: (z.abs() < 0.5).all(dim=-1).double()  # noqa: E731
    # Midpoints of cells never meet the box's ends at these x: the rule is exact.
    tent = (1 - x.squeeze(-1).abs()).clamp(min=0)
    worst = gap(convolution_integral(box, box, x, [(-0.5, 0.5)], num_points=cells), tent)

    def bell(variance: float):
        return lambda z: (
            torch.exp(-z.square().sum(dim=-1) / (2 * variance)) / (2 * torch.pi * variance) ** (z.shape[-1] / 2)
        )

    for axes in (1, 2):
        first, second = (0.5 + float(torch.rand((), generator=generator)) for _ in range(2))
        points, far = normal(20, axes, generator=generator), [(-12.0, 12.0)] * axes
        found = convolution_integral(bell(first), bell(second), points, far, num_points=200)
        worst = max(worst, gap(found, bell(first + second)(points)))
    return Evidence(
        "largest |integral - closed form|", worst, 1e-10, "the midpoint rule's error for bell curves, below rounding", 3
    )


def rotated_by_180(kernel: Float[Tensor, "p q"]) -> Float[Tensor, "p q"]:
    return kernel.flip(-2, -1)


def as_it_is(kernel: Float[Tensor, "p q"]) -> Float[Tensor, "p q"]:
    return kernel


@claim(
    ("ZE16", "Z7.7c"),
    "the layer is a cross-correlation: a convolution with the kernel rotated by 180 degrees",
    right=rotated_by_180,
    printed=as_it_is,
)
def layer_is_convolution_with(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        h, w, p, q = (randint(low, high, generator) for low, high in ((4, 8), (4, 8), (2, 4), (2, 4)))
        x, kernel = normal(h, w, generator=generator), normal(p, q, generator=generator)
        inside = convolve2d(x, form(kernel))[p - 1 : h, q - 1 : w]  # where the kernel lies wholly on the image
        for layer in (cross_correlate2d, cross_correlate2d_definition, nn.functional.conv2d):
            worst = max(worst, gap(layer(x[None, None], kernel[None, None])[0, 0], inside))
    return Evidence("largest |layer - convolution|", worst, ROUNDING, ROUNDING_SOURCE, 3 * CASES)


@claim("Z7.7c", "convolution commutes, f ∗ g = g ∗ f, and cross-correlation does not")
def convolution_commutes(generator: torch.Generator) -> Evidence:
    wrong = 0
    for _ in range(CASES):
        f, g = (
            normal(randint(1, 6, generator), 3, generator=generator),
            normal(randint(1, 6, generator), 4, generator=generator),
        )
        wrong += gap(convolve2d_definition(f, g), convolve2d_definition(g, f)) > ROUNDING
        wrong += gap(convolve1d_definition(f[0], g[0]), convolve1d_definition(g[0], f[0])) > ROUNDING
        a, b = normal(1, 1, 6, generator=generator), normal(1, 1, 6, generator=generator)
        wrong += gap(cross_correlate1d(a, b, padding=5), cross_correlate1d(b, a, padding=5)) < CLEARLY
    return Evidence("pairs for which the sentence fails", wrong, 0, "exact but for rounding", 3 * CASES, "==")


@claim("Z7.8", "with channels last, H_ijd = Σ_abc V_abcd X_i+a,j+b,c over |a|, |b| ≤ Δ is the layer with padding Δ")
def channels_in_the_notes_order(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        reach, c, d, h, w = randint(0, 2, generator), *(randint(1, 4, generator) for _ in range(4))
        x, weight = (
            normal(h, w, c, generator=generator),
            normal(2 * reach + 1, 2 * reach + 1, c, d, generator=generator),
        )
        total = torch.zeros(h, w, d, dtype=torch.float64)
        for i, j, a, b in itertools.product(range(h), range(w), range(-reach, reach + 1), range(-reach, reach + 1)):
            if 0 <= i + a < h and 0 <= j + b < w:
                total[i, j] += x[i + a, j + b] @ weight[a + reach, b + reach]
        layer = cross_correlate2d(channels_first(x)[None], weight.permute(3, 2, 0, 1), padding=reach)
        worst = max(worst, gap(channels_last(layer)[0], total))
    return Evidence("largest |layer - sum by hand|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim(
    ("Z7.9", "Z7.10", "Z7.11"),
    "a window of k has n − k + 1 positions, n − k + p + 1 with padding p in total, ⌊(n − k + p + s)/s⌋ with stride "
    "s; p = k − 1 keeps n",
)
def sizes_counted_one_by_one(generator: torch.Generator) -> Evidence:
    wrong, cases = 0, 0
    for n, k, p, s in itertools.product(range(1, 8), range(1, 6), range(4), range(1, 4)):
        if k > n + p:
            continue
        positions = sum(1 for start in range(0, n + p, s) if start + k <= n + p)
        layer = cross_correlate1d_definition(
            torch.ones(1, 1, n), torch.ones(1, 1, k), stride=s, padding=split_padding(p)
        )
        predicted = conv_output_size(n, k, stride=s, total_padding=p)
        formulas = (
            [(n - k + p + s) // s]
            + [n - k + p + 1] * (s == 1)
            + [n - k + 1] * (s == 1 and p == 0)
            + [n] * (s == 1 and p == k - 1)
        )
        wrong += {predicted, layer.shape[-1], *formulas} != {positions}
        cases += 1
    return Evidence("sizes other than the positions counted", wrong, 0, EXACT, cases, "==")


def both_sides(padding: int) -> int:
    return 2 * padding


def one_side(padding: int) -> int:
    return padding


@claim(
    "ZE17",
    "in ⌊(n − k + p + s)/s⌋ p is the padding of both sides: p = 2q for torch's padding=q",
    right=both_sides,
    printed=one_side,
)
def padding_in_total(form: Callable[[int], int], generator: torch.Generator) -> Evidence:
    wrong, cases = 0, 0
    for n, k, q, s in itertools.product(range(5, 11), range(1, 6), range(1, 3), range(1, 4)):
        size = nn.functional.conv1d(torch.ones(1, 1, n), torch.ones(1, 1, k), padding=q, stride=s).shape[-1]
        wrong += conv_output_size(n, k, stride=s, total_padding=form(q)) != size
        cases += 1
    return Evidence("sizes that torch contradicts", wrong, 0, EXACT, cases, "==")


@claim(
    ("Z7.12", "Z7.13"),
    "input channels add up, output channels stand side by side: the kernels are c_o × c_i × k_h × k_w numbers",
)
def channel_by_channel(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        inputs, outputs = randint(1, 4, generator), randint(1, 4, generator)
        x, weight = normal(2, inputs, 6, 5, generator=generator), normal(outputs, inputs, 3, 2, generator=generator)
        each = [
            sum(cross_correlate2d_definition(x[:, [c]], weight[[d]][:, [c]])[:, 0] for c in range(inputs))
            for d in range(outputs)
        ]
        worst = max(worst, gap(cross_correlate2d_definition(x, weight), torch.stack(each, dim=1)))  # type: ignore[arg-type]
        worst = max(
            worst, abs(nn.Conv2d(inputs, outputs, (3, 2), bias=False).weight.numel() - outputs * inputs * 3 * 2)
        )
    return Evidence("largest |layer - channel by channel|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim(
    ("Z7.15", "Z7.16", "Z7.17"),
    "pooling learns nothing: max passes through increasing functions, average is a convolution whose kernel is "
    "1/(k_h k_w) everywhere",
)
def pooling_is_fixed(generator: torch.Generator) -> Evidence:
    worst = float(sum(p.numel() for layer in (nn.MaxPool2d(2), nn.AvgPool2d(2)) for p in layer.parameters()))
    for _ in range(CASES):
        window, stride = (randint(1, 3, generator), randint(1, 3, generator)), randint(1, 3, generator)
        x = normal(2, 3, 7, 6, generator=generator)
        even = torch.full((3, 1, *window), 1 / (window[0] * window[1]), dtype=torch.float64)
        largest, mean = max_pool2d_definition(x, window, stride=stride), avg_pool2d_definition(x, window, stride=stride)
        worst = max(worst, gap(mean, cross_correlate2d(x, even, stride=stride, groups=3)))
        worst = max(worst, gap(max_pool2d_definition(x.tanh(), window, stride=stride), largest.tanh()))
        last = pool2d_definition(x, window, lambda entries: entries.sort(dim=-1).values[..., -1], stride=stride)
        worst = max(worst, gap(last, largest), float((mean - largest).max()))
    return Evidence("largest departure", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim(
    "D1.1-21",
    "a feature depends on a small patch only, by the same weights at every position: outside its receptive field "
    "no gradient",
)
def features_are_local(generator: torch.Generator) -> Evidence:
    wrong = 0
    for _ in range(CASES):
        stack = [WindowSpec(randint(1, 3, generator), randint(1, 2, generator)) for _ in range(3)]
        field = receptive_field(stack)
        h = x = normal(1, 1, field + 9, field + 9, generator=generator).abs().requires_grad_()
        for layer in stack:  # positive kernels and inputs, so that no ReLU is dead and nothing cancels
            h = relu(
                cross_correlate2d(
                    h,
                    normal(1, 1, layer.kernel_size, layer.kernel_size, generator=generator).abs(),
                    stride=layer.stride,
                )
            )
        (gradient,) = torch.autograd.grad(h[0, 0, 0, 0], x, retain_graph=True)
        rows, columns = gradient[0, 0].nonzero().amax(dim=0).tolist()
        wrong += (rows + 1, columns + 1) != (field, field)
        (next_gradient,) = torch.autograd.grad(h[0, 0, 1, 1], x)  # the same weights, so many pixels further on
        step = math.prod(layer.stride for layer in stack)
        wrong += gap(next_gradient, nn.functional.pad(gradient, (step, -step, step, -step))) > ROUNDING
    return Evidence("features that see another patch, or by other weights", wrong, 0, EXACT, 2 * CASES, "==")


@claim(
    ("D1.1-22", "D1.1-23"), "a kernel of 3 slid along x is ReLU(A x), A banded and with one number along each diagonal"
)
def sliding_is_a_toeplitz_layer(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        length = randint(3, 12, generator)
        kernel, x = normal(3, generator=generator), normal(length, generator=generator)
        matrix = convolution_as_dense(kernel, length)
        by_hand = [max(0.0, float(kernel @ x[i : i + 3])) for i in range(length - 2)]
        worst = max(
            worst,
            gap(relu(matrix @ x), slide_kernel(x, kernel)),
            gap(slide_kernel(x, kernel), torch.tensor(by_hand, dtype=torch.float64)),
        )
        worst = max(worst, gap(matrix, convolution_matrix(kernel[None, None], (1, length))))
        band = matrix.triu() - matrix.triu(3)
        constant = gap(matrix[1:, 1:], matrix[:-1, :-1]) if length > 3 else 0.0
        worst = max(worst, gap(band, matrix), constant, abs(len(matrix) - (length - 2)))
    return Evidence("largest departure", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim(
    "D1.1-24",
    "a kernel of 3 needs 3 weights and 3(d − 2) multiplications where a dense layer needs (d − 2)d of each, in "
    "every step",
)
def what_sharing_saves(generator: torch.Generator) -> Evidence:
    wrong = 0
    for d in (3, 10, 100, 400):
        kernel, x = (
            normal(1, 1, 3, generator=generator).requires_grad_(),
            normal(1, 1, d, generator=generator).requires_grad_(),
        )
        matrix = convolution_as_dense(kernel.detach().flatten(), d).requires_grad_()
        for layer, weight, count, multiplications in (
            (cross_correlate1d, kernel, 3, 3 * (d - 2)),
            (nn.functional.linear, matrix, (d - 2) * d, (d - 2) * d),
        ):
            with FlopCounterMode(display=False) as forward:
                output = layer(x, weight)
            with FlopCounterMode(display=False) as backward:
                gradients = torch.autograd.grad(output.sum(), [weight, x])
            # torch counts a multiplication and its addition as two; back, x and weight cost as much as a pass forward
            # each
            wrong += (
                forward.get_total_flops() != 2 * multiplications or backward.get_total_flops() != 4 * multiplications
            )
            wrong += weight.numel() != count or gradients[0].numel() != count
    return Evidence("layers with other counts", wrong, 0, EXACT, 8, "==")
