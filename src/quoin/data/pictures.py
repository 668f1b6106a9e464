"""Images sampled from known distributions, offline: 2 × 2 ones small enough to think about, and digits in MNIST's
format.

Real digits are at hand too: `load("digits")` has 8 × 8 ones, and `load("idx:FOLDER")` reads MNIST's own files.
"""

import torch
from torch import Generator, Tensor

from quoin.data.dataset import Dataset, column_names
from quoin.errors import UserError

__all__ = ["make_segment_digits", "make_tiny_images"]

# The mean image of each class, from its top left pixel to its bottom right one: 0 is black, 1 is white.
_TINY = {"cat": (0.8, 0.2, 0.8, 0.2), "chicken": (0.8, 0.8, 0.2, 0.2), "dog": (0.2, 0.8, 0.8, 0.2)}

# Rows and columns that each stroke of a seven-segment display fills on 28 × 28 pixels, and the strokes of each digit.
_STROKES = {
    "a": (slice(5, 8), slice(9, 19)),  # top
    "b": (slice(5, 15), slice(16, 19)),  # upper right
    "c": (slice(13, 23), slice(16, 19)),  # lower right
    "d": (slice(20, 23), slice(9, 19)),  # bottom
    "e": (slice(13, 23), slice(9, 12)),  # lower left
    "f": (slice(5, 15), slice(9, 12)),  # upper left
    "g": (slice(13, 15), slice(9, 19)),  # middle
}
_DIGITS = ("abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg")
_FARTHEST = 4  # pixels that a digit may be moved by in each direction without leaving the image


def make_tiny_images(num_rows: int, *, noise: float = 0.1, generator: Generator) -> Dataset:
    """2 × 2 grey images of cats, chickens and dogs: four features and three classes, equally often on average.

    x = clamp(mean image of the class + ε, 0, 1) with ε ~ N(0, noise²) for each pixel.

    >>> make_tiny_images(5, generator=torch.Generator().manual_seed(0)).class_names
    ('cat', 'chicken', 'dog')

    Notes: Z4.3.
    """
    _check(num_rows, noise)
    labels = torch.randint(len(_TINY), (num_rows,), generator=generator)
    means = torch.tensor(list(_TINY.values())).reshape(-1, 1, 2, 2)
    return _images("tiny-pictures", means[labels], labels, tuple(_TINY), noise, generator)


def make_segment_digits(num_rows: int, *, noise: float = 0.2, generator: Generator) -> Dataset:
    """28 × 28 grey images with labels 0 to 9, as in MNIST: a seven-segment digit at a random position, under N(0,
    noise²).

    The distribution is known, so nobody has to fetch anything to try a model of ℝ^{28×28} on digits.

    Notes: D5.2-3.
    """
    _check(num_rows, noise)
    labels = torch.randint(10, (num_rows,), generator=generator)
    down, right = torch.randint(-_FARTHEST, _FARTHEST + 1, (2, num_rows, 1), generator=generator)
    indices = torch.arange(28)
    rows, columns = (
        (indices - down) % 28,
        (indices - right) % 28,
    )  # the border is black, so nothing comes round the other side
    clean = _templates()[labels[:, None, None], rows[:, :, None], columns[:, None, :]].unsqueeze(1)
    return _images("segment-digits", clean, labels, tuple(str(digit) for digit in range(10)), noise, generator)


def _templates() -> Tensor:  # (10, 28, 28)
    templates = torch.zeros(10, 28, 28)
    for digit, strokes in enumerate(_DIGITS):
        for stroke in strokes:
            rows, columns = _STROKES[stroke]
            templates[digit, rows, columns] = 1
    return templates


def _images(
    name: str, clean: Tensor, labels: Tensor, class_names: tuple[str, ...], noise: float, generator: Generator
) -> Dataset:
    pixels = (clean + noise * torch.randn(clean.shape, generator=generator)).clamp(0, 1)
    return Dataset(name, pixels, labels, column_names(pixels.shape[1:]), class_names, ("class",))


def _check(num_rows: int, noise: float) -> None:
    if num_rows < 1:
        raise UserError(f"expected at least one image, got {num_rows}; ask for e.g. 300")
    if not 0 <= noise < float("inf"):
        raise UserError(
            f"expected a noise of at least 0, got {noise}; give the standard deviation of a pixel, e.g. 0.1"
        )
