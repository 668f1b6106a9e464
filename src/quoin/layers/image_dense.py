"""From a dense layer on images to a convolution in three steps: by offsets, the same weights everywhere, offsets cut
short.

One image has one channel here; channels, stride and padding come in conv.py. The fast form of the dense layer is
`torch.nn.Linear` on flattened images, that of the shared one `cross_correlate2d` with as much padding as reach.

    a, b offsets from -A to A and from -B to B, stored from index 0: 2A + 1 rows and 2B + 1 columns of them
"""

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.layers.windows import check_whole
from quoin.tensor import check_same_dtype, check_shapes

__all__ = [
    "cut_offsets",
    "image_dense_definition",
    "offset_dense_definition",
    "shared_dense_definition",
    "weights_by_offset",
]


def image_dense_definition(
    x: Float[Tensor, "*batch height width"],
    weight: Float[Tensor, "out_height out_width height width"],
    bias: Float[Tensor, "out_height out_width"],
) -> Float[Tensor, "*batch out_height out_width"]:
    """H_ij = U_ij + sum_kl W_ijkl X_kl: every pixel of the output sees every pixel of the input with a weight of its
    own.

    Notes: Z7.2.
    """
    check_shapes("... h w, p q h w, p q", x=x, weight=weight, bias=bias)
    check_same_dtype(x, weight, bias)
    return torch.einsum("ijkl,...kl->...ij", weight, x) + bias


def weights_by_offset(
    weight: Float[Tensor, "height width height width"],
) -> Float[Tensor, "height width 2*height-1 2*width-1"]:
    """V_ijab = W_i,j,i+a,j+b, the same weights indexed by offset; zero where (i + a, j + b) is outside the image.

    Notes: Z7.3.
    """
    check_shapes("h w h w", weight=weight)
    height, width = weight.shape[:2]
    rows, columns = torch.arange(height, device=weight.device), torch.arange(width, device=weight.device)
    i, j = rows.reshape(-1, 1, 1, 1), columns.reshape(-1, 1, 1)
    k = i + torch.arange(1 - height, height, device=weight.device).reshape(-1, 1)  # i + a
    l = j + torch.arange(1 - width, width, device=weight.device)  # noqa: E741  j + b
    inside = (k >= 0) & (k < height) & (l >= 0) & (l < width)
    return torch.where(inside, weight[i, j, k.clamp(0, height - 1), l.clamp(0, width - 1)], 0)


def offset_dense_definition(
    x: Float[Tensor, "*batch height width"],
    offsets: Float[Tensor, "height width row_offsets column_offsets"],
    bias: Float[Tensor, "height width"],
) -> Float[Tensor, "*batch height width"]:
    """H_ij = U_ij + sum_ab V_ijab X_i+a,j+b, X being zero outside the image.

    Args:
        offsets: V, with the offset (0, 0) in the middle of the last two axes, whose sizes are odd.

    Notes: Z7.3.
    """
    check_shapes("... h w, h w a b, h w", x=x, offsets=offsets, bias=bias)
    check_same_dtype(x, offsets, bias)
    return torch.einsum("ijab,...ijab->...ij", offsets, _neighbors(x, offsets)) + bias


def shared_dense_definition(
    x: Float[Tensor, "*batch height width"],
    kernel: Float[Tensor, "row_offsets column_offsets"],
    bias: Float[Tensor, ""],
) -> Float[Tensor, "*batch height width"]:
    """H_ij = u + sum_ab V_ab X_i+a,j+b, V and u the same at every position: shift X and H shifts, but for the border.

    X is zero outside the image. With A = h - 1 and B = w - 1 every pixel is seen; smaller ones make it local.

    Args:
        kernel: V, with the offset (0, 0) in the middle and sizes that are odd.

    Notes: Z7.4, Z7.5.
    """
    check_shapes("... h w, a b, ()", x=x, kernel=kernel, bias=bias)
    check_same_dtype(x, kernel, bias)
    return torch.einsum("ab,...ijab->...ij", kernel, _neighbors(x, kernel)) + bias


def cut_offsets(
    kernel: Float[Tensor, "*batch row_offsets column_offsets"], radius: int
) -> Float[Tensor, "*batch 2*{radius}+1 2*{radius}+1"]:
    """The weights of the offsets with |a|, |b| <= radius; those further away are left out, which makes the layer local.

    Args:
        kernel: With the offset (0, 0) in the middle and sizes that are odd.

    Notes: Z7.5.
    """
    check_shapes("... a b", kernel=kernel)
    check_whole("radius", radius, 0)
    middle, center = _radius(kernel)
    if radius > min(middle, center):
        raise UserError(
            f"expected a radius of at most {min(middle, center)} for shape {tuple(kernel.shape)}, got {radius}; "
            "cut less far out"
        )
    return kernel[..., middle - radius : middle + radius + 1, center - radius : center + radius + 1]


def _neighbors(x: Tensor, kernel: Tensor) -> Tensor:  # (..., h, w) -> (..., h, w, 2A + 1, 2B + 1)
    """X_i+a,j+b for every pixel and offset."""
    rows, columns = _radius(kernel)
    padded = torch.nn.functional.pad(x, (columns, columns, rows, rows))
    return padded.unfold(-2, 2 * rows + 1, 1).unfold(-2, 2 * columns + 1, 1)


def _radius(kernel: Tensor) -> tuple[int, int]:
    rows, columns = kernel.shape[-2:]
    if rows % 2 == 0 or columns % 2 == 0:
        raise UserError(
            f"expected odd numbers of offsets, -A to A and -B to B, got {rows}x{columns}; add offsets of weight zero"
        )
    return rows // 2, columns // 2
