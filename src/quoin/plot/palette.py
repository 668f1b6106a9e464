"""The colours of every plot and page, by what they mean, on light and on dark paper.

One meaning each, everywhere: ink and grey are what is given (data, truth), blue what the model computes, vermilion
change (gradient, adjoint, error), green the reader's own, purple (dashed) a form as printed in the notes, sky what is
hidden (latent, state). They are Okabe and Ito's, distinct in every common kind of colour vision, darkened until they
can be read: text stands out at least 4.5:1 from its paper and a mark at least 3:1 (WCAG 2), on either paper.

Dark is light turned over: lightness inverted, hue kept (`turned_over`). A browser does the same to an image by the
filter `TURN_OVER`, so that a picture of amounts goes with the lines around it.
"""

from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np

__all__ = [
    "DARK",
    "LIGHT",
    "Palette",
    "amounts",
    "cell_text",
    "contrast",
    "css_variables",
    "signed",
    "turn_over_channels",
    "turned_over",
]

_INVERT = 0.92  # short of 1, so that white paper becomes #141414 and not black
TURN_OVER = f"invert({_INVERT}) hue-rotate(180deg)"  # CSS
_HUE_ROTATE = ((-0.574, 1.430, 0.144), (0.426, 0.430, 0.144), (0.426, 1.430, -0.856))  # the matrix of the CSS function


@dataclass(frozen=True)
class Palette:
    """Colours as #rrggbb. Text may be written in ink, faint, accent, model, change, hand and printed; hidden and the
    other series are for marks, edge for lines of little weight, grid, raised and the tints for what lies under others.
    """

    paper: str = "#ffffff"
    ink: str = "#222222"
    faint: str = "#5f5f5f"  # captions and other text of less weight
    grid: str = "#e4e4e4"
    raised: str = "#f4f4f4"  # a surface that stands out a little from the paper
    edge: str = "#8a8a8a"  # arrows, frames of controls
    model: str = "#0065a8"
    change: str = "#c24e00"
    hand: str = "#007f5c"
    printed: str = "#a8508a"
    hidden: str = "#1798c9"
    accent: str = "#0b5cad"  # links, focus
    series: tuple[str, ...] = ("#0065a8", "#c24e00", "#007f5c", "#a8508a", "#1798c9", "#927a00", "#666666")
    # pale fills of boxes that carry ink: blue, vermilion, green, yellow, purple, grey
    tints: tuple[str, ...] = ("#d6e9f5", "#fbe3d3", "#d5efe3", "#f2e2a8", "#e3d7ee", "#e6e6e6")


def turned_over(color: str) -> str:
    """The colour (#rrggbb) for dark paper: lightness inverted, hue kept; what `TURN_OVER` makes of it.

    >>> turned_over("#ffffff"), turned_over("#222222")
    ('#141414', '#cecece')
    """
    return "#" + "".join(f"{round(255 * value):02x}" for value in turn_over_channels(np.array(_channels(color))))


def turn_over_channels(colors: np.ndarray) -> np.ndarray:  # (..., 3) in [0, 1]
    """Red, green and blue turned over."""
    return np.clip((_INVERT + (1 - 2 * _INVERT) * colors) @ np.array(_HUE_ROTATE).T, 0.0, 1.0)


def contrast(color: str, other: str) -> float:
    """The contrast ratio of two colours (#rrggbb) by WCAG 2: from 1, the same, to 21, black on white.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    low, high = sorted((_luminance(color), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _channels(color: str) -> list[float]:
    return [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]


def _luminance(color: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _dark(light: Palette) -> Palette:
    return replace(
        light,
        **{
            field.name: tuple(map(turned_over, value)) if isinstance(value, tuple) else turned_over(value)
            for field in fields(light)
            for value in (getattr(light, field.name),)
        },
    )


LIGHT = Palette()
DARK = _dark(LIGHT)

# The stops of the maps, from zero outwards. Amounts: paper to deep blue; signed numbers: the same upwards from zero,
# and paper to deep vermilion downwards.
_UP = (LIGHT.paper, "#c6ddf0", "#78b2dc", "#2c7fbf", "#08519c", "#08306b")
_DOWN = (LIGHT.paper, "#fbd5bd", "#f2a67a", "#d9692a", "#a63c00", "#6b2500")


def amounts(dark: bool = False) -> tuple[str, ...]:
    """The stops of the sequential map, from zero, which is paper, to the largest amount; joined by straight lines."""
    return tuple(map(turned_over, _UP)) if dark else _UP


def signed(dark: bool = False) -> tuple[str, ...]:
    """The stops of the diverging map, from vermilion (negative) through paper (zero, in the middle) to blue."""
    stops = (*reversed(_DOWN), *_UP[1:])
    return tuple(map(turned_over, stops)) if dark else stops


# Words in a cell of a map are black or white, whichever stands out more: on light paper and, by a choice of its own, on
# dark. A colour that nothing else has says which of the two it shall be on dark paper.
CELL_TEXT = {"#000001": "#000000", "#000002": "#ffffff", "#fffffe": "#ffffff", "#fffffd": "#000000"}


def cell_text(cell: str) -> str:
    """The colour for words on a cell of this colour (#rrggbb), at least 4.5:1 from it on light and on dark paper."""
    on_light, on_dark = (_black_or_white(color) for color in (cell, turned_over(cell)))
    return next(color for color, dark in CELL_TEXT.items() if dark == on_dark and _black_or_white(color) != on_light)


def _black_or_white(color: str) -> str:
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, color))


@cache
def css_variables() -> str:
    """A style sheet with the palette as custom properties (--paper, --ink, --faint, ..., --series-1, ..., --tint-1,
    ...), on light paper and, where the reader's system asks for it, on dark.
    """
    return (
        f":root{{color-scheme:light dark;{_properties(LIGHT)}}}\n"
        f"@media (prefers-color-scheme: dark){{:root{{{_properties(DARK)}}}}}"
    )


def _properties(palette: Palette) -> str:
    named = {field.name: getattr(palette, field.name) for field in fields(palette)}
    numbered = {"series": named.pop("series"), "tint": named.pop("tints")}
    named |= {f"{name}-{number}": color for name, row in numbered.items() for number, color in enumerate(row, start=1)}
    return ";".join(f"--{name}:{color}" for name, color in named.items())
