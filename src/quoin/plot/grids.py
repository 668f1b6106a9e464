"""Numbers in rows and columns: heat maps and grids of images."""

import math
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.plot.plots import INK, WIDTH, Plot, amount_map, house_style, new_figure, numbers, plain, signed_map, text_on
from quoin.plot.smoothing import smoothed

__all__ = ["Viewable", "heatmap", "image_grid", "viewable"]


def heatmap(
    matrix: object,
    *,
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    show_values: bool = False,
) -> Plot:
    """A matrix as colours, its first row on top: white to blue from zero up, vermilion through white to blue if some
    are negative.

    Args:
        row_labels: One for each row; their indices unless given.
        column_labels: One for each column; their indices unless given.
        show_values: Write its number into each cell.
    """
    cells = numbers(matrix, "matrix", 2)
    rows, columns = cells.shape
    for labels, count, name in ((row_labels, rows, "row"), (column_labels, columns, "column")):
        if labels is not None and len(labels) != count:
            raise UserError(f"expected {count} {name} labels, got {len(labels)}; give one for each {name}")
    finite = cells[np.isfinite(cells)]
    top = float(np.abs(finite).max()) if finite.size else 1.0
    top = top or 1.0
    signed = bool((finite < 0).any())
    with house_style():
        from matplotlib.colors import Normalize

        norm, colors = Normalize(-top if signed else 0.0, top), signed_map() if signed else amount_map()
        cell = min(0.5, (WIDTH - 2) / columns)  # inches
        figure = new_figure(height=min(9.0, max(2.2, 1.3 + cell * rows)))
        axes = figure.add_subplot(title=plain(title), xlabel=plain(x_label), ylabel=plain(y_label), aspect="equal")
        # Few cells are plotted as shapes, sharp at any size; many would make a large file, and become an image.
        mesh = axes.pcolormesh(np.ma.masked_invalid(cells), cmap=colors, norm=norm, rasterized=cells.size > 900)
        axes.invert_yaxis()
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        _ticks(axes.set_xticks, column_labels, columns, long=45)
        _ticks(axes.set_yticks, row_labels, rows, long=0)
        if show_values:
            size = max(5.0, min(10.0, 20 * cell))
            for i, j in np.ndindex(rows, columns):
                ink = text_on(colors(norm(cells[i, j]))) if np.isfinite(cells[i, j]) else INK
                text = f"{cells[i, j]:.3g}".replace("-", "−")
                axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", color=ink, fontsize=size)
        bar = figure.colorbar(mesh, ax=axes, shrink=0.8, pad=0.02)
        bar.outline.set_visible(False)  # type: ignore[operator]
        return Plot(figure, title or f"heat map of {rows} rows and {columns} columns")


def _ticks(setter, labels: Sequence[str] | None, count: int, long: int) -> None:
    """Names or indices in the middle of the cells, thinned so that they do not touch; long names rotated by `long`
    degrees.
    """
    step = max(1, math.ceil(count / 20))
    shown = range(0, count, step)
    names = [plain(labels[i]) if labels is not None else str(i) for i in shown]
    middles = [i + 0.5 for i in shown]
    if long and max(map(len, names)) > 3:
        setter(middles, names, rotation=long, ha="right", rotation_mode="anchor")
    else:
        setter(middles, names)


@shown
class Viewable(NamedTuple):
    """Images as they can be plotted, and a sentence on what was done to them; empty if nothing was."""

    images: Float[Tensor, "samples channels height width"]  # 1 or 3 channels, in [0, 1]
    caption: str


def viewable(images: Real[Tensor, "samples channels height width"]) -> Viewable:
    """Whatever images a model learns from, for the eye: the mean of channels that are no colours, and a scale from
    black to white."""
    seen, captions = images.detach().cpu().double(), []
    if seen.shape[1] not in (1, 3):
        seen = seen.mean(dim=1, keepdim=True)
        captions.append(f"Shown is the mean of {images.shape[1]} channels.")
    low, high = float(seen.min()), float(seen.max())
    if low < 0 or high > 1:
        seen = ((seen - low) / ((high - low) or 1.0)).clamp(0, 1)
        captions.append(f"Rescaled for the eye: black is {low:.3g}, white is {high:.3g}.")
    return Viewable(seen, " ".join(captions))


def image_grid(
    images: object,
    captions: Sequence[str] | None = None,
    columns: int | None = None,
    *,
    smooth: bool = False,
    title: str = "",
) -> Plot:
    """Images of shape (n, h, w), (n, 1, h, w) or (n, 3, h, w) with values in [0, 1], row by row, each over its
    caption.

    Args:
        columns: Images in a row; unless given, about twice as many as there are rows.
        smooth: Small images with smooth edges; for where the image is the subject and not its pixels.
    """
    array = numbers(images, "images", 3, 4)
    if array.ndim == 4:
        if array.shape[1] not in (1, 3):
            raise UserError(f"expected images of 1 or 3 channels, got shape {array.shape}; the order is (n, c, h, w)")
        array = array[:, 0] if array.shape[1] == 1 else array.transpose(0, 2, 3, 1)
    if not (array.min() >= 0 and array.max() <= 1):  # NaN fails too
        raise UserError(f"expected images in [0, 1], got {array.min():.3g} to {array.max():.3g}; rescale or clamp them")
    if captions is not None and len(captions) != len(array):
        raise UserError(f"expected {len(array)} captions, got {len(captions)}; give one for each image")
    if smooth:
        planes = array[:, None] if array.ndim == 3 else np.moveaxis(array, -1, 1)
        array = smoothed(planes)[:, 0] if array.ndim == 3 else np.moveaxis(smoothed(planes), 1, -1)
    columns = min(columns or math.ceil(math.sqrt(2 * len(array))), len(array))
    rows = math.ceil(len(array) / columns)
    ratio = array.shape[1] / array.shape[2]
    gap, below = 0.08, 0.28 if captions is not None else 0.08  # of an image's width
    size = min(1.6, (WIDTH - 0.2) / (columns * (1 + gap)))  # inches
    font = max(7.0, min(9.0, 11 * size))
    if captions is not None:
        # A letter is about half as wide as it is high; what is wider than its image is written in several lines, or
        # neighbours would meet.
        captions = [textwrap.fill(plain(caption), max(8, int(72 * size / (0.55 * font)))) for caption in captions]
        lines = 1 + max(caption.count("\n") for caption in captions)
        below = max(below, 0.2 / size) + (lines - 1) * 1.25 * font / (72 * size)
    with house_style():
        figure = new_figure(height=(0.5 if title else 0.2) + rows * size * (ratio + below))
        axes = figure.add_subplot(title=plain(title), aspect="equal")
        for i, image in enumerate(array):
            left, top = (i % columns) * (1 + gap), (i // columns) * (ratio + below)
            gray = {"cmap": "gray", "vmin": 0, "vmax": 1} if image.ndim == 2 else {}
            axes.imshow(image, extent=(left, left + 1, top + ratio, top), interpolation="none", **gray)
            if captions is not None:
                axes.text(left + 0.5, top + ratio + 0.03, captions[i], ha="center", va="top", fontsize=font)
        axes.set_xlim(-0.02, columns * (1 + gap) - gap + 0.02)
        axes.set_ylim(rows * (ratio + below), -0.02)
        axes.set_axis_off()
        return Plot(figure, title or f"{len(array)} images")
