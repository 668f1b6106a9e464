"""Small maps of numbers in labelled rows: kernels, feature maps, whatever is too small to need an axis."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from quoin.errors import UserError
from quoin.plot.plots import FAINT, WIDTH, Plot, amount_map, house_style, new_figure, numbers, plain, signed_map

__all__ = ["feature_map_rows"]

_LABEL = 1.5  # inches, to the left of the rows
_LARGEST = 0.75  # inches of one map
_GAP = 0.1  # of a map
_SMALL, _LINE = 6.0, 0.105  # points of a caption, and inches of one of its lines


def feature_map_rows(
    rows: Mapping[str, object],
    *,
    captions: Mapping[str, Sequence[str]] | None = None,
    columns: int = 8,
    title: str = "",
) -> Plot:
    """For each label a row of maps (k, h, w), broken after `columns` of them, all of a row on one scale, each over its
    caption if any.

    White is zero and blue positive, vermilion negative; the number under the label is what the deepest colour
    stands for.

    Args:
        rows: Label to maps (k, h, w).
        captions: Label to a caption for each of its maps.
    """
    if not rows or columns < 1:
        raise UserError(
            f"expected at least one row and one column, got {len(rows)} and {columns}; give a mapping of label to maps"
        )
    maps = {label: numbers(each, f"maps of {label!r}", 3) for label, each in rows.items()}
    captions = captions or {}
    for label, texts in captions.items():
        if label not in maps or len(texts) != len(maps[label]):
            raise UserError(
                f"expected a caption for each map of {label!r}, got {len(texts)}; give {len(maps.get(label, ()))}"
            )
    columns = min(columns, max(len(each) for each in maps.values()))
    cell = min(_LARGEST, (WIDTH - _LABEL) / (columns * (1 + _GAP)))  # inches
    with house_style():
        from matplotlib.patches import Rectangle

        under = {label: _under(captions.get(label, ()), cell) for label in maps}
        heights = {label: _height(each, columns, cell, under[label]) for label, each in maps.items()}
        figure = new_figure(height=(0.5 if title else 0.2) + cell * sum(heights.values()))
        axes = figure.add_subplot(title=plain(title), aspect="equal")
        below = 0.0
        for label, each in maps.items():
            finite = each[np.isfinite(each)]
            top = (float(np.abs(finite).max()) if finite.size else 0.0) or 1.0
            signed = bool((finite < 0).any())
            colors, ratio = signed_map() if signed else amount_map(), each.shape[1] / each.shape[2]
            for index, image in enumerate(each):
                line, column = divmod(index, columns)
                left, up = column * (1 + _GAP), below + line * (ratio + under[label])
                extent = (left, left + 1, up + ratio, up)
                shades = np.ma.masked_invalid(image)
                axes.imshow(
                    shades, cmap=colors, vmin=-top if signed else 0, vmax=top, extent=extent, interpolation="none"
                )
                axes.add_patch(Rectangle((left, up), 1, ratio, fill=False, edgecolor=FAINT, linewidth=0.5))
                if label in captions:
                    text = plain(captions[label][index])
                    axes.text(
                        left + 0.5, up + ratio + 0.03, text, ha="center", va="top", fontsize=_SMALL, linespacing=1.1
                    )
            text = plain(label) + f"\n{'±' if signed else 'up to '}{top:.2g}"
            axes.text(-0.12 / cell, below, text, ha="right", va="top", fontsize=8, linespacing=1.25)
            below += heights[label]
        axes.set_xlim(-_LABEL / cell, columns * (1 + _GAP))
        axes.set_ylim(below, -0.05)
        axes.set_axis_off()
        return Plot(figure, title or f"{len(maps)} rows of maps")


def _under(captions: Sequence[str], cell: float) -> float:
    """What stands under a map before the next one begins, in maps: a gap, or the longest caption."""
    lines = max((caption.count("\n") + 1 for caption in captions), default=0)
    return _GAP + lines * _LINE / cell


def _height(maps: np.ndarray, columns: int, cell: float, under: float) -> float:
    """What a row takes, in maps: its lines, or its label of up to three lines where that is higher."""
    lines = math.ceil(len(maps) / columns)
    return max(lines * (maps.shape[1] / maps.shape[2] + under), 0.52 / cell) + _GAP
