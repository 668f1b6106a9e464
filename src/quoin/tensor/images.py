"""Images as arrays: channels first, channels last, flattened to vectors; and a batch of them checked before a model
sees it.
"""

import math
from collections.abc import Sequence

from jaxtyping import Shaped
from torch import Tensor

from quoin.errors import UserError, format_value
from quoin.tensor.shapes import check_shapes

__all__ = ["channels_first", "channels_last", "check_image_batch", "flatten_images", "unflatten_images"]


def channels_first(
    images: Shaped[Tensor, "*batch height width channels"],
) -> Shaped[Tensor, "*batch channels height width"]:
    """Images with the channel as their last index, with it before the pixel's row and column: Y_cij = X_ijc. A view, no
    copy.

    Notes: Z7.0.
    """
    check_shapes("... h w c", images=images)
    return images.movedim(-1, -3)


def channels_last(
    images: Shaped[Tensor, "*batch channels height width"],
) -> Shaped[Tensor, "*batch height width channels"]:
    """Images with the channel as their first index, with it behind the pixel's row and column: Y_ijc = X_cij. A view,
    no copy.

    This permutes the indices; torch's `memory_format=torch.channels_last` permutes only the order in memory.

    Notes: Z7.0.
    """
    check_shapes("... c h w", images=images)
    return images.movedim(-3, -1)


def flatten_images(
    images: Shaped[Tensor, "batch channels height width"],
) -> Shaped[Tensor, "batch channels*height*width"]:
    """Each image as one vector, row by row and channel by channel: entry (c h + i) w + j is X_cij (h, w the sizes).

    Notes: Z7.0.
    """
    check_shapes("n c h w", images=images)
    return images.flatten(1)


def unflatten_images(
    vectors: Shaped[Tensor, "batch features"], image_shape: Sequence[int]
) -> Shaped[Tensor, "batch channels height width"]:
    """The images that `flatten_images` made these vectors of.

    Args:
        image_shape: (channels, height, width).

    Notes: Z7.0.
    """
    check_shapes("n d", vectors=vectors)
    shape = _image_shape(image_shape)
    if vectors.shape[1] != math.prod(shape):
        raise UserError(
            f"expected vectors of {math.prod(shape)} entries for images {shape}, got {vectors.shape[1]}; give "
            "their (c, h, w)"
        )
    return vectors.unflatten(1, shape)


def check_image_batch(x: Shaped[Tensor, "..."], image_shape: Sequence[int]) -> None:
    """Raise an error for what is not a batch (n, c, h, w) of at least one image of `image_shape` (c, h, w) with entries
    of a float dtype.

    >>> import torch
    >>> check_image_batch(torch.zeros(5, 3, 32, 32), (3, 32, 32))
    >>> check_image_batch(torch.zeros(5, 3, 32, 32), (1, 28, 28))
    Traceback (most recent call last):
    quoin.errors.UserError: expected images of 1 channel and 28x28 pixels, got 3 channels and 32x32 pixels; build the
    model for (3, 32, 32)
    """
    shape = _image_shape(image_shape)
    if x.dim() != 4:
        raise UserError(
            f"expected a batch of images (n, c, h, w) of {shape}, got shape {tuple(x.shape)}; one image is "
            "x.unsqueeze(0)"
        )
    got = tuple(x.shape[1:])
    if got != shape:
        hint = "permute them with channels_first" if (got[2], *got[:2]) == shape else f"build the model for {got}"
        raise UserError(f"expected images of {_pixels(shape)}, got {_pixels(got)}; {hint}")
    if x.shape[0] == 0:  # len(x) would be a constant in an exported program
        raise UserError(
            f"expected at least one image, got an empty batch of shape {tuple(x.shape)}; leave empty batches out"
        )
    if not x.is_floating_point():  # `double`, the hint of check_floating, is not what a model's weights are
        raise UserError(f"expected images of a float dtype, got {x.dtype}; convert them with images.float()")


def _image_shape(image_shape: Sequence[int]) -> tuple[int, ...]:
    shape = tuple(image_shape)
    if len(shape) != 3 or not all(isinstance(size, int) and size >= 1 for size in shape):
        raise UserError(
            f"expected an image shape (channels, height, width) of positive whole numbers, got {format_value(shape)}; "
            "e.g. (1, 28, 28)"
        )
    return shape


def _pixels(shape: tuple[int, ...]) -> str:
    channels, height, width = shape
    return f"{channels} channel{'' if channels == 1 else 's'} and {height}x{width} pixels"
