"""Masked convolutions: an output sees only those pixels of its window that come before its own, row by row from the top
left.

The definition multiplies the kernel by a mask. The block keeps no more of the kernel than the least box that holds the
mask's ones, and moves the image instead. What stacks of them see, and how to see everything before a pixel, is in
gated_pixels.py.

    p x q the kernel, both odd
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from quoin.errors import UserError, format_value
from quoin.layers.conv import cross_correlate2d_definition
from quoin.layers.windows import PerAxis, check_whole, check_window
from quoin.tensor import check_shapes

__all__ = ["MaskedConv2d", "mask_a", "mask_b", "mask_rows_above", "mask_rows_through", "masked_conv2d_definition"]


def mask_a(kernel_size: PerAxis) -> Bool[Tensor, "kernel_height kernel_width"]:
    """Everything before the centre: what a first layer may see of an image whose pixel at the centre is to be
    predicted.

    >>> mask_a(3).int()
    tensor([[1, 1, 1],
            [1, 0, 0],
            [0, 0, 0]], dtype=torch.int32)

    Notes: D5.2-8.
    """
    rows, columns = _from_center(kernel_size)
    return (rows < 0) | ((rows == 0) & (columns < 0))


def mask_b(kernel_size: PerAxis) -> Bool[Tensor, "kernel_height kernel_width"]:
    """`mask_a` and the centre: what later layers may see, for the features at the centre know nothing of its pixel.

    >>> mask_b((1, 3)).int()
    tensor([[1, 1, 0]], dtype=torch.int32)

    Notes: D5.2-8.
    """
    rows, columns = _from_center(kernel_size)
    return mask_a(kernel_size) | ((rows == 0) & (columns == 0))


def mask_rows_above(kernel_size: PerAxis) -> Bool[Tensor, "kernel_height kernel_width"]:
    """The rows above the centre, whole."""
    rows, columns = _from_center(kernel_size)
    return (rows < 0).expand(len(rows), columns.shape[1])


def mask_rows_through(kernel_size: PerAxis) -> Bool[Tensor, "kernel_height kernel_width"]:
    """The rows above the centre and its own, whole: for features that know nothing of their own row."""
    rows, columns = _from_center(kernel_size)
    return (rows <= 0).expand(len(rows), columns.shape[1])


def masked_conv2d_definition(
    x: Float[Tensor, "batch in_channels height width"],
    weight: Float[Tensor, "out_channels in_channels kernel_height kernel_width"],
    mask: Bool[Tensor, "kernel_height kernel_width"],
    bias: Float[Tensor, "out_channels"] | None = None,
) -> Float[Tensor, "batch out_channels height width"]:
    """H = u + (M ⊙ V) * X: a convolution that keeps the size, its kernel V zero wherever the mask M is.

    Notes: D5.2-8.
    """
    check_shapes("n c h w, d c p q, p q, d", x=x, weight=weight, mask=mask, bias=bias)
    height, width = mask.shape
    return cross_correlate2d_definition(
        x, weight * mask, bias, padding=((height // 2, height // 2), (width // 2, width // 2))
    )


class MaskedConv2d(nn.Module):
    """`masked_conv2d_definition` with its weights, of which those outside the mask's box are not even stored.

    >>> layer = MaskedConv2d(1, 8, mask_a(5))
    >>> layer(torch.zeros(2, 1, 6, 7)).shape, layer.weight.shape
    (torch.Size([2, 8, 6, 7]), torch.Size([8, 1, 3, 5]))

    Notes: D5.2-8.
    """

    mask: Bool[Tensor, "box_height box_width"]  # of the box

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        mask: Bool[Tensor, "kernel_height kernel_width"],
        *,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        for name, channels in (("input", in_channels), ("output", out_channels)):
            check_whole(f"number of {name} channels", channels, 1)
        _check_mask(mask)
        rows, columns = mask.any(dim=1).nonzero().flatten().tolist(), mask.any(dim=0).nonzero().flatten().tolist()
        top, bottom, left, right = rows[0], rows[-1], columns[0], columns[-1]
        box = mask[top : bottom + 1, left : right + 1].clone()
        self.register_buffer("mask", box, persistent=False)
        self._whole = bool(box.all())
        height, width = mask.shape
        self._outside = (left, width - 1 - right, top, height - 1 - bottom)  # of the box, the last axis first
        # The image is padded as for the whole kernel, less what lies outside: a negative number takes pixels away.
        middle = (width // 2, width // 2, height // 2, height // 2)
        self._sides = tuple(pad - cut for pad, cut in zip(middle, self._outside))
        # Each output is a sum over what the mask leaves: LeCun's rule, as in torch's own convolutions.
        bound = 1 / math.sqrt(in_channels * int(mask.sum()))
        self.weight = nn.Parameter(
            torch.empty(out_channels, in_channels, *box.shape).uniform_(-bound, bound, generator=generator)
        )
        self.bias = nn.Parameter(torch.empty(out_channels).uniform_(-bound, bound, generator=generator))

    def forward(
        self, x: Float[Tensor, "batch in_channels height width"]
    ) -> Float[Tensor, "batch out_channels height width"]:
        weight = self.weight if self._whole else self.weight * self.mask
        if any(self._sides):  # torch copies even where there is nothing to pad
            x = nn.functional.pad(x, self._sides)
        return nn.functional.conv2d(x, weight, self.bias)

    def full_weight(self) -> Float[Tensor, "out_channels in_channels kernel_height kernel_width"]:
        """The kernel as the definition takes it, with zeros outside the box."""
        return nn.functional.pad(self.weight * self.mask, self._outside)


def _from_center(kernel_size: PerAxis) -> tuple[Tensor, Tensor]:  # (p, 1), (1, q)
    """How far each row and column of a kernel lies behind the middle one."""
    height, width = check_window(kernel_size, 2)
    for side in (height, width):
        if side % 2 == 0:
            raise UserError(
                f"expected a kernel of odd sides, which has a centre, got {height} x {width}; make each one larger "
                "or smaller"
            )
    return torch.arange(height).unsqueeze(1) - height // 2, torch.arange(width).unsqueeze(0) - width // 2


def _check_mask(mask: Tensor) -> None:
    odd = mask.ndim == 2 and all(side % 2 for side in mask.shape)
    if mask.dtype != torch.bool or not odd:
        raise UserError(
            f"expected a mask of true and false with odd sides, got {mask.dtype} "
            f"{format_value(tuple(mask.shape))}; mask_a(3) is one"
        )
    if not mask.any():
        raise UserError(
            f"expected a mask that lets something through, got {format_value(tuple(mask.shape))} of false; enlarge "
            "its kernel"
        )
