"""Pooling: a window slides over every channel by itself and says one number about what it sees; there is nothing to learn.

The fast forms are `torch.nn.MaxPool2d` and `torch.nn.AvgPool2d`. Left out: windows that stick out at the end (their `ceil_mode`), and
averages that do not count the padding (`count_include_pad=False`).

    n examples, c channels, h height, w width
"""

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.layers.windows import Padding, PerAxis, check_window, pad, slides
from quoin.tensor import check_floating, check_shapes

__all__ = ["average_pool2d_definition", "max_pool2d_definition", "pool2d_definition"]


def pool2d_definition(
    x: Tensor,
    window: PerAxis,
    summary: Callable[[Tensor], Tensor],
    *,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    fill: float = 0.0,
) -> Tensor:  # (n, c, h, w) -> (n, c, h', w')
    """Y_cij = summary of X_c,(s i + a),(s j + b) over the window's a and b; `summary` takes entries (..., m) to (...).

    Without a stride the windows touch and do not overlap. The padding holds `fill`, and is at most half a window wide, as in torch.nn.

    Notes: Z7.15.
    """
    check_shapes("n c h w", x=x)
    check_floating(x)
    if x.numel() == 0:
        raise Mistake(f"expected at least one example and channel, came shape {tuple(x.shape)}; leave empty batches out")
    kernel = check_window(window, 2)
    along = slides(x.shape[2:], kernel, stride=kernel if stride is None else stride, padding=padding)
    for slide in along:
        if max(slide.before, slide.after) > slide.kernel // 2:
            most = slide.kernel // 2
            came = f"({slide.before}, {slide.after})"
            raise Mistake(f"expected padding of at most {most}, half the window of {slide.kernel}, came {came}; pad less")
    padded = pad(x, along, fill)
    rows, columns = along
    offsets = itertools.product(range(rows.kernel), range(columns.kernel))
    return summary(torch.stack([padded[..., rows.under(a), columns.under(b)] for a, b in offsets], dim=-1))


def max_pool2d_definition(
    x: Tensor, window: PerAxis, *, stride: PerAxis | None = None, padding: Padding = 0
) -> Tensor:  # (n, c, h, w) -> (n, c, h', w')
    """Y_cij = max of X_c,(s i + a),(s j + b) over the window; padding is minus infinity, so that it never wins.

    Of equal entries the first, row by row, is the one that has the gradient.

    Notes: Z7.16.
    """
    return pool2d_definition(x, window, lambda entries: entries.max(dim=-1).values, stride=stride, padding=padding, fill=-math.inf)


def average_pool2d_definition(
    x: Tensor, window: PerAxis, *, stride: PerAxis | None = None, padding: Padding = 0
) -> Tensor:  # (n, c, h, w) -> (n, c, h', w')
    """Y_cij = mean of X_c,(s i + a),(s j + b) over the window; padding counts, as zeros, as it does by default in torch.nn.

    Notes: Z7.17.
    """
    return pool2d_definition(x, window, lambda entries: entries.mean(dim=-1), stride=stride, padding=padding)
