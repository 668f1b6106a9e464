"""Parallel coordinates: many things of several properties each, a line for each thing and a vertical axis for each
property."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quoin.display import shown
from quoin.errors import UserError
from quoin.plot.palette import LIGHT
from quoin.plot.plots import FAINT, INK, WIDTH, Plot, amount_map, house_style, new_figure, numbers, plain

__all__ = ["CoordinateAxis", "parallel_coordinates"]

_LONGEST = 14  # characters of a tick's word


@shown
@dataclass(frozen=True)
class CoordinateAxis:
    """One property of all things: numbers, or words, which stand in the order of `choices`.

    Args:
        log: A logarithmic axis, where all values are above 0.
        choices: The words that an axis of words has; empty for one of numbers.
    """

    label: str
    values: Sequence[Any]
    log: bool = False
    choices: tuple[str, ...] = ()

    def heights(self) -> tuple[np.ndarray, list[tuple[float, str]]]:
        """Where each value stands from 0 to 1, and the ticks."""
        if self.choices:
            places = np.array([self.choices.index(str(value)) for value in self.values], dtype=float)
            last = max(1, len(self.choices) - 1)
            spread = places / last if len(self.choices) > 1 else places + 0.5
            step = 1 + len(self.choices) // 12
            shown = [
                (index / last if len(self.choices) > 1 else 0.5, _short(word))
                for index, word in enumerate(self.choices)
                if index % step == 0
            ]
            return spread, shown
        array = numbers(self.values, self.label, 1)
        log = self.log and bool((array > 0).all())
        scaled = np.log(array) if log else array
        low, high = float(scaled.min()), float(scaled.max())
        if high == low:
            return np.full(len(array), 0.5), [(0.5, f"{array[0]:.3g}")]
        marks = np.linspace(low, high, 4)
        return (scaled - low) / (high - low), [
            ((mark - low) / (high - low), f"{np.exp(mark) if log else mark:.3g}") for mark in marks
        ]


def parallel_coordinates(
    axes: Sequence[CoordinateAxis], *, best: int, greater_is_better: bool = False, title: str = ""
) -> Plot:
    """A line for each thing through its value on every axis; the last axis says how good it is, and its color too.

    Args:
        best: The thing whose line is marked.
        greater_is_better: Of two values on the last axis.
    """
    if len(axes) < 2 or len({len(each.values) for each in axes}) != 1 or not axes[0].values:
        raise UserError("expected two axes or more with as many values each, got other; give one value a thing")
    placed = [each.heights() for each in axes]
    table = np.stack([heights for heights, _ in placed], axis=1)
    quality = table[:, -1] if greater_is_better else 1 - table[:, -1]
    xs = np.arange(len(axes))
    with house_style():
        # an axis and the words of its ticks need about an inch
        figure = new_figure(height=3.9, width=max(WIDTH, 1.05 * len(axes)))
        plane = figure.add_subplot(title=plain(title))
        plane.set_xlim(-0.25, len(axes) - 0.5)
        plane.set_ylim(-0.06, 1.06)
        plane.spines[:].set_visible(False)
        plane.set_yticks([])
        plane.set_xticks(xs, [plain(each.label) for each in axes])
        plane.tick_params(length=0)
        colors = amount_map()
        for number in np.argsort(quality):
            if number != best:
                plane.plot(xs, table[number], color=colors(0.3 + 0.55 * quality[number]), linewidth=1.1, alpha=0.7)
        plane.plot(xs, table[best], color=LIGHT.change, linewidth=2.6, label="best")
        for x, (_, ticks) in enumerate(placed):
            plane.axvline(x, 0.05, 0.95, color=FAINT if x < len(axes) - 1 else INK, linewidth=1, zorder=1)
            for height, word in ticks:
                box = {"facecolor": LIGHT.paper, "alpha": 0.75, "linewidth": 0, "pad": 0.6}
                plane.text(x + 0.03, height, plain(word), fontsize=8, va="center", zorder=5, bbox=box)
        plane.legend(loc="upper right", bbox_to_anchor=(1.0, 1.13))
        return Plot(figure, title or f"parallel coordinates: {', '.join(each.label for each in axes)}")


def _short(word: str) -> str:
    return word if len(word) <= _LONGEST else f"{word[: _LONGEST - 1]}…"
