"""Images changed at random so that a model sees more of them than there are: shift, crop, flip, cutout.

Each takes a batch, its noise and a size in pixels, and changes every image on its own, without a loop over images. The
noise is a generator, or the rows' own (`RowNoise`): then an image is changed alike in whatever batch it comes. The
samples depend on the noise and the batch's size alone, never on the pixels. The noise is drawn on the CPU wherever the
images are, so that all devices see the same samples. `fill` is what comes where there was no image: a
number, or one per channel. Which fill is right depends on the scale of the images; see `background`.
"""

import torch
from jaxtyping import Float, Real, Shaped
from torch import Generator, Tensor
from torch.nn import functional

from quoin.data.row_noise import RowNoise, row_noise
from quoin.data.scaling import StandardScaler
from quoin.errors import UserError, format_value
from quoin.tensor import as_floating, check_shapes

__all__ = ["background", "random_cutout", "random_horizontal_flip", "random_resized_crop", "random_shift"]


def random_shift(
    images: Real[Tensor, "batch channels height width"],
    generator: Generator | RowNoise,
    size: int,
    *,
    fill: Real[Tensor, "channels 1 1"] | float = 0.0,
) -> Real[Tensor, "batch channels height width"]:
    """Move each image by whole pixels: y_ij = x_{i−a, j−b} with a, b uniform on {−size, ..., size}, and `fill` from
    outside.

    It is the same to pad every side by `size` and to cut a window of the old size out at random, as networks for
    CIFAR-10 do.

    >>> random_shift(torch.ones(1, 1, 2, 3), torch.Generator().manual_seed(1), 1).sum() <= 6
    tensor(True)
    """
    n, c, h, w = _checked(images, size, "a shift")
    padded = torch.empty(n, c, h + 2 * size, w + 2 * size, dtype=images.dtype, device=images.device)
    padded[:] = _held(fill, images)
    padded[..., size : size + h, size : size + w] = images
    windows = padded.unfold(2, h, 1).unfold(3, w, 1)  # (n, c, 2 size + 1, 2 size + 1, h, w): every window, as a view
    top, left = row_noise(generator, n).integers(0, 2 * size + 1, 2).to(images.device).T
    return windows[torch.arange(n, device=images.device), :, top, left]


def random_resized_crop(
    images: Float[Tensor, "batch channels height width"], generator: Generator | RowNoise, size: int
) -> Float[Tensor, "batch channels height width"]:
    """Cut a window of (h − k) × (w − k) pixels out of each image and stretch it bilinearly to h × w.

    k is uniform on {0, ..., size}, the window's position uniform among those inside the image. Nothing comes from
    outside, so there is nothing to fill; what the image shows grows, which a shift does not do to it.
    """
    n, _, h, w = _checked(images, size, "a crop")
    noise = row_noise(generator, n)
    smaller = noise.integers(0, size + 1).cpu()
    # Uniform on {0, ..., smaller}, image by image: a uniform number stretched and cut off.
    top, left = (noise.uniform(2).cpu().T * (smaller + 1)).floor()
    rows, columns = (
        _grid_coordinates(*each).to(images.dtype).to(images.device)
        for each in ((top, h, h - smaller), (left, w, w - smaller))
    )
    grid = torch.stack([columns[:, None, :].expand(n, h, w), rows[:, :, None].expand(n, h, w)], -1)
    return functional.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)


def random_horizontal_flip(
    images: Shaped[Tensor, "batch channels height width"], generator: Generator | RowNoise
) -> Shaped[Tensor, "batch channels height width"]:
    """Flip each image horizontally with probability 1/2: y_ij = x_{i, w−1−j}. Not for digits and letters, which it
    makes others."""
    check_shapes("n c h w", images=images)
    mirrored = row_noise(generator, len(images)).bernoulli(0.5)
    return torch.where(mirrored.to(images.device)[:, None, None, None], images.flip(-1), images)


def random_cutout(
    images: Real[Tensor, "batch channels height width"],
    generator: Generator | RowNoise,
    size: int,
    *,
    fill: Real[Tensor, "channels 1 1"] | float = 0.0,
) -> Real[Tensor, "batch channels height width"]:
    """Put `fill` over a square of `size` × `size` pixels in each image (DeVries & Taylor 2017).

    Its centre is uniform over the pixels, so it may reach over the edge and cover less. On standardised images the fill
    0 is the mean colour, which changes the batch's mean least.
    """
    n, _, h, w = _checked(images, size, "a cutout")
    noise = row_noise(generator, n)
    top, left = (noise.integers(0, length).cpu() - size // 2 for length in (h, w))
    covered = (_inside(top, size, h)[:, None, :, None] & _inside(left, size, w)[:, None, None, :]).to(images.device)
    return torch.where(covered, _held(fill, images), images)


def background(scale: StandardScaler) -> Float[Tensor, "channels 1 1"]:
    """What black became on a common scale: (0 − mean)/std of each channel, the `fill` that equals a black border."""
    return (-as_floating(scale.mean) / scale.std).float()


def _held(fill: Tensor | float, images: Tensor) -> Tensor:
    """The fill in the dtype of the images, which of whole numbers can hold whole ones alone."""
    held = torch.as_tensor(fill, dtype=images.dtype, device=images.device)
    if not images.is_floating_point() and bool(
        (held.double() != torch.as_tensor(fill, dtype=torch.float64, device=images.device)).any()
    ):
        raise UserError(
            f"expected a fill that {images.dtype} can hold, got {format_value(fill)}; convert the images with "
            "images.float()"
        )
    return held


def _grid_coordinates(start: Tensor, length: int, window: Tensor) -> Tensor:  # (n,), h, (n,) -> (n, h)
    """Where the h pixels of a stretched window lie in the image, as grid_sample counts: from -1 to 1 between the
    image's edges."""
    centers = (torch.arange(length, dtype=torch.float64) + 0.5) / length
    pixels = start[:, None] + centers * window[:, None] - 0.5
    inside = pixels.clamp(
        start[:, None], (start + window - 1)[:, None]
    )  # the window's rim repeats; what is beyond it stays unseen
    return (2 * inside + 1) / length - 1


def _inside(start: Tensor, size: int, length: int) -> Tensor:  # (n,) -> (n, length)
    offsets = torch.arange(length) - start[:, None]
    return (offsets >= 0) & (offsets < size)


def _checked(images: Tensor, size: int, what: str) -> tuple[int, int, int, int]:
    check_shapes("n c h w", images=images)
    n, c, h, w = images.shape
    if not 0 <= size < min(h, w):
        raise UserError(
            f"expected {what} of 0 to {min(h, w) - 1} pixels for images of {h} x {w}, got {size}; choose one of these"
        )
    return n, c, h, w
