"""A convolutional layer as the dense layer it is: its matrix written out, mostly zeros, the few kernel entries again
and again.

Nobody computes with it; it shows what sharing saves. `convolution_as_dense` in structured.py is the case of one kernel
on one vector.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.layers.conv import check_groups
from quoin.layers.windows import Padding, PerAxis, SlideSpec, slides
from quoin.tensor import check_floating, check_shapes

__all__ = ["convolution_matrix"]


def convolution_matrix(
    weight: Float[Tensor, "out_channels group_channels *kernel"],
    input_shape: Sequence[int],
    *,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Float[Tensor, "outputs inputs"]:
    """The A with A vec(X) = vec(H) for `cross_correlate1d` and `cross_correlate2d`, both flattened channel by channel.

    A_(dij),(cmn) = sum_ab V_dcab [m = s i + r a - q] [n = s j + r b - q], q the padding before, [true] = 1 and [false]
    = 0: blocks with the same number all along each diagonal (Toeplitz), banded because the kernel is short. It has a
    row for each of the d h' w' outputs and a column for each of the c h w inputs, or d l' and c l of one dimension.

    Args:
        input_shape: (c, h, w), or (c, l) for kernels of one dimension.
        padding: A number for each side of each axis, or (before, after) for each axis.

    Notes: D1.1-23.
    """
    if len(input_shape) not in (2, 3):
        raise UserError(f"expected an input shape (c, l) or (c, h, w), got {tuple(input_shape)}; leave the batch out")
    channels, *sizes = input_shape
    check_shapes("d c k" if len(sizes) == 1 else "d c p q", weight=weight)
    check_floating(weight, "weight")
    check_groups(weight, channels, groups)
    along = slides(sizes, weight.shape[2:], stride=stride, padding=padding, dilation=dilation)
    blocks = weight.unflatten(0, (groups, -1))  # (g, d / g, c / g, k, ...)
    for slide in along:  # takes the first kernel axis away, and puts (output, input) at the end
        blocks = torch.einsum("gdck...,koi->gdc...oi", blocks, _window_positions(slide, weight))
    own = torch.eye(groups, dtype=weight.dtype, device=weight.device)  # a group sees its own channels only
    blocks = torch.einsum("gf,gdc...->gdfc...", own, blocks)  # (g, d / g, g, c / g, h', h, ...)
    outputs, inputs = range(4, blocks.dim(), 2), range(5, blocks.dim(), 2)
    matrix = blocks.permute(0, 1, *outputs, 2, 3, *inputs)
    return matrix.reshape(len(weight) * math.prod(slide.output for slide in along), channels * math.prod(sizes))


def _window_positions(slide: SlideSpec, like: Tensor) -> Tensor:  # (k, output, input)
    """[m = s i + r a - q]: whether entry a of the window's i-th position is over input m."""
    a = torch.arange(slide.kernel_size, device=like.device).reshape(-1, 1, 1)
    i = torch.arange(slide.output, device=like.device).reshape(-1, 1)
    m = torch.arange(slide.size, device=like.device)
    return (m == slide.stride * i + slide.dilation * a - slide.before).to(like.dtype)
