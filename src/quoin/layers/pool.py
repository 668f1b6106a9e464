"""Pooling: a window slides over every channel by itself and reduces what it covers to one number; nothing is learned.

The fast forms are `torch.nn.MaxPool2d` and the `AvgPool2d` of avg_pool.py. Left out: windows that stick out at the end
(their `ceil_mode`), and averages that do not count the padding (`count_include_pad=False`).

    c channels
"""

import itertools
import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.layers.windows import Padding, PerAxis, check_window, pad, slides
from quoin.tensor import check_floating, check_shapes

__all__ = ["avg_pool2d_definition", "max_pool2d_definition", "pool2d_definition"]


def pool2d_definition(
    x: Float[Tensor, "batch channels height width"],
    kernel_size: PerAxis,
    reduce: Callable[[Tensor], Tensor],
    *,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    fill: float = 0.0,
) -> Float[Tensor, "batch channels out_height out_width"]:
    """Y_cij = summary of X_c,(s i + a),(s j + b) over the window's a and b; `reduce` takes entries (..., m) to (...).

    Without a stride the windows touch and do not overlap. The padding holds `fill`, and is at most half a window wide,
    as in torch.nn.

    Notes: Z7.15.
    """
    check_shapes("n c h w", x=x)
    check_floating(x)
    if x.numel() == 0:
        raise UserError(
            f"expected at least one example and channel, got shape {tuple(x.shape)}; leave empty batches out"
        )
    kernel_size = check_window(kernel_size, 2)
    along = slides(x.shape[2:], kernel_size, stride=kernel_size if stride is None else stride, padding=padding)
    for slide in along:
        if max(slide.before, slide.after) > slide.kernel_size // 2:
            most = slide.kernel_size // 2
            got = f"({slide.before}, {slide.after})"
            raise UserError(
                f"expected padding of at most {most}, half the window of {slide.kernel_size}, got {got}; pad less"
            )
    padded = pad(x, along, fill)
    rows, columns = along
    offsets = itertools.product(range(rows.kernel_size), range(columns.kernel_size))
    return reduce(torch.stack([padded[..., rows.under(a), columns.under(b)] for a, b in offsets], dim=-1))


def max_pool2d_definition(
    x: Float[Tensor, "batch channels height width"],
    kernel_size: PerAxis,
    *,
    stride: PerAxis | None = None,
    padding: Padding = 0,
) -> Float[Tensor, "batch channels out_height out_width"]:
    """Y_cij = max of X_c,(s i + a),(s j + b) over the window; padding is minus infinity, so that it never wins.

    Of equal entries the first, row by row, is the one that has the gradient.

    Notes: Z7.16.
    """
    return pool2d_definition(
        x, kernel_size, lambda entries: entries.max(dim=-1).values, stride=stride, padding=padding, fill=-math.inf
    )


def avg_pool2d_definition(
    x: Float[Tensor, "batch channels height width"],
    kernel_size: PerAxis,
    *,
    stride: PerAxis | None = None,
    padding: Padding = 0,
) -> Float[Tensor, "batch channels out_height out_width"]:
    """Y_cij = mean of X_c,(s i + a),(s j + b) over the window; padding counts, as zeros, as it does by default in
    torch.nn.

    Notes: Z7.17.
    """
    return pool2d_definition(x, kernel_size, lambda entries: entries.mean(dim=-1), stride=stride, padding=padding)
