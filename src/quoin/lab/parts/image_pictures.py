"""Small images in pictures: signed maps as colours, a painted grid as a tensor, a file of the reader's own in grey."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.lab.parts.picture import Axes, Picture
from quoin.plot.palette import LIGHT

__all__ = ["draw_box", "draw_map", "own_image", "painted", "picture_like", "ring"]

_MOST_PIXELS = 20_000_000


def _channels(color: str) -> np.ndarray:
    return np.array([int(color[start : start + 2], 16) for start in (1, 3, 5)]) / 255


_POSITIVE, _NEGATIVE = _channels(LIGHT.model), _channels(LIGHT.change)


def draw_map(axes: Axes, values: Float[Tensor, "rows columns"], *, most: float | None = None) -> None:
    """A map of numbers: paper where 0, blue where positive, vermilion where negative; `most` has the full colour."""
    part = (values.detach().double() / (most or float(values.abs().max()) or 1.0)).clamp(-1, 1).numpy()[..., None]
    axes.image(1 - np.abs(part) * (1 - np.where(part >= 0, _POSITIVE, _NEGATIVE)))
    left, top, width, height = axes.box
    axes.picture.body.append(
        f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" fill="none" style="stroke:var(--edge)"/>'
    )


def draw_box(axes: Axes, top: float, bottom: float, left: float, right: float, role: str, *, width: float = 3) -> None:
    """The rim of some rows and columns of a map whose axes count cells, y upwards."""
    rows = axes.y[1]
    axes.line(
        [left, right, right, left, left], [rows - each for each in (top, top, bottom, bottom, top)], role, width=width
    )


def painted(cells: Sequence[int], rows: int, levels: Sequence[float] = (0.0, 1.0)) -> Float[Tensor, "rows columns"]:
    """The painted cells as numbers, by their levels."""
    return torch.tensor([levels[cell] for cell in cells]).reshape(rows, -1)


def ring(rows: int) -> tuple[int, ...]:
    """A painted 0 on a square of cells."""
    at = (np.arange(rows) + 0.5) / rows * 2 - 1
    away = (at[None, :] / 0.42) ** 2 + (at[:, None] / 0.72) ** 2
    return tuple(int(0.55 < each < 1.3) for each in away.ravel())


def own_image(content: bytes, side: int) -> Float[Tensor, "side side"]:
    """An image file in grey, from 0, black, to 1, white, brought to a square; what is none is an error of one line."""
    return picture_like(content, (1, side, side))[0]


def picture_like(content: bytes, shape: tuple[int, int, int]) -> Float[Tensor, "channels height width"]:
    """An image file from 0, black, to 1, white, in grey or colours, brought to a shape; what is none is an error of one
    line."""
    from PIL import Image, UnidentifiedImageError

    channels, rows, columns = shape
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(content), formats=("PNG", "JPEG"))
        if image.width * image.height > _MOST_PIXELS:
            raise UserError(f"expected at most {_MOST_PIXELS:,} pixels, got {image.width} by {image.height}; shrink it")
        resized = image.convert("L" if channels == 1 else "RGB").resize((columns, rows))
    except (UnidentifiedImageError, Image.DecompressionBombWarning, Image.DecompressionBombError, OSError, SyntaxError):
        raise UserError("expected an image, PNG or JPEG, got something else; choose another file") from None
    values = torch.from_numpy(np.asarray(resized, dtype=np.float32) / 255)
    return values.reshape(rows, columns, channels).movedim(-1, 0)


def panel(picture: Picture, left: float, top: float, side: float, rows: int, columns: int, title: str = "") -> Axes:
    """A square part of the sheet whose coordinates count the cells of a map, y upwards."""
    return picture.axes((0, columns), (0, rows), box=(left, top, side, side * rows / columns), bare=True, title=title)
