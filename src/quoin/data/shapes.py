"""Coloured figures of 32 × 32 pixels with known attributes: `--data shapes`.

A figure is given by its signed distance: the distance of a point from the outline, negative inside. A pixel is covered
by the part of it that lies inside, 1/2 - distance, if the outline is straight within it.

Points and distances are in units of the figure's radius, pixels in those of an image.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from quoin.data.dataset import Dataset, column_names
from quoin.display import shown
from quoin.errors import UserError

__all__ = ["Shapes", "make_shapes"]

Points = Float[Tensor, "*batch 2"]
Distances = Float[Tensor, "*batch"]


@shown
class Shapes(NamedTuple):
    """Images of figures, and the attributes of each."""

    dataset: Dataset  # its classes are the shapes
    color: Int[Tensor, "samples"]  # of `color_names`
    color_names: tuple[str, ...]
    radius: Float[Tensor, "samples"]  # pixels
    center: Float[Tensor, "samples 2"]  # pixels from the left and from the top
    rotation: Float[Tensor, "samples"]  # radians, clockwise
    background: Float[Tensor, "samples 3"]  # red, green and blue in the middle of the image


# Mean colour of a figure: red, green, blue.
_COLORS = {
    "red": (0.90, 0.22, 0.21),
    "orange": (0.96, 0.55, 0.15),
    "yellow": (0.97, 0.84, 0.25),
    "green": (0.30, 0.72, 0.35),
    "cyan": (0.25, 0.78, 0.85),
    "blue": (0.30, 0.45, 0.95),
    "purple": (0.66, 0.36, 0.88),
    "pink": (0.96, 0.55, 0.75),
}
_SIDE = 32
_RADIUS, _ROTATION = (6.0, 11.0), (-math.pi / 6, math.pi / 6)
_MARGIN = 1.5  # pixels between a figure and the border, at least
_COLOR_NOISE = 0.04  # standard deviation of red, green and blue around the mean colour
_DARKEST, _BRIGHTEST = 0.06, 0.22  # of the background's grey
_GRADIENT = 0.06  # how much brighter or darker the background is at the border than in the middle
_AT_ONCE = 1000  # images of one shape that are made at a time: memory


def make_shapes(num_rows: int, *, generator: Generator) -> Shapes:
    """Images (n, 3, 32, 32) of 8 shapes, equally many to within one, bright on dark; the other attributes are
    uniform and independent of the shape, the centre where the figure lies inside the image.

    Values are multiples of 1/255.

    >>> shapes = make_shapes(3, generator=torch.Generator().manual_seed(0))
    >>> shapes.dataset.image_shape, shapes.dataset.class_names[:3]
    ((3, 32, 32), ('circle', 'square', 'triangle'))
    """
    if num_rows < 1:
        raise UserError(f"expected at least one image, got {num_rows}; ask for e.g. 6000")
    labels = torch.randperm(num_rows, generator=generator) % len(_FIGURES)
    color = torch.randint(len(_COLORS), (num_rows,), generator=generator)
    uniform = torch.rand(num_rows, 7, generator=generator)
    radius = _RADIUS[0] + (_RADIUS[1] - _RADIUS[0]) * uniform[:, 0]
    rotation = _ROTATION[0] + (_ROTATION[1] - _ROTATION[0]) * uniform[:, 1]
    reach = radius[:, None] + _MARGIN
    center = reach + (_SIDE - 2 * reach) * uniform[:, 2:4]
    gray = _DARKEST + (_BRIGHTEST - _DARKEST) * uniform[:, 4:5]
    background = gray + 0.03 * torch.randn(num_rows, 3, generator=generator).clamp(-2, 2)
    ink = torch.tensor(list(_COLORS.values()))[color]
    ink = ink + _COLOR_NOISE * torch.randn(num_rows, 3, generator=generator).clamp(-2, 2)

    pixels = torch.arange(_SIDE) + 0.5
    grid = torch.stack(torch.meshgrid(pixels, pixels, indexing="xy"), dim=-1)  # (h, w, 2): right, down
    direction = 2 * math.pi * uniform[:, 5, None, None]
    ramp = ((grid[..., 0] / _SIDE - 0.5) * direction.cos() + (grid[..., 1] / _SIDE - 0.5) * direction.sin()) * 2
    ground = background[:, :, None, None] + _GRADIENT * ramp[:, None]
    images = torch.empty(num_rows, 3, _SIDE, _SIDE)
    for label, distance_of in enumerate(_FIGURES.values()):
        for rows in (labels == label).nonzero()[:, 0].split(_AT_ONCE):
            cos, sin, size = (each[rows, None, None] for each in (rotation.cos(), rotation.sin(), radius))
            x, y = ((grid - center[rows, None, None]) / size[..., None]).unbind(-1)
            distance = size * distance_of(torch.stack([cos * x + sin * y, cos * y - sin * x], dim=-1))
            covered = (0.5 - distance).clamp(0, 1)[:, None]
            images[rows] = ground[rows] + covered * (ink[rows][:, :, None, None] - ground[rows])
    images = (images.clamp(0, 1) * 255).round() / 255
    dataset = Dataset("shapes", images, labels, column_names(images.shape[1:]), tuple(_FIGURES), ("shape",))
    return Shapes(dataset, color, tuple(_COLORS), radius, center, rotation, background)


def _circle(points: Points) -> Distances:
    return points.norm(dim=-1) - 1


def _ring(points: Points) -> Distances:
    return (points.norm(dim=-1) - 0.78).abs() - 0.22


def _crescent(points: Points) -> Distances:
    return torch.maximum(_circle(points), 0.82 - (points - torch.tensor([0.42, 0.0])).norm(dim=-1))


def _polygon(corners: Sequence[tuple[float, float]]) -> Callable[[Points], Distances]:
    """The signed distance of a polygon that does not cross itself: to its nearest edge, negative where a ray meets an
    odd number of edges."""

    def distance_of(points: Points) -> Distances:
        x, y = points.unbind(-1)
        nearest = torch.full_like(x, math.inf)
        inside = torch.zeros_like(x, dtype=torch.bool)
        for (x1, y1), (x2, y2) in zip(corners, [*corners[1:], corners[0]]):
            dx, dy = x2 - x1, y2 - y1
            along = (((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy)).clamp(0, 1)
            nearest = torch.minimum(nearest, (x - x1 - along * dx) ** 2 + (y - y1 - along * dy) ** 2)
            if dy != 0:
                inside ^= ((y1 > y) != (y2 > y)) & (x < x1 + (y - y1) / dy * dx)
        return torch.where(inside, -nearest.sqrt(), nearest.sqrt())

    return distance_of


def _turning(num_corners: int, radii: tuple[float, ...] = (1.0,)) -> list[tuple[float, float]]:
    """Corners at equal angles from the top on, at these distances in turn."""
    angles = [2 * math.pi * corner / num_corners for corner in range(num_corners)]
    return [(r * math.sin(a), -r * math.cos(a)) for a, r in zip(angles, radii * num_corners)]


def _heart(num_corners: int = 40) -> list[tuple[float, float]]:
    turns = [2 * math.pi * corner / num_corners for corner in range(num_corners)]
    curve = [
        (16 * math.sin(t) ** 3, -13 * math.cos(t) + 5 * math.cos(2 * t) + 2 * math.cos(3 * t) + math.cos(4 * t))
        for t in turns
    ]
    return [(x / 17.5, (y - 2.5) / 17.5) for x, y in curve]


_ARM = 0.3  # half the width of a cross's arms
_CROSS = [(_ARM, -0.95), (_ARM, -_ARM), (0.95, -_ARM), (0.95, _ARM), (_ARM, _ARM), (_ARM, 0.95)]
_SQUARE = math.sqrt(0.5)

_FIGURES: dict[str, Callable[[Points], Distances]] = {
    "circle": _circle,
    "square": _polygon([(-_SQUARE, -_SQUARE), (_SQUARE, -_SQUARE), (_SQUARE, _SQUARE), (-_SQUARE, _SQUARE)]),
    "triangle": _polygon(_turning(3)),
    "star": _polygon(_turning(10, (1.0, 0.45))),
    "cross": _polygon(_CROSS + [(-x, -y) for x, y in _CROSS]),
    "ring": _ring,
    "heart": _polygon(_heart()),
    "crescent": _crescent,
}
