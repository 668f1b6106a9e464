"""How a window slides along an axis: where it starts, how far it steps, and how many positions it has.

One rule of sizes serves convolution, pooling and the matrices of both; what is computed at each position is in conv.py
and pool.py.

    n size of the axis, k of the window, s stride, p padding of both sides together, r dilation
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Shaped
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError, format_value

__all__ = [
    "Padding",
    "PerAxis",
    "SlideSpec",
    "WindowSpec",
    "check_whole",
    "check_window",
    "conv_output_size",
    "pad",
    "receptive_field",
    "slides",
    "split_padding",
]

PerAxis = int | Sequence[int]  # one number for every axis, or one for each
Padding = int | Sequence[tuple[int, int]]  # as many entries on either side of every axis, or (before, after) for each


def conv_output_size(size: int, kernel_size: int, *, stride: int = 1, total_padding: int = 0, dilation: int = 1) -> int:
    """How many positions a window has: floor((n - k + p + s) / s), with r (k - 1) + 1 for k if dilated.

    p is the padding of both sides together, so that `padding=q` of torch.nn is p = 2q; without padding and stride it is
    n - k + 1, and p = k - 1 keeps the size.

    >>> large = conv_output_size(224, 7, stride=2, total_padding=6)
    >>> conv_output_size(28, 5), conv_output_size(28, 5, total_padding=4), large
    (24, 28, 112)

    Notes: Z7.9, Z7.10, Z7.11, ZE17.
    """
    for name, value in [("size", size), ("kernel", kernel_size), ("stride", stride), ("dilation", dilation)]:
        check_whole(name, value, 1)
    check_whole("total padding", total_padding, 0)
    dilated_size = dilation * (kernel_size - 1) + 1
    if dilated_size > size + total_padding:
        dilated = f" dilated to {dilated_size}" if dilated_size != kernel_size else ""
        raise UserError(
            f"expected a kernel that fits into {size} + {total_padding} padded entries, got {kernel_size}{dilated}; "
            "make the kernel smaller, the input larger or pad more"
        )
    return (size - dilated_size + total_padding + stride) // stride


def split_padding(*totals: int) -> tuple[tuple[int, int], ...]:
    """The padding p of each axis in total, parted into (before, after): half each, and of an odd total the one more is
    after.

    >>> split_padding(4, 3)
    ((2, 2), (1, 2))

    Notes: Z7.10, ZE17.
    """
    for total in totals:
        check_whole("total padding", total, 0)
    return tuple((total // 2, total - total // 2) for total in totals)


@shown
class WindowSpec(NamedTuple):
    """One layer of a stack, as far as sizes go: how large its window is, how far it steps, how far its entries lie
    apart.
    """

    kernel_size: int
    stride: int = 1
    dilation: int = 1


def receptive_field(layers: Sequence[WindowSpec]) -> int:
    """How many neighbouring inputs one output of a stack of windows depends on, the first layer first.

    1 + sum over layers of r (k - 1) times the strides of all layers before

    >>> strided = [WindowSpec(3), WindowSpec(2, stride=2), WindowSpec(3)]
    >>> receptive_field([WindowSpec(3), WindowSpec(3)]), receptive_field(strided)
    (5, 8)

    Notes: D1.1-21.
    """
    seen, step = 1, 1
    for kernel_size, stride, dilation in layers:
        for name, value in [("kernel", kernel_size), ("stride", stride), ("dilation", dilation)]:
            check_whole(name, value, 1)
        seen += dilation * (kernel_size - 1) * step
        step *= stride
    return seen


class SlideSpec(NamedTuple):
    """A window's way along one axis, checked: `output` positions, the i-th of them over padded entries i s + a r, a = 0
    .. k - 1.
    """

    size: int
    kernel_size: int
    stride: int
    before: int
    after: int
    dilation: int
    output: int

    def under(self, a: int) -> slice:
        """Where, in the padded axis, the window's entry a lies at all positions."""
        start = a * self.dilation
        return slice(start, start + (self.output - 1) * self.stride + 1, self.stride)


def slides(
    sizes: Sequence[int],
    kernel_size: Sequence[int],
    *,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
) -> tuple[SlideSpec, ...]:
    """One checked Slide for each axis."""
    num_dims = len(sizes)
    strides, dilations, sides = (
        _per_axis("stride", stride, num_dims),
        _per_axis("dilation", dilation, num_dims),
        _sides(padding, num_dims),
    )
    found = []
    for size, width, step, (before, after), dilation in zip(sizes, kernel_size, strides, sides, dilations, strict=True):
        num_windows = conv_output_size(size, width, stride=step, total_padding=before + after, dilation=dilation)
        found.append(SlideSpec(size, width, step, before, after, dilation, num_windows))
    return tuple(found)


def pad(x: Shaped[Tensor, "..."], along: Sequence[SlideSpec], value: float = 0.0) -> Shaped[Tensor, "..."]:
    """x with `value` put around its last axes."""
    widths = [
        width for slide in reversed(along) for width in (slide.before, slide.after)
    ]  # torch begins with the last axis
    return torch.nn.functional.pad(x, widths, value=value) if any(widths) else x


def check_window(kernel_size: PerAxis, num_dims: int) -> tuple[int, ...]:
    """A window's size along each of so many axes."""
    return _per_axis("window", kernel_size, num_dims)


def check_whole(name: str, value: object, least: int) -> None:
    """Raise an error for what is not an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | torch.SymInt) or value < least:
        raise UserError(
            f"expected a {name} that is a whole number of at least {least}, got {format_value(value)}; correct the "
            f"{name}"
        )


def _per_axis(name: str, value: PerAxis, num_dims: int) -> tuple[int, ...]:
    each = tuple(value) if isinstance(value, Sequence) else (value,) * num_dims
    if len(each) != num_dims:
        raise UserError(
            f"expected one {name} or one for each of {num_dims} axes, got {format_value(value)}; give a number or "
            f"{num_dims} numbers"
        )
    for one in each:
        check_whole(name, one, 1)
    return each


def _sides(padding: Padding, num_dims: int) -> tuple[tuple[int, int], ...]:
    pairs = tuple(padding) if isinstance(padding, Sequence) else ((padding, padding),) * num_dims
    if len(pairs) != num_dims or not all(isinstance(pair, Sequence) and len(pair) == 2 for pair in pairs):
        example = ", ".join(["(1, 2)"] * num_dims) + ("," if num_dims == 1 else "")
        raise UserError(
            f"expected padding as one number or as (before, after) for each of {num_dims} axes, got "
            f"{format_value(padding)}; write e.g. ({example})"
        )
    for pair in pairs:
        for side in pair:
            check_whole("padding", side, 0)
    return tuple((before, after) for before, after in pairs)
