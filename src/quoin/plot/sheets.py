"""Many small images on one page: a sheet of samples, or a table whose rows and columns mean something.

A table is what a denoising strip is (a row a sample, a column a time), a latent traversal (a row a latent, a column its
value), samples by class, originals over reconstructions. Images over captions of their own are in grids.py.
"""

import math
from collections.abc import Sequence

import numpy as np

from quoin.errors import UserError
from quoin.plot.plots import WIDTH, Plot, house_style, new_figure, numbers, plain
from quoin.plot.smoothing import smoothed

__all__ = ["image_sheet", "image_table"]

_LARGEST = 0.85  # inches of one image
_LETTER = 0.078  # inches, of a label's font
_FONT = 9
_PAPER = (0.53, 0.60, 0.68)  # no grey image can be mistaken for it, black or white at its edges; on light or dark paper


def image_sheet(
    images: object, *, columns: int | None = None, smooth: bool = False, title: str = ""
) -> Plot:  # (n, [c], h, w)
    """Images in [0, 1], grey (1 channel or no axis for it) or coloured (3), row by row; about as many rows as columns
    by default.

    Args:
        smooth: Small images with smooth edges; for where the image is the subject and not its pixels.
    """
    array = numbers(images, "images", 3, 4)
    count = len(array)
    if columns is not None and columns < 1:
        raise UserError(f"expected at least 1 column, got {columns}; leave it out for a square")
    columns = min(columns or math.ceil(math.sqrt(count)), count)
    rows = math.ceil(count / columns)
    empty = np.zeros((rows * columns - count, *array.shape[1:]))
    table = np.concatenate([array, empty]).reshape(rows, columns, *array.shape[1:])
    return _drawn(_finer(table) if smooth else table, count, None, None, "", "", title, f"{count} images")


def image_table(
    images: object,  # (rows, columns, [c], h, w)
    *,
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    x_label: str = "",
    y_label: str = "",
    smooth: bool = False,
    title: str = "",
) -> Plot:
    """Images in [0, 1] in rows and columns that are named; names that would touch are thinned.

    What is not an image yet, such as the noise a diffusion begins with, is for the caller to bring into [0, 1], say by
    clamping.

    Args:
        images: (rows, columns, h, w), or with an axis of 1 or 3 channels before h.
        smooth: Small images with smooth edges; for where the image is the subject and not its pixels.
    """
    array = numbers(images, "images", 4, 5)
    for labels, count, name in ((row_labels, array.shape[0], "row"), (column_labels, array.shape[1], "column")):
        if labels is not None and len(labels) != count:
            raise UserError(f"expected {count} {name} labels, got {len(labels)}; give one for each {name}")
    return _drawn(
        _finer(array) if smooth else array,
        array.shape[0] * array.shape[1],
        row_labels,
        column_labels,
        x_label,
        y_label,
        title,
        f"{array.shape[0]} rows of {array.shape[1]} images",
    )


def _finer(table: np.ndarray) -> np.ndarray:  # (rows, columns, [c], h, w)
    rows, columns, *_, height, width = table.shape
    finer = smoothed(table.reshape(rows * columns, -1, height, width))
    return finer.reshape(*table.shape[:-2], *finer.shape[-2:])


def _drawn(
    table: np.ndarray,
    count: int,
    row_labels: Sequence[str] | None,
    column_labels: Sequence[str] | None,
    x_label: str,
    y_label: str,
    title: str,
    alt: str,
) -> Plot:
    page, step_down, step_right = _mosaic(table, count)
    rows, columns, ratio = *table.shape[:2], step_down / step_right
    beside = 0.4 + max((len(label) for label in row_labels or ()), default=0) * _LETTER + (0.25 if y_label else 0.0)
    cell = min(_LARGEST, (WIDTH - beside) / columns)  # inches
    above = (0.4 if title else 0.1) + (0.3 if column_labels is not None else 0.0) + (0.25 if x_label else 0.0)
    with house_style():
        width = min(WIDTH, max(beside + columns * cell, 0.4 + 0.1 * len(title)))
        figure = new_figure(height=above + 0.2 + rows * cell * ratio, width=width)
        axes = figure.add_subplot(title=plain(title), aspect="equal", anchor="NW")
        axes.imshow(page, interpolation="none", extent=(0, page.shape[1], page.shape[0], 0))
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, pad=3)
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        axes.set_xlabel(plain(x_label))
        axes.set_ylabel(plain(y_label))
        widest = max((len(label) for label in column_labels or ()), default=0) * _LETTER + 0.08
        _name(
            axes.set_xticks,
            column_labels,
            step_right,
            (page.shape[1] - columns * step_right) / 2,
            math.ceil(widest / cell),
        )
        _name(
            axes.set_yticks,
            row_labels,
            step_down,
            (page.shape[0] - rows * step_down) / 2,
            math.ceil(0.16 / (cell * ratio)),
        )
        return Plot(figure, title or alt)


def _mosaic(table: np.ndarray, count: int) -> tuple[np.ndarray, int, int]:
    """The first `count` images as one, so that thousands are plotted as fast as one, and the pixels from each to the
    next.
    """
    if table.ndim == 4:
        table = table[:, :, None]
    if table.shape[2] not in (1, 3):
        raise UserError(
            f"expected images of 1 or 3 channels, got {table.shape[2]}; the channels stand before height and width"
        )
    if not (table.min() >= 0 and table.max() <= 1):  # NaN fails too
        raise UserError(f"expected images in [0, 1], got {table.min():.3g} to {table.max():.3g}; rescale or clamp them")
    rows, columns, _, height, width = table.shape
    gap = max(1, max(height, width) // 16)
    cells = np.empty((rows * columns, height + gap, width + gap, 3))
    cells[:] = _PAPER
    cells[:count, gap:, gap:] = np.moveaxis(table, 2, -1).reshape(-1, height, width, table.shape[2])[:count]
    page = np.swapaxes(cells.reshape(rows, columns, height + gap, width + gap, 3), 1, 2).reshape(
        rows * (height + gap), -1, 3
    )
    framed = np.concatenate([page, np.broadcast_to(_PAPER, (gap, page.shape[1], 3))])
    framed = np.concatenate([framed, np.broadcast_to(_PAPER, (framed.shape[0], gap, 3))], axis=1)
    return framed, height + gap, width + gap


def _name(setter, labels: Sequence[str] | None, step: int, shift: float, every: int) -> None:
    """Names at the middles of images `step` pixels apart, at least `every` images from one name to the next, the first
    and last named."""
    count = len(labels or ())
    shown = np.linspace(0, count - 1, 1 + (count - 1) // every).round().astype(int) if labels else ()
    setter(
        [(index + 0.5) * step + shift for index in shown],
        [plain((labels or ())[index]) for index in shown],
        fontsize=_FONT,
    )
