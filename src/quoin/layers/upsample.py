"""An image made twice as large and convolved, as decoders do it: from its definition, and with four ninths of the
products.
"""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers.conv import cross_correlate2d_definition
from quoin.tensor import check_shapes

__all__ = ["UpsampledConv2d", "upsample_conv2d", "upsample_conv2d_definition", "upsample_nearest_definition"]


def upsample_nearest_definition(x: Shaped[Tensor, "*batch height width"]) -> Shaped[Tensor, "*batch 2*height 2*width"]:
    """y[2i + a, 2j + b] = x[i, j] for a, b in {0, 1}: every pixel becomes a square of four.

    >>> upsample_nearest_definition(torch.tensor([[1, 2]]))
    tensor([[1, 1, 2, 2],
            [1, 1, 2, 2]])
    """
    return x.repeat_interleave(2, dim=-2).repeat_interleave(2, dim=-1)


def upsample_conv2d_definition(
    x: Float[Tensor, "batch in_channels height width"],
    weight: Float[Tensor, "out_channels in_channels 3 3"],
    bias: Float[Tensor, "out_channels"],
) -> Float[Tensor, "batch out_channels 2*height 2*width"]:
    """K ⋆ doubled(x) + bias: the image twice as large, then a 3 x 3 kernel over it, padded to keep the size."""
    _check(x, weight, bias)
    return cross_correlate2d_definition(upsample_nearest_definition(x), weight, padding=1) + bias.view(-1, 1, 1)


def upsample_conv2d(
    x: Float[Tensor, "batch in_channels height width"],
    weight: Float[Tensor, "out_channels in_channels 3 3"],
    bias: Float[Tensor, "out_channels"],
) -> Float[Tensor, "batch out_channels 2*height 2*width"]:
    """`upsample_conv2d_definition` on the small image, by one transposed convolution.

    Of the nine pixels that a kernel covers in the doubled image, those of one square are equal, and their weights may
    be added up beforehand. Four are left, so that a pixel reaches 4 x 4 others, a stride of two apart: in either
    direction, with the weights w_2, w_1 + w_2, w_0 + w_1, w_0. The large image is never made.
    """
    _check(x, weight, bias)
    return nn.functional.conv_transpose2d(x, _spread(_spread(weight, 2), 3).transpose(0, 1), bias, stride=2, padding=1)


class UpsampledConv2d(nn.Conv2d):
    """`upsample_conv2d` with its weights, those of a `Conv2d` of 3 x 3 behind an `Upsample(scale_factor=2)`.

    >>> UpsampledConv2d(4, 6)(torch.zeros(2, 4, 5, 7)).shape
    torch.Size([2, 6, 10, 14])
    """

    def __init__(self, in_channels: int, out_channels: int):
        super().__init__(in_channels, out_channels, 3, padding=1)

    def forward(
        self, input: Float[Tensor, "batch in_channels height width"]
    ) -> Float[Tensor, "batch out_channels 2*height 2*width"]:
        return upsample_conv2d(input, self.weight, self.bias)  # pyright: ignore[reportArgumentType]


def _spread(weight: Tensor, dim: int) -> Tensor:
    """Three weights along `dim` to the four that a pixel of the small image has."""
    first, middle, last = weight.unbind(dim)
    return torch.stack([last, middle + last, first + middle, first], dim=dim)


def _check(x: Tensor, weight: Tensor, bias: Tensor) -> None:
    check_shapes("b c h w, o c k k, o", x=x, weight=weight, bias=bias)
    if weight.shape[-1] != 3:
        raise UserError(f"expected a kernel of 3 x 3, got {tuple(weight.shape)}; for others double the image first")
