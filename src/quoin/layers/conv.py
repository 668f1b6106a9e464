"""The convolutional layer, which is a cross-correlation: small kernels slide over an input of many channels.

Each size comes twice: the definition, a sum over the kernel's entries, and the same on torch's kernels, which also
takes a padding that differs from side to side. In a model `torch.nn.Conv1d` and `Conv2d` are the block. Convolution
proper, with the kernel turned round, is in convolve.py, the layer's matrix in conv_dense.py, sizes in windows.py.

    n examples, c input channels, d output channels, g groups
"""

import itertools
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.layers.activation import relu
from quoin.layers.windows import Padding, PerAxis, SlideSpec, check_whole, pad, slides
from quoin.tensor import check_floating, check_same_dtype, check_shapes

__all__ = [
    "check_groups",
    "convolutional_layer_definition",
    "cross_correlate1d",
    "cross_correlate1d_definition",
    "cross_correlate2d",
    "cross_correlate2d_definition",
    "slide_kernel",
]


def cross_correlate1d_definition(
    x: Float[Tensor, "batch in_channels length"],
    weight: Float[Tensor, "out_channels group_channels kernel"],
    bias: Float[Tensor, "out_channels"] | None = None,
    *,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Float[Tensor, "batch out_channels out_length"]:
    """H_di = u_d + sum_c sum_a V_dca X_c,(s i + r a): every output channel has one kernel for each input channel,
    results added up.

    The index of X counts padded entries, which are zero outside X. With g groups, output channel d sees only its own c
    / g inputs.

    Args:
        padding: Zeros on each side, as in torch.nn, or ((before, after),).

    Notes: Z7.12, Z7.13.
    """
    return _definition(
        x, weight, bias, _checked("n c l, d b k, d", x, weight, bias, stride, padding, dilation, groups), groups
    )


def cross_correlate2d_definition(
    x: Float[Tensor, "batch in_channels height width"],
    weight: Float[Tensor, "out_channels group_channels kernel_height kernel_width"],
    bias: Float[Tensor, "out_channels"] | None = None,
    *,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Float[Tensor, "batch out_channels out_height out_width"]:
    """H_dij = u_d + sum_c sum_ab V_dcab X_c,(s i + r a),(s j + r b): every output channel has one kernel for each input
    channel.

    The window starts at the first padded entry, so that padding by q = delta puts offset 0 in the middle of a
    kernel of 2 delta + 1.

    Args:
        padding: A number q for each side of each axis, as in torch.nn, or ((top, bottom), (left, right)); totals p are
            parted by `split_padding`.

    Notes: Z7.5, Z7.8, Z7.10, Z7.11, Z7.12, Z7.13.
    """
    return _definition(
        x, weight, bias, _checked("n c h w, d b p q, d", x, weight, bias, stride, padding, dilation, groups), groups
    )


def cross_correlate1d(
    x: Float[Tensor, "batch in_channels length"],
    weight: Float[Tensor, "out_channels group_channels kernel"],
    bias: Float[Tensor, "out_channels"] | None = None,
    *,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Float[Tensor, "batch out_channels out_length"]:
    """`cross_correlate1d_definition` on torch's kernel.

    Args:
        padding: Zeros on each side, as in torch.nn, or ((before, after),).

    Notes: Z7.12, Z7.13.
    """
    along = _checked("n c l, d b k, d", x, weight, bias, stride, padding, dilation, groups)
    return _on_torch(torch.nn.functional.conv1d, x, weight, bias, along, groups)


def cross_correlate2d(
    x: Float[Tensor, "batch in_channels height width"],
    weight: Float[Tensor, "out_channels group_channels kernel_height kernel_width"],
    bias: Float[Tensor, "out_channels"] | None = None,
    *,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Float[Tensor, "batch out_channels out_height out_width"]:
    """`cross_correlate2d_definition` on torch's kernel.

    Args:
        padding: Zeros on each side of each axis, as in torch.nn, or ((top, bottom), (left, right)).

    Notes: Z7.5, Z7.8, Z7.10, Z7.11, Z7.12, Z7.13.
    """
    along = _checked("n c h w, d b p q, d", x, weight, bias, stride, padding, dilation, groups)
    return _on_torch(torch.nn.functional.conv2d, x, weight, bias, along, groups)


def slide_kernel(
    x: Float[Tensor, "*batch length"], kernel: Float[Tensor, "size"], activation: Callable[[Tensor], Tensor] = relu
) -> Float[Tensor, "*batch length-size+1"]:
    """y_i = sigma(a_1 x_i + a_2 x_{i+1} + ... + a_k x_{i+k-1}): one kernel along a vector, with neither bias nor
    padding.

    >>> slide_kernel(torch.tensor([1.0, 2.0, 4.0, 8.0]), torch.tensor([1.0, 0.0, -0.125]))
    tensor([0.5000, 1.0000])

    Notes: D1.1-22.
    """
    check_shapes("... l, k", x=x, kernel=kernel)
    check_same_dtype(x, kernel)
    (along,) = slides(x.shape[-1:], kernel.shape)
    return activation(sum((kernel[a] * x[..., along.under(a)] for a in range(len(kernel))), start=x.new_zeros(())))


def convolutional_layer_definition(
    x: Float[Tensor, "batch in_channels height width"],
    weight: Float[Tensor, "out_channels in_channels kernel_height kernel_width"],
    bias: Float[Tensor, "out_channels"],
    activation: Callable[[Tensor], Tensor] = relu,
) -> Float[Tensor, "batch out_channels height-kernel_height+1 width-kernel_width+1"]:
    """sigma(V * X + u), the layer a convolutional network is a stack of: d features of each small patch, the same at
    every position.

    Notes: D1.1-21.
    """
    return activation(cross_correlate2d_definition(x, weight, bias))


def _definition(x: Tensor, weight: Tensor, bias: Tensor | None, along: Sequence[SlideSpec], groups: int) -> Tensor:
    padded = pad(x, along).unflatten(1, (groups, -1))  # (n, g, c / g, ...)
    kernels = weight.unflatten(0, (groups, -1))  # (g, d / g, c / g, ...)
    output = x.new_zeros(())
    for offset in itertools.product(*(range(slide.kernel_size) for slide in along)):
        entries = padded[
            (..., *(slide.under(a) for slide, a in zip(along, offset, strict=True)))
        ]  # of X under entry V_ab
        output = output + torch.einsum("gdc,ngc...->ngd...", kernels[(..., *offset)], entries)
    output = output.flatten(1, 2)
    return output if bias is None else output + bias.reshape(-1, *(1 for _ in along))


def _on_torch(
    kernel: Callable, x: Tensor, weight: Tensor, bias: Tensor | None, along: Sequence[SlideSpec], groups: int
) -> Tensor:
    stride, dilation = [slide.stride for slide in along], [slide.dilation for slide in along]
    sides = [slide.before for slide in along]
    if sides != [slide.after for slide in along]:  # torch pads both sides alike; one side more costs a copy of x
        x, sides = pad(x, along), [0 for _ in along]
    return kernel(x, weight, bias, stride, sides, dilation, groups)


def _checked(
    legend: str,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: PerAxis,
    padding: Padding,
    dilation: PerAxis,
    groups: int,
) -> tuple[SlideSpec, ...]:
    check_shapes(legend, x=x, weight=weight, bias=bias)
    for name, given in (("x", x), ("weight", weight)):
        check_floating(given, name)
    check_same_dtype(x, weight, *(() if bias is None else (bias,)))
    if x.shape[0] == 0:
        raise UserError(
            f"expected at least one example, got an empty batch of shape {tuple(x.shape)}; leave empty batches out"
        )
    check_groups(weight, x.shape[1], groups)
    return slides(x.shape[2:], weight.shape[2:], stride=stride, padding=padding, dilation=dilation)


def check_groups(weight: Float[Tensor, "out_channels group_channels *kernel"], channels: int, groups: int) -> None:
    """Raise an error for kernels (d, c / groups, ...) that do not fit so many input channels in so many groups."""
    check_whole("number of groups", groups, 1)
    out_channels, group_channels = weight.shape[:2]
    if channels % groups or out_channels % groups:
        raise UserError(
            f"expected groups that divide {channels} input and {out_channels} output channels, got {groups}; "
            "choose a common divisor"
        )
    if channels == 0 or out_channels == 0:
        raise UserError(
            f"expected at least one channel in and one out, got {channels} and {out_channels}; give a kernel for "
            "each pair of them"
        )
    if group_channels * groups != channels:
        raise UserError(
            f"expected {group_channels * groups} input channels for a weight of shape {tuple(weight.shape)} in "
            f"{groups} "
            f"group{'' if groups == 1 else 's'}, got {channels}; give a weight of {channels // groups} input channels"
        )
