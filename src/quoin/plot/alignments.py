"""Which source tokens each target token attends to: soft alignments, as translation shows them."""

from collections.abc import Sequence

import numpy as np

from quoin.errors import UserError
from quoin.plot.plots import FAINT, WIDTH, Plot, amount_map, house_style, new_figure, numbers, plain

__all__ = ["alignment"]

_MOST = 60  # tokens on a side whose names can still be read
_LONGEST = 16  # letters of a token
_POINT = 1 / 72  # inches


def alignment(
    weights: object, source: Sequence[str], target: Sequence[str], *, title: str = ""
) -> Plot:  # (target, source)
    """A square for each pair of a target token, downwards, and a source token, across; the bluer, the larger its
    weight.

    Every token is named, so that the plot can be read as two sentences.

    Args:
        weights: (target, source), none negative: those after the softmax.
    """
    cells = numbers(weights, "weights", 2)
    for tokens, count, name in ((target, cells.shape[0], "target"), (source, cells.shape[1], "source")):
        if len(tokens) != count:
            raise UserError(
                f"expected {count} {name} tokens for weights {cells.shape}, got {len(tokens)}; rows are target, "
                "columns source"
            )
        if count > _MOST:
            raise UserError(
                f"expected at most {_MOST} {name} tokens, got {count}; show a shorter sentence, or "
                "plot.attention's page"
            )
    if not (np.isfinite(cells).all() and cells.min() >= 0):
        raise UserError("expected weights of at least 0, got negative ones or NaN; give those after the softmax")
    across, down = ([_name(token) for token in tokens] for tokens in (source, target))
    with house_style():
        # A letter is about 0.6 of its size wide; names across stand upright, so that neighbours never meet.
        size = float(np.clip(7.0 * 24 / max(cells.shape), 4.5, 9.0))
        left, top = (0.62 * size * _POINT * max(map(len, names)) + 0.15 for names in (down, across))
        cell = min(0.42, (WIDTH - left - 0.2) / cells.shape[1], 8.0 / cells.shape[0])  # inches
        size = min(size, 0.95 * cell / _POINT)
        above = 0.35 if title else 0.0
        width, height = left + cell * cells.shape[1] + 0.1, above + top + cell * cells.shape[0] + 0.1
        width = max(width, 0.11 * len(title) + 0.2)
        figure = new_figure(height, width)
        figure.set_layout_engine("none")  # sizes are known: one unit is one inch
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        if title:
            axes.text(0.1, 0.2, title, va="center", fontsize=11, fontweight="bold")
        right, bottom = left + cell * cells.shape[1], above + top + cell * cells.shape[0]
        extent = (left, right, bottom, above + top)
        axes.imshow(
            cells,
            cmap=amount_map(),
            vmin=0,
            vmax=max(1.0, cells.max()),
            extent=extent,
            interpolation="none",
            aspect="auto",
        )
        lines = {"colors": FAINT, "linewidth": 0.4}
        axes.vlines(np.linspace(left, right, cells.shape[1] + 1), above + top, bottom, **lines)
        axes.hlines(np.linspace(above + top, bottom, cells.shape[0] + 1), left, right, **lines)
        for j, name in enumerate(across):
            axes.text(
                left + (j + 0.5) * cell, above + top - 0.05, name, rotation=90, ha="center", va="bottom", fontsize=size
            )
        for i, name in enumerate(down):
            axes.text(left - 0.05, above + top + (i + 0.5) * cell, name, ha="right", va="center", fontsize=size)
        return Plot(figure, title or f"alignment of {len(target)} target and {len(source)} source tokens")


def _name(token: str) -> str:
    token = str(token)
    return plain(token if len(token) <= _LONGEST else token[: _LONGEST - 1] + "…")
