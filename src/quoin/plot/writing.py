"""A text as it stands on the page, letter by letter, each shaded by a number of its own."""

from collections.abc import Sequence

import numpy as np

from quoin.errors import UserError
from quoin.plot.plots import INK, WIDTH, Plot, amount_map, house_style, new_figure, numbers, plain, text_on

__all__ = ["shaded_text"]

COLUMNS = 72
LINE = 0.19  # inches
FONT = "DejaVu Sans Mono"  # comes with matplotlib


def shaded_text(
    pieces: Sequence[str], shades: object = None, *, columns: int = COLUMNS, label: str = "", title: str = ""
) -> Plot:
    """The pieces of a text in order, wrapped after `columns` characters and where a line ends; the larger its shade,
    the bluer a piece.

    What does not print, such as a line's end, stands as a dot, and a letter that the font lacks as an empty box.

    Args:
        shades: A number from 0 up for each piece; no shading unless given.
        label: What the colour bar is called.
    """
    if not any(pieces):
        raise UserError("expected a text to write, got none; give pieces such as its characters")
    values = None if shades is None else numbers(shades, "shades", 1)
    if values is not None and len(values) != len(pieces):
        raise UserError(f"expected a shade for each of {len(pieces)} pieces, got {len(values)}; pair them up")
    letters, row, column = [], 0, 0
    for number, piece in enumerate(pieces):
        for letter in piece:
            if column == columns:
                row, column = row + 1, 0
            letters.append((row, column, letter, number))
            row, column = (row + 1, 0) if letter == "\n" else (row, column + 1)
    rows = letters[-1][0] + 1
    with house_style():
        from matplotlib.font_manager import findfont, get_font

        font = get_font(findfont(FONT))
        colors, darkest = amount_map(), 1.0
        figure = new_figure(height=LINE * rows + (0.75 if values is not None else 0.3), width=WIDTH)
        axes = figure.add_subplot(title=plain(title))
        axes.set_xlim(-0.5, columns - 0.5)
        axes.set_ylim(rows - 0.5, -0.5)
        axes.axis("off")
        if values is not None:
            field = np.full((rows, columns), np.nan)
            for at, position, _, number in letters:
                field[at, position] = values[number]
            darkest = max(1e-9, float(np.nanmax(values)))
            image = axes.imshow(field, cmap=colors, aspect="auto", vmin=0, vmax=darkest, interpolation="nearest")
            figure.colorbar(image, ax=axes, orientation="horizontal", label=label, fraction=0.06, pad=0.02, aspect=50)
        for at, position, letter, number in letters:
            if letter != " ":
                shade = None if values is None else values[number] / darkest
                ink = INK if shade is None or not np.isfinite(shade) else text_on(colors(shade))
                shown = ("□" if font.get_char_index(ord(letter)) == 0 else letter) if letter.isprintable() else "·"
                axes.text(position, at, plain(shown), family=FONT, fontsize=7.5, ha="center", va="center", color=ink)
        return Plot(figure, title or "a text", "".join(pieces))
