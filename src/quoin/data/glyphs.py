"""Letters and digits of 28 × 28 grey pixels, from the fonts that come with matplotlib: `--data glyphs`.

Each character of each font is drawn once, three times as large; an image is one of these drawings under a random affine
map and with a random weight of its strokes, averaged down to its pixels. Coloured figures are in shapes.py.
"""

import importlib.util
import math
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn import functional

from quoin.data.dataset import Dataset, column_names
from quoin.data.files import quoted
from quoin.display import shown
from quoin.errors import UserError

__all__ = ["Glyphs", "make_glyphs"]

# Letters whose two cases have one shape are one class, as in EMNIST's balanced set. The l is in none: without serifs it
# is an I.
_TWO_CASES = {name: name + name.lower() for name in "CIJKMOPSUVWXYZ"}
_CLASSES = {name: _TWO_CASES.get(name, name) for name in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt"}
_CHARACTERS = "".join(_CLASSES.values())
_FONTS = (
    *(f"DejaVuSans{style}" for style in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSansMono{style}" for style in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSerif{style}" for style in ("", "-Bold", "-Italic", "-BoldItalic")),
    *(f"STIXGeneral{style}" for style in ("", "Bol", "Italic", "BolIta")),
    *("cmr10", "cmb10", "cmti10", "cmss10", "cmtt10"),
)

_SIDE = 28  # pixels
_BORDER = 12.8  # a character reaches at most so many pixels from the middle: the border stays black
_MOST_INK = 16  # of a pixel: 17 grey levels, few enough for models that give each a probability
_FINE = 3  # drawn pixels for each pixel of an image, along each axis
_CAPITAL, _LARGEST = 18, 20  # pixels at scale 1: height of an H, and longest side of any character
_SLANT, _ROTATION, _SCALE, _WEIGHT, _SHIFT = (-0.2, 0.3), (-0.12, 0.12), (0.85, 1.15), (-0.1, 0.4), (-2.0, 2.0)
_BLUR = 1.0  # standard deviation, in drawn pixels, of the blur whose level sets are the outlines of other weights
_AT_ONCE = 500  # images that are made at a time: memory


@shown
class Glyphs(NamedTuple):
    """Images of characters, and how each was drawn."""

    dataset: Dataset
    characters: tuple[str, ...]  # as drawn: class C holds both C and c
    fonts: tuple[str, ...]
    slant: Float[Tensor, "samples"]  # how far the top leans to the right, as a fraction of the height
    rotation: Float[Tensor, "samples"]  # radians, anticlockwise
    scale: Float[Tensor, "samples"]  # 1 for capitals of 18 pixels
    weight: Float[Tensor, "samples"]  # pixels by which strokes are thicker than the font's, on each side
    shift: Float[Tensor, "samples 2"]  # pixels to the right and down


class _Drawings(NamedTuple):
    """Every character of every font, blurred, in the middle of a square."""

    images: Float[Tensor, "fonts characters side side"]
    half_sizes: Float[Tensor, "fonts characters 2"]  # half of width and height, in pixels of an image


def make_glyphs(num_rows: int, *, generator: Generator) -> Glyphs:
    """Images (n, 1, 28, 28) of 47 classes, equally many to within one: the digits, the capitals, and the small letters
    whose shape is not their capital's.

    Values are multiples of 1/16, as in digits: ink is counted from 0 to 16. Slant, rotation, scale, weight and shift
    are uniform; scale and shift stay where the character does not leave the image.

    >>> glyphs = make_glyphs(3, generator=torch.Generator().manual_seed(0))
    >>> glyphs.dataset.image_shape, glyphs.dataset.num_classes
    ((1, 28, 28), 47)
    """
    if num_rows < 1:
        raise UserError(f"expected at least one image, got {num_rows}; ask for e.g. 6000")
    drawings = _drawings()
    labels = torch.randperm(num_rows, generator=generator) % len(_CLASSES)
    fonts = torch.randint(len(_FONTS), (num_rows,), generator=generator)
    uniform = torch.rand(7, num_rows, generator=generator)
    slant, rotation, scale, weight, right, down = (
        low + (high - low) * each
        for each, (low, high) in zip(uniform, (_SLANT, _ROTATION, _SCALE, _WEIGHT, _SHIFT, _SHIFT))
    )
    cases = torch.tensor([len(drawn) for drawn in _CLASSES.values()])
    first = cases.cumsum(0) - cases
    characters = first[labels] + (uniform[6] * cases[labels]).long()

    cos, sin = rotation.cos(), rotation.sin()
    # Coordinates grow to the right and down: lean to the right, then turn anticlockwise.
    linear = torch.stack([cos, sin - slant * cos, -sin, cos + slant * sin], dim=-1).reshape(-1, 2, 2)
    reach = (linear.abs() @ drawings.half_sizes[fonts, characters][..., None]).squeeze(-1)
    border = _BORDER - weight.clamp(min=0)[:, None]
    scale = torch.minimum(scale, (border / reach).amin(-1))
    limit = (border - scale[:, None] * reach).clamp(min=0)
    shift = torch.stack([right, down], dim=-1).clamp(-limit, limit)
    linear = linear * scale[:, None, None]

    images = torch.empty(num_rows, 1, _SIDE, _SIDE)
    for rows in torch.arange(num_rows).split(_AT_ONCE):
        drawn = drawings.images[fonts[rows], characters[rows]][:, None]
        images[rows] = _transform(drawn, linear[rows], shift[rows], weight[rows])
    dataset = Dataset("glyphs", images, labels, column_names(images.shape[1:]), tuple(_CLASSES), ("character",))
    drawn = tuple(_CHARACTERS[number] for number in characters.tolist())
    names = tuple(_FONTS[number] for number in fonts.tolist())
    return Glyphs(dataset, drawn, names, slant, rotation, scale, weight, shift)


def _transform(
    drawn: Float[Tensor, "samples 1 side side"],
    linear: Float[Tensor, "samples 2 2"],
    shift: Float[Tensor, "samples 2"],
    weight: Float[Tensor, "samples"],
) -> Float[Tensor, "samples 1 height width"]:
    """Drawings under x ↦ linear x + shift, their outlines moved outwards by `weight`, in 17 grey levels."""
    back = linear.inverse()
    origin = (back @ shift[..., None]) / (_SIDE / 2)
    side = drawn.shape[-1]
    at = (2 * torch.arange(side) + 1) / side - 1  # centres of the drawn pixels, from -1 to 1
    # As affine_grid would give it, whose products of small matrices take longer than all the rest.
    grid = back[:, None, None, :, 0] * at[:, None] + back[:, None, None, :, 1] * at[:, None, None]
    grid = grid - origin[:, None, None, :, 0]
    blurred = functional.grid_sample(drawn, grid, align_corners=False)
    # Across a straight edge the blur is Φ(distance / blur): its level Φ(-weight) is the edge moved by the weight.
    offset = (weight * _FINE / _BLUR)[:, None, None, None]
    level = torch.special.ndtr(-offset)
    slope = (-(offset**2) / 2).exp() / math.sqrt(2 * math.pi) / _BLUR
    ink = ((blurred - level) / slope + 0.5).clamp(0, 1)  # over one drawn pixel from none to all
    return (functional.avg_pool2d(ink, _FINE) * _MOST_INK).round() / _MOST_INK


@cache
def _drawings() -> _Drawings:
    from PIL import Image, ImageDraw, ImageFont

    side = _SIDE * _FINE
    images = torch.zeros(len(_FONTS), len(_CHARACTERS), side, side)
    half_sizes = torch.zeros(len(_FONTS), len(_CHARACTERS), 2)
    for number, name in enumerate(_FONTS):
        path = str(_font_folder() / f"{name}.ttf")
        try:
            top, bottom = ImageFont.truetype(path, 100).getbbox("H")[1::2]
            size = 100 * _CAPITAL * _FINE / (bottom - top)
            usual = ImageFont.truetype(path, size)
        except OSError as error:
            raise UserError(
                f"expected the font {quoted(path)} of matplotlib, but it cannot be read ({error}): reinstall matplotlib"
            ) from None
        for at, character in enumerate(_CHARACTERS):
            font = usual
            left, top, right, bottom = font.getbbox(character)
            if (longest := max(right - left, bottom - top)) > _LARGEST * _FINE:
                font = ImageFont.truetype(path, size * _LARGEST * _FINE / longest)
                left, top, right, bottom = font.getbbox(character)
            canvas = Image.new("L", (side, side))
            ImageDraw.Draw(canvas).text(
                ((side - left - right) / 2, (side - top - bottom) / 2), character, font=font, fill=255
            )
            images[number, at] = torch.frombuffer(bytearray(canvas.tobytes()), dtype=torch.uint8).reshape(side, side)
            half_sizes[number, at] = torch.tensor([right - left, bottom - top]) / (2 * _FINE)
    return _Drawings(_blur(_blur(images / 255).mT).mT.contiguous(), half_sizes)


def _blur(images: Float[Tensor, "*batch height width"]) -> Float[Tensor, "*batch height width"]:
    """Along the last axis. A sum of shifted images: unlike a convolution's, its bits do not depend on the number of
    threads, and nor do those of the data."""
    taps = range(-math.ceil(4 * _BLUR), math.ceil(4 * _BLUR) + 1)
    weights = [math.exp(-(tap**2) / (2 * _BLUR**2)) for tap in taps]
    width, padded = images.shape[-1], functional.pad(images, (len(taps) // 2, len(taps) // 2))
    blurred = torch.zeros_like(images)
    for start, weight in enumerate(weights):
        blurred += weight / sum(weights) * padded[..., start : start + width]
    return blurred


def _font_folder() -> Path:
    """Where matplotlib keeps its fonts; found without importing it, which takes longer than the drawing."""
    found = importlib.util.find_spec("matplotlib")
    if found is None or not found.submodule_search_locations:
        raise UserError("glyphs are drawn from the fonts of matplotlib, which is not installed: pip install matplotlib")
    return Path(found.submodule_search_locations[0]) / "mpl-data" / "fonts" / "ttf"
