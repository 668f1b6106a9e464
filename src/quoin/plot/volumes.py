"""An image network as the blocks of numbers that it makes on its way: tall for large images, wide for many channels."""

from collections.abc import Sequence
from typing import NamedTuple

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.plot.palette import LIGHT
from quoin.plot.plots import INK, Plot, house_style, new_figure, plain

__all__ = ["Volume", "volumes"]

_FILLS = LIGHT.tints
_SLANT = 0.3  # how far the depth of a box goes right and up, as a fraction of its height
_GAP, _WIDE_GAP = 1.6, 8.0


@shown
class Volume(NamedTuple):
    """The output of one layer."""

    shape: tuple[int, ...]  # (channels, height, width), or (units,)
    kind: str  # what the layer does; one colour each, named under the plot
    label: str = ""  # under the box; a box with a label begins a group, with more space before it


def volumes(outputs: Sequence[Volume], *, title: str = "") -> Plot:
    """Boxes from left to right, one for each output, in the order of the forward pass.

    Sides go from 224 to 7 and channels from 3 to 4096 within one network, so lengths are plotted as powers, pixels^0.6
    and channels^0.35.
    """
    if not outputs or any(len(each.shape) not in (1, 3) or min(each.shape) < 1 for each in outputs):
        shapes = [each.shape for each in outputs]
        raise UserError(
            f"expected outputs of shape (channels, height, width) or (units,), got {format_value(shapes)}; leave "
            "the batch out"
        )
    kinds = list(dict.fromkeys(each.kind for each in outputs))
    if len(kinds) > len(_FILLS):
        raise UserError(f"expected at most {len(_FILLS)} kinds of layers, got {len(kinds)}; group some under one name")
    with house_style():
        from matplotlib.patches import Patch, Polygon

        sheet = new_figure(height=2.6)
        axes = sheet.add_subplot(aspect="equal")
        axes.set_title(title, loc="center")
        left = highest = lowest = 0.0
        for number, (shape, kind, label) in enumerate(outputs):
            left += 0 if number == 0 else _WIDE_GAP if label else _GAP
            width, half, slant = _lengths(shape)
            fill = _FILLS[kinds.index(kind)]
            corners = [(left, -half), (left + width, -half), (left + width, half), (left, half)]
            top = [corners[3], corners[2], (left + width + slant, half + slant), (left + slant, half + slant)]
            side = [corners[1], (left + width + slant, slant - half), top[2], corners[2]]
            for face, shade in ((top, 0.94), (side, 0.82), (corners, 1.0)):
                axes.add_patch(
                    Polygon(face, facecolor=_darker(fill, shade), edgecolor=INK, linewidth=0.6, joinstyle="round")
                )
            axes.text(left + width / 2, -half - 1.2, plain(label), ha="center", va="top", fontsize=6, linespacing=1.1)
            left += width
            highest, lowest = max(highest, half + slant), min(lowest, -half)
        axes.set_xlim(-4, left + _lengths(outputs[-1].shape)[2] + 1)
        axes.set_ylim(lowest - 8, highest + 1)
        axes.set_axis_off()
        keys = [
            Patch(facecolor=fill, edgecolor=INK, linewidth=0.6, label=plain(kind)) for kind, fill in zip(kinds, _FILLS)
        ]
        sheet.legend(handles=keys, loc="outside lower center", ncols=len(keys), fontsize=8, handlelength=1.2)
        return Plot(sheet, title or f"network of {len(outputs)} layers")


def _lengths(shape: tuple[int, ...]) -> tuple[float, float, float]:
    """Width, half the height and the slant of the box for this shape."""
    channels, *sides = shape
    height = 1.6 * max(sides, default=1) ** 0.6
    return channels**0.35, height / 2, _SLANT * height


def _darker(color: str, brightness: float) -> tuple[float, float, float]:
    red, green, blue = (brightness * int(color[start : start + 2], 16) / 255 for start in (1, 3, 5))
    return red, green, blue
