"""How a window slides along an axis: where it starts, how far it steps, and how many places it finds.

One law of sizes serves convolution, pooling and the matrices of both; what is computed in each place is in conv.py and pool.py.

    n size of the axis, k of the window, s stride, p padding of both sides together, r dilation
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from quoin.errors import Mistake, shown

__all__ = [
    "Padding",
    "PerAxis",
    "Slide",
    "Window",
    "check_whole",
    "check_window",
    "output_size",
    "pad",
    "receptive_field",
    "slides",
    "split_padding",
]

PerAxis = int | Sequence[int]  # one number for every axis, or one for each
Padding = int | Sequence[tuple[int, int]]  # as many entries on either side of every axis, or (before, after) for each


def output_size(size: int, kernel: int, *, stride: int = 1, total_padding: int = 0, dilation: int = 1) -> int:
    """How many places a window finds: floor((n - k + p + s) / s), with k replaced by r (k - 1) + 1 where it is dilated.

    p is the padding of both sides together, so that `padding=q` of torch.nn is p = 2q; without padding and stride it is
    n - k + 1, and p = k - 1 keeps the size.

    >>> output_size(28, 5), output_size(28, 5, total_padding=4), output_size(224, 7, stride=2, total_padding=6)
    (24, 28, 112)

    Notes: Z7.9, Z7.10, Z7.11, ZE17.
    """
    for name, value in [("size", size), ("kernel", kernel), ("stride", stride), ("dilation", dilation)]:
        check_whole(name, value, 1)
    check_whole("total padding", total_padding, 0)
    reach = dilation * (kernel - 1) + 1
    if reach > size + total_padding:
        spread = f" spread over {reach}" if reach != kernel else ""
        raise Mistake(
            f"expected a kernel that fits into {size} + {total_padding} padded entries, came {kernel}{spread}; "
            "make the kernel smaller, the input larger or pad more"
        )
    return (size - reach + total_padding + stride) // stride


def split_padding(*totals: int) -> tuple[tuple[int, int], ...]:
    """The padding p of each axis in total, parted into (before, after): half each, and of an odd total the one more is after.

    >>> split_padding(4, 3)
    ((2, 2), (1, 2))

    Notes: Z7.10, ZE17.
    """
    for total in totals:
        check_whole("total padding", total, 0)
    return tuple((total // 2, total - total // 2) for total in totals)


class Window(NamedTuple):
    """One layer of a stack, as far as sizes go: how wide its window is, how far it steps, how far its entries lie apart."""

    kernel: int
    stride: int = 1
    dilation: int = 1


def receptive_field(layers: Sequence[Window]) -> int:
    """How many neighbouring inputs one output of a stack of windows depends on, the first layer first.

    1 + sum over layers of r (k - 1) times the strides of all layers before

    >>> receptive_field([Window(3), Window(3)]), receptive_field([Window(3), Window(2, stride=2), Window(3)])
    (5, 8)

    Notes: D1.1-21.
    """
    seen, step = 1, 1
    for kernel, stride, dilation in layers:
        for name, value in [("kernel", kernel), ("stride", stride), ("dilation", dilation)]:
            check_whole(name, value, 1)
        seen += dilation * (kernel - 1) * step
        step *= stride
    return seen


class Slide(NamedTuple):
    """A window's way along one axis, checked: `output` places, the i-th of them over padded entries i s + a r, a = 0 .. k - 1."""

    size: int
    kernel: int
    stride: int
    before: int
    after: int
    dilation: int
    output: int

    def under(self, a: int) -> slice:
        """Where, in the padded axis, the window's entry a lies in all places."""
        start = a * self.dilation
        return slice(start, start + (self.output - 1) * self.stride + 1, self.stride)


def slides(
    sizes: Sequence[int], kernel: Sequence[int], *, stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1
) -> tuple[Slide, ...]:
    """One checked Slide for each axis."""
    axes = len(sizes)
    strides, dilations, sides = _per_axis("stride", stride, axes), _per_axis("dilation", dilation, axes), _sides(padding, axes)
    found = []
    for size, width, step, (before, after), spread in zip(sizes, kernel, strides, sides, dilations, strict=True):
        places = output_size(size, width, stride=step, total_padding=before + after, dilation=spread)
        found.append(Slide(size, width, step, before, after, spread, places))
    return tuple(found)


def pad(x: Tensor, along: Sequence[Slide], value: float = 0.0) -> Tensor:
    """x with `value` put around its last axes."""
    widths = [width for slide in reversed(along) for width in (slide.before, slide.after)]  # torch begins with the last axis
    return torch.nn.functional.pad(x, widths, value=value) if any(widths) else x


def check_window(window: PerAxis, axes: int) -> tuple[int, ...]:
    """A window's size along each of so many axes."""
    return _per_axis("window", window, axes)


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | torch.SymInt) or value < least:
        raise Mistake(f"expected a {name} that is a whole number of at least {least}, came {shown(value)}; correct the {name}")


def _per_axis(name: str, value: PerAxis, axes: int) -> tuple[int, ...]:
    each = tuple(value) if isinstance(value, Sequence) else (value,) * axes
    if len(each) != axes:
        raise Mistake(f"expected one {name} or one for each of {axes} axes, came {shown(value)}; give a number or {axes} numbers")
    for one in each:
        check_whole(name, one, 1)
    return each


def _sides(padding: Padding, axes: int) -> tuple[tuple[int, int], ...]:
    pairs = tuple(padding) if isinstance(padding, Sequence) else ((padding, padding),) * axes
    if len(pairs) != axes or not all(isinstance(pair, Sequence) and len(pair) == 2 for pair in pairs):
        example = ", ".join(["(1, 2)"] * axes) + ("," if axes == 1 else "")
        raise Mistake(
            f"expected padding as one number or as (before, after) for each of {axes} axes, came {shown(padding)}; write e.g. ({example})"
        )
    for pair in pairs:
        for side in pair:
            check_whole("padding", side, 0)
    return tuple((before, after) for before, after in pairs)
