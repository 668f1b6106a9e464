"""Gated layers of two stacks that together see every pixel before their own, and no other.

A plain stack of masked convolutions has a blind spot: what lies right of a pixel and above it is reached only by going
up as far as to the side. Here a vertical stack sees the rows above, whole, and a horizontal one its own row from the
left; at each place the vertical stack passes its features to the horizontal one, never the other way round.

    c channels
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.display import shown
from quoin.layers.activation import sigmoid, tanh
from quoin.layers.masked_conv import MaskedConv2d, mask_b, mask_rows_through, masked_conv2d_definition
from quoin.tensor import check_shapes

__all__ = ["GatedPixelLayer", "GatedPixelWeights", "PixelStacks", "gated_pixel_layer_definition"]


@shown
class PixelStacks(NamedTuple):
    """Features of each pixel: `horizontal` ones know all that comes before it, `vertical` ones the rows above."""

    horizontal: Float[Tensor, "batch channels height width"]
    vertical: Float[Tensor, "batch channels height width"]


@shown
class GatedPixelWeights(NamedTuple):
    """The kernels of one layer, whole, and the biases of their gates; of 2c `gates` the first c are candidates, the
    others gates."""

    rows: Float[Tensor, "gates channels kernel kernel"]  # V, of which the rows up to the centre's count
    row: Float[Tensor, "gates channels 1 kernel"]  # H, of which the entries up to the centre's count
    across: Float[Tensor, "gates gates"]  # P, from the vertical stack to the horizontal one
    out: Float[Tensor, "channels channels"]  # R
    rows_bias: Float[Tensor, "gates"]  # b_v
    row_bias: Float[Tensor, "gates"]  # b_h
    out_bias: Float[Tensor, "channels"]  # b


def gated_pixel_layer_definition(
    stacks: PixelStacks, weights: GatedPixelWeights, shift: Float[Tensor, "batch shifts"] | None = None
) -> PixelStacks:
    """v' = g(a + s_v) and h' = h + b + R g(M H * h + b_h + P a + s_h), with a = M V * v + b_v and g(y, z) = tanh(y) ⊙
    σ(z).

    The masks M leave V the rows up to a pixel's own and H its own row up to itself. The shift s says what the whole
    image is about: 4c numbers, those of the vertical gates before those of the horizontal ones.

    Notes: D5.2-8.
    """
    h, v = stacks
    check_shapes("n c h w, n c h w, e c p q, n f", horizontal=h, vertical=v, rows=weights.rows, shift=shift)
    above = masked_conv2d_definition(v, weights.rows, mask_rows_through(weights.rows.shape[-2:]), weights.rows_bias)
    left = masked_conv2d_definition(h, weights.row, mask_b(weights.row.shape[-2:]), weights.row_bias)
    from_vertical = torch.einsum("ef,nfhw->nehw", weights.across, above)
    if shift is not None:
        shift_v, shift_h = shift[:, :, None, None].chunk(2, dim=1)
        above, left = above + shift_v, left + shift_h
    gated = _gate_definition(left + from_vertical)
    output = h + torch.einsum("dc,nchw->ndhw", weights.out, gated) + weights.out_bias[:, None, None]
    return PixelStacks(output, _gate_definition(above))


def _gate_definition(x: Tensor) -> Tensor:  # (n, 2c, h, w) -> (n, c, h, w)
    candidate, gate = x.chunk(2, dim=1)
    return tanh(candidate) * sigmoid(gate)


class GatedPixelLayer(nn.Module):
    """`gated_pixel_layer_definition` with its weights, and dropout of what passed the horizontal gates while it learns.

    >>> features = torch.zeros(2, 8, 5, 5)
    >>> GatedPixelLayer(8, 3)(PixelStacks(features, features)).horizontal.shape
    torch.Size([2, 8, 5, 5])

    Notes: D5.2-8.
    """

    def __init__(
        self, channels: int, kernel_size: int, *, dropout: float = 0.0, generator: torch.Generator | None = None
    ):
        super().__init__()
        self.radius = kernel_size // 2  # the pixels that it looks up and to each side
        self.rows = MaskedConv2d(channels, 2 * channels, mask_rows_through(kernel_size), generator=generator)
        self.row = MaskedConv2d(channels, 2 * channels, mask_b((1, kernel_size)), generator=generator)
        self.across = MaskedConv2d(2 * channels, 2 * channels, mask_b(1), generator=generator)
        self.out = MaskedConv2d(channels, channels, mask_b(1), generator=generator)
        self.dropout = nn.Dropout(dropout)

    def forward(self, stacks: PixelStacks, shift: Float[Tensor, "batch shifts"] | None = None) -> PixelStacks:
        from_vertical, vertical = self.vertical_stack(stacks.vertical, shift)
        return PixelStacks(self.horizontal_stack(stacks.horizontal, from_vertical), vertical)

    def vertical_stack(
        self,
        vertical: Float[Tensor, "batch channels height width"],
        shift: Float[Tensor, "batch 4*channels"] | None = None,
    ) -> tuple[Float[Tensor, "batch 2*channels height width"], Float[Tensor, "batch channels height width"]]:
        """What the vertical stack passes to the horizontal one, and what it gives to the next layer."""
        above = self.rows(vertical)
        from_vertical = self.across(above)
        if shift is not None:
            shift_v, shift_h = shift[:, :, None, None].chunk(2, dim=1)
            above, from_vertical = above + shift_v, from_vertical + shift_h
        return from_vertical, _gate(above)

    def horizontal_stack(
        self,
        horizontal: Float[Tensor, "batch channels height width"],
        from_vertical: Float[Tensor, "batch 2*channels height width"],
    ) -> Float[Tensor, "batch channels height width"]:
        """What the horizontal stack gives to the next layer."""
        return horizontal + self.out(self.dropout(_gate(self.row(horizontal) + from_vertical)))

    def weights(self) -> GatedPixelWeights:
        """As the definition takes them."""
        kernels = (
            self.rows.full_weight(),
            self.row.full_weight(),
            self.across.weight[:, :, 0, 0],
            self.out.weight[:, :, 0, 0],
        )
        return GatedPixelWeights(*kernels, self.rows.bias, self.row.bias + self.across.bias, self.out.bias)


def _gate(x: Tensor) -> Tensor:  # (n, 2c, h, w) -> (n, c, h, w)
    candidate, gate = x.chunk(2, dim=1)
    return torch.tanh(candidate) * torch.sigmoid(gate)
