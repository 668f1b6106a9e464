"""Signals as small curves side by side, one line a channel."""

import math
import textwrap
from collections.abc import Sequence

import numpy as np

from quoin.errors import UserError
from quoin.plot.plots import COLORS, FAINT, Plot, house_style, new_figure, numbers, plain

__all__ = ["signal_grid"]

_MOST_POINTS = 400  # of a curve that is some 200 pixels wide
_LETTERS, _LINES = 26, 3  # of a caption above one of three columns


def signal_grid(signals: object, captions: Sequence[str] | None = None, columns: int = 3, *, title: str = "") -> Plot:
    """Signals (n, channels, length), row by row, each under its caption, all on one scale; of many channels the first
    seven.

    Of a long signal the smallest and largest value of each few steps are joined, so that no peak is lost.

    Args:
        columns: Signals in a row.
    """
    array = numbers(signals, "signals", 3)
    if captions is not None and len(captions) != len(array):
        raise UserError(f"expected {len(array)} captions, got {len(captions)}; give one for each signal")
    if columns < 1:
        raise UserError(f"expected at least one column, got {columns}; give more")
    columns = min(columns, len(array))
    rows = math.ceil(len(array) / columns)
    finite = array[np.isfinite(array)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    margin = 0.05 * (high - low) or 1.0
    with house_style():
        figure = new_figure(height=(0.5 if title else 0.2) + 1.25 * rows)
        if title:
            figure.suptitle(plain(title), fontsize=11, fontweight="bold")
        for i, signal in enumerate(array):
            axes = figure.add_subplot(rows, columns, i + 1)
            axes.axhline(0.0, color=FAINT, linewidth=0.6)
            for channel, color in zip(signal, COLORS):
                axes.plot(*_envelope(channel), color=color, linewidth=1.0)
            axes.set_ylim(low - margin, high + margin)
            axes.tick_params(labelsize=7, length=2)
            axes.tick_params(labelleft=i % columns == 0, labelbottom=i + columns >= len(array))
            if captions is not None:
                lines = textwrap.wrap(plain(captions[i]), _LETTERS)[:_LINES]
                axes.set_title("\n".join(lines), fontsize=8, fontweight="normal", pad=3)
        return Plot(figure, title or f"{len(array)} signals")


def _envelope(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Steps and values, or where there are too many, the smallest and largest of each of `_MOST_POINTS` / 2 bins."""
    steps = np.arange(len(values))
    if len(values) <= _MOST_POINTS:
        return steps, values
    bins = np.array_split(steps, _MOST_POINTS // 2)
    kept = [step for each in bins for step in sorted((each[values[each].argmin()], each[values[each].argmax()]))]
    return np.array(kept), values[kept]
