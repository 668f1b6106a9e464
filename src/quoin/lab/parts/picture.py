"""A picture that a hand can hold: SVG made in Python, in colours that follow the reader's light or dark mode.

A `Picture` is a sheet of 640 units' width; `axes` gives a part of it that has coordinates, and draws in them. Roles say
what a mark is, and with it its colour everywhere: "ink" and "faint" what is given, "model" what is computed, "change"
a gradient or an error, "hand" the reader's own, "printed" (dashed) the notes' printed form, "hidden" a latent or state;
"series-1" to "series-7" classes. Marks with a name (handles, points, cells to paint) are the exhibit's controls of that
name: the browser sends where they were moved, and draws nothing by itself.
"""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch

from quoin.lab.parts.hands import Hands
from quoin.lab.parts.marks import color_of, escape, kept_inside, mark, text_width, words_on
from quoin.lab.parts.marks import number as _at
from quoin.lab.parts.marks import title as _title
from quoin.lab.parts.ticks import digits, ticks

__all__ = ["Axes", "Picture"]

WIDTH, HEIGHT = 640, 420
Numbers = Iterable[float] | torch.Tensor | np.ndarray


def _list(values: Numbers) -> list[float]:
    if isinstance(values, torch.Tensor):
        values = values.detach().double().cpu().flatten().tolist()
    return [float(value) for value in values]


class Picture:
    """A sheet to draw on. `alt` says in a sentence what it shows now, for those who cannot see it."""

    def __init__(self, alt: str, *, width: int = WIDTH, height: int = HEIGHT):
        self.alt, self.width, self.height = alt, width, height
        self.frames: list[dict[str, object]] = []
        self.body: list[str] = []

    def axes(
        self,
        x: tuple[float, float] = (0.0, 1.0),
        y: tuple[float, float] = (0.0, 1.0),
        *,
        box: tuple[float, float, float, float] | None = None,
        x_label: str = "",
        y_label: str = "",
        title: str = "",
        x_log: bool = False,
        y_log: bool = False,
        bare: bool = False,
        x_ticks: bool = True,
        y_ticks: bool = True,
        equal: bool = False,
    ) -> Axes:
        """A part of the sheet with coordinates.

        Args:
            box: left, top, width and height of the plotting area on the sheet; by default all of it less margins.
            bare: No axis lines and no numbers.
            x_ticks, y_ticks: Whether the axis has numbers; not where names stand in their place.
            equal: One unit is as long in x as in y; the shorter side keeps its range, the other one grows.
        """
        margin = 8 if bare else 56 if y_log and y_label else 46
        left, top, width, height = box or (
            margin,
            28 if title else 10,
            self.width - margin - 12,
            self.height - (8 if bare else 44) - (28 if title else 10),
        )
        if equal:
            unit = min(width / (x[1] - x[0]), height / (y[1] - y[0]))
            spare_x, spare_y = width / unit - (x[1] - x[0]), height / unit - (y[1] - y[0])
            x, y = (x[0] - spare_x / 2, x[1] + spare_x / 2), (y[0] - spare_y / 2, y[1] + spare_y / 2)
        axes = Axes(self, x, y, (left, top, width, height), x_log, y_log)
        self.frames.append(
            {"x": list(x), "y": list(y), "box": [left, top, width, height], "xlog": x_log, "ylog": y_log}
        )
        if title:
            self.body.append(f'<text class="title" x="{_at(left)}" y="{_at(top - 10)}">{escape(title)}</text>')
        if not bare:
            axes.rule(x_label, y_label, x_ticks, y_ticks)
        return axes

    def text(self, x: float, y: float, text: str, *, role: str = "ink", anchor: str = "start", size: int = 14) -> None:
        """A text at a place of the sheet itself."""
        self.body.append(
            f'<text x="{_at(x)}" y="{_at(y)}" text-anchor="{anchor}" font-size="{size}" '
            f'style="fill:{color_of(role)}">{escape(text)}</text>'
        )

    def svg(self) -> str:
        """The picture as one element that refers to nothing outside itself but the custom properties of the palette."""
        frames = escape(json.dumps(self.frames))
        return (
            f'<svg class="quoin" viewBox="0 0 {self.width} {self.height}" role="group" aria-label="{escape(self.alt)}" '
            f'data-frames="{frames}">{"".join(self.body)}</svg>'
        )


class Axes(Hands):
    """A part of a picture with coordinates; made by `Picture.axes`. Marks outside of it are cut off."""

    def __init__(
        self,
        picture: Picture,
        x: tuple[float, float],
        y: tuple[float, float],
        box: tuple[float, float, float, float],
        x_log: bool,
        y_log: bool,
    ):
        self.picture, self.x, self.y, self.box, self.x_log, self.y_log = picture, x, y, box, x_log, y_log
        self.number = len(picture.frames)

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where a point of these coordinates is on the sheet; what is far outside or not finite is put at the rim."""
        left, top, width, height = self.box
        return (
            left + width * self._part(x, self.x, self.x_log),
            top + height * (1 - self._part(y, self.y, self.y_log)),
        )

    @staticmethod
    def _part(value: float, span: tuple[float, float], log: bool) -> float:
        low, high = span
        if log:
            value, low, high = math.log10(max(value, 1e-300)), math.log10(low), math.log10(high)
        part = (value - low) / (high - low)
        return 0.0 if math.isnan(part) else min(max(part, -2.0), 3.0)

    def _add(self, element: str) -> None:
        left, top, width, height = self.box
        span = f"{_at(left - 6)} {_at(top - 6)} {_at(width + 12)} {_at(height + 12)}"
        x, y, w, h = span.split()
        # an svg inside of the svg cuts off what is outside of it, and needs no id that could stand twice in a page
        self.picture.body.append(f'<svg x="{x}" y="{y}" width="{w}" height="{h}" viewBox="{span}">{element}</svg>')

    def rule(self, x_label: str = "", y_label: str = "", x_ticks: bool = True, y_ticks: bool = True) -> None:
        """The lines and numbers of the axes."""
        left, top, width, height = self.box
        bottom, parts = top + height, []
        for value, label in ticks(*self.x, self.x_log, max(2, int(width // 80))) if x_ticks else ():
            at = self.place(value, self.y[0])[0]
            inside = _at(kept_inside(at, label, "middle", 12, self.picture.width))
            parts.append(f'<path class="grid" d="M{_at(at)} {_at(top)}V{_at(bottom)}"/>')
            parts.append(f'<text class="tick" x="{inside}" y="{_at(bottom + 16)}" text-anchor="middle">{label}</text>')
        marks = ticks(*self.y, self.y_log, max(2, int(height // 50))) if y_ticks else []
        for value, label in marks:
            at = self.place(self.x[0], value)[1]
            parts.append(f'<path class="grid" d="M{_at(left)} {_at(at)}H{_at(left + width)}"/>')
            parts.append(f'<text class="tick" x="{_at(left - 6)}" y="{_at(at + 4)}" text-anchor="end">{label}</text>')
        parts.append(f'<path class="axis" d="M{_at(left)} {_at(top)}V{_at(bottom)}H{_at(left + width)}"/>')
        if x_label:
            parts.append(
                f'<text class="label" x="{_at(left + width / 2)}" y="{_at(bottom + 34)}" text-anchor="middle">'
                f"{escape(x_label)}</text>"
            )
        if y_label:
            taken = max((text_width(label, 12) for _, label in marks), default=0.0)
            at = max(min(left - 34, left - 13 - taken), 13)  # beside the widest number
            parts.append(
                f'<text class="label" text-anchor="middle" '
                f'transform="translate({_at(at)} {_at(top + height / 2)}) rotate(-90)">'
                f"{escape(y_label)}</text>"
            )
        self.picture.body.append("".join(parts))

    def line(
        self, x: Numbers, y: Numbers, role: str = "model", *, width: float = 2.2, dashed: bool = False, label: str = ""
    ) -> None:
        """A line through the points; where a number is not finite it is broken. "printed" is always dashed."""
        pieces, pen = [], "M"
        for a, b in zip(_list(x), _list(y), strict=True):
            if math.isfinite(a) and math.isfinite(b):
                at = self.place(a, b)
                pieces.append(f"{pen}{_at(at[0])} {_at(at[1])}")
                pen = "L"
            else:
                pen = "M"
        dash = ' stroke-dasharray="7 5"' if dashed or role.startswith("printed") else ""
        self._add(
            f'<path d="{"".join(pieces)}" fill="none" stroke-width="{width:g}"{dash} stroke-linejoin="round" '
            f'style="stroke:{color_of(role)}">{_title(label)}</path>'
        )

    def curve(self, points: torch.Tensor, role: str = "model", *, width: float = 2.2, dashed: bool = False) -> None:
        """A line through points that are the rows of a table of two columns."""
        self.line(points[:, 0], points[:, 1], role, width=width, dashed=dashed)

    def arrow(
        self, start: Sequence[float], end: Sequence[float], role: str = "change", *, width: float = 2.2, label: str = ""
    ) -> None:
        """An arrow from `start` to `end`."""
        (x0, y0), (x1, y1) = self.place(*start), self.place(*end)
        length = math.hypot(x1 - x0, y1 - y0)
        if length < 1e-6:
            return
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        tip = min(9.0, length)
        wings = [(x1 - tip * ux + side * 0.5 * tip * uy, y1 - tip * uy - side * 0.5 * tip * ux) for side in (1, -1)]
        head = " ".join(f"{_at(a)},{_at(b)}" for a, b in [(x1, y1), *wings])
        shaft = f"M{_at(x0)} {_at(y0)}L{_at(x1 - 0.7 * tip * ux)} {_at(y1 - 0.7 * tip * uy)}"
        dash = ' stroke-dasharray="7 5"' if role == "printed" else ""
        self._add(
            f'<g style="stroke:{color_of(role)};fill:{color_of(role)}">'
            f'<path d="{shaft}" stroke-width="{width:g}"{dash}/>'
            f'<polygon points="{head}" stroke="none"/>{_title(label)}</g>'
        )

    def points(
        self,
        x: Numbers,
        y: Numbers,
        role: str = "ink",
        *,
        size: float = 4.0,
        shape: str = "circle",
        labels: Sequence[str] = (),
    ) -> None:
        """Points of one kind; classes differ by shape too. `labels` are shown where one is hovered over."""
        drawn = []
        for index, (a, b) in enumerate(zip(_list(x), _list(y), strict=True)):
            if math.isfinite(a) and math.isfinite(b):
                label = labels[index] if index < len(labels) else ""
                drawn.append(mark(shape, *self.place(a, b), size, _title(label)))
        hollow = f"fill:var(--paper);stroke:{color_of(role)};stroke-width:2"
        style = hollow if shape == "ring" else f"fill:{color_of(role)};stroke:var(--paper);stroke-width:0.8"
        self._add(f'<g style="{style}">{"".join(drawn)}</g>')

    def polygon(
        self, corners: Iterable[Sequence[float]], fill: str = "model 20%", *, edge: str = "paper", label: str = ""
    ) -> None:
        """A filled area; `polygons` is for many."""
        self.polygons([corners], [fill], edge=edge, labels=[label])

    def polygons(
        self,
        areas: Iterable[Iterable[Sequence[float]]],
        fills: Sequence[str],
        *,
        edge: str = "paper",
        labels: Sequence[str] = (),
    ) -> None:
        """Filled areas, each in its colour."""
        parts = []
        for index, (corners, fill) in enumerate(zip(areas, fills, strict=True)):
            at = " ".join(f"{_at(a)},{_at(b)}" for a, b in (self.place(*map(float, corner)) for corner in corners))
            label = labels[index] if index < len(labels) else ""
            parts.append(f'<polygon points="{at}" style="fill:{color_of(fill)}">{_title(label)}</polygon>')
        self._add(f'<g style="stroke:{color_of(edge)};stroke-width:0.8">{"".join(parts)}</g>')

    def circle(self, center: Sequence[float], radius: float, role: str = "ink", *, fill: str = "none") -> None:
        """A circle whose radius is in units of x."""
        (x, y), (rim, _) = self.place(*center), self.place(center[0] + radius, center[1])
        self._add(
            f'<ellipse cx="{_at(x)}" cy="{_at(y)}" rx="{_at(abs(rim - x))}" '
            f'ry="{_at(abs(self.place(center[0], center[1] + radius)[1] - y))}" stroke-width="1.6" '
            f'style="fill:{color_of(fill)};stroke:{color_of(role)}"/>'
        )

    def bars(
        self,
        values: Numbers,
        role: str = "model",
        *,
        positions: Numbers | None = None,
        width: float = 0.8,
        base: float = 0.0,
        labels: Sequence[str] = (),
        names: Sequence[str] = (),
    ) -> None:
        """Upright bars at `positions` (by default 0, 1, 2, ...), `width` wide in units of x.

        Args:
            labels: Shown where a bar is hovered over.
            names: Written under the bars.
        """
        heights = _list(values)
        places = range(len(heights)) if positions is None else _list(positions)
        for index, (at, value) in enumerate(zip(places, heights, strict=True)):
            left, top = self.place(at - width / 2, max(value, base))
            right, bottom = self.place(at + width / 2, min(value, base))
            label = labels[index] if index < len(labels) else digits(value)
            dash = f";stroke:{color_of('printed')};stroke-dasharray:5 4;fill-opacity:.35" if role == "printed" else ""
            self._add(
                f'<rect x="{_at(left)}" y="{_at(top)}" width="{_at(max(right - left, 0.5))}" '
                f'height="{_at(max(bottom - top, 0.5))}" rx="1.5" '
                f'style="fill:{color_of(role)}{dash}">{_title(label)}</rect>'
            )
            if index < len(names):
                x, y = self.place(at, self.y[0])
                self.picture.body.append(
                    f'<text class="tick" x="{_at(x)}" y="{_at(y + 16)}" text-anchor="middle">'
                    f"{escape(names[index])}</text>"
                )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        role: str = "ink",
        *,
        anchor: str = "start",
        size: int = 13,
        dy: float = 0.0,
    ) -> None:
        """A text at a point, `dy` units of the sheet below it; a rim of paper keeps it readable on any ground."""
        a, b = self.place(x, y)
        a = kept_inside(a, text, anchor, size, self.picture.width)  # at a point that a hand drags to the rim
        b = min(max(b, size - dy), self.picture.height - 4 - dy)
        self.picture.body.append(
            f'<text class="over" x="{_at(a)}" y="{_at(b + dy)}" text-anchor="{anchor}" font-size="{size}" '
            f'style="fill:{color_of(role)}">{escape(text)}</text>'
        )

    def cells(
        self,
        values: Sequence[Sequence[float]] | torch.Tensor | np.ndarray,
        *,
        role: str = "model",
        negative: str = "change",
        most: float | None = None,
        numbers: bool = False,
        words: Sequence[Sequence[str]] = (),
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
    ) -> None:
        """A table of amounts as tinted cells over the whole axes: zero is paper, `most` the full colour, what is
        negative the other one. For tables of some hundred cells; `image` is for larger ones.

        Args:
            numbers, words: What is written in the cells: their numbers, or the words of another table.
        """
        table = [_list(row) for row in values]
        finite = [abs(value) for row in table for value in row if math.isfinite(value)]
        counts = all(value == int(value) for value in finite)
        most = most or max(finite, default=1.0) or 1.0
        left, top, width, height = self.box
        down, across = height / len(table), width / max(len(table[0]), 1)
        parts = []
        for i, row in enumerate(table):
            for j, value in enumerate(row):
                part = min(abs(value) / most, 1.0) if math.isfinite(value) else 0.0
                color = color_of(f"{role if value >= 0 else negative} {100 * part:.0f}%")
                x, y = left + j * across, top + i * down
                where = " ".join([*(rows[i : i + 1] or [f"row {i + 1}"]), *(columns[j : j + 1] or [f"column {j + 1}"])])
                parts.append(
                    f'<rect x="{_at(x)}" y="{_at(y)}" width="{_at(across)}" height="{_at(down)}" '
                    f'style="fill:{color};stroke:var(--grid)">{_title(f"{where}: {digits(value)}")}</rect>'
                )
                if numbers or words:
                    number = digits(int(value) if counts and math.isfinite(value) else value, 2)
                    shown = words[i][j] if words else number
                    size = min(13.0, 13.0 * (across - 3) / text_width(shown, 13))
                    kind = words_on(role if value >= 0 else negative, round(part, 2))
                    parts.append(
                        f'<text class="{kind}" x="{_at(x + across / 2)}" y="{_at(y + down / 2 + size / 3)}" '
                        f'text-anchor="middle" font-size="{_at(size)}">{escape(shown)}</text>'
                    )
        for i, name in enumerate(rows):
            parts.append(
                f'<text class="tick" x="{_at(left - 6)}" y="{_at(top + (i + 0.5) * down + 4)}" text-anchor="end">'
                f"{escape(name)}</text>"
            )
        for j, name in enumerate(columns):
            parts.append(
                f'<text class="tick" x="{_at(left + (j + 0.5) * across)}" y="{_at(top + height + 16)}" '
                f'text-anchor="middle">{escape(name)}</text>'
            )
        self.picture.body.append("".join(parts))

    def image(self, colors: torch.Tensor | np.ndarray, *, smooth: bool = False, turns: bool = True) -> None:
        """An image over the whole axes, of (rows, columns) from 0, paper, to 1, ink, or (rows, columns, 3) of colours
        as they are on light paper; dark mode turns it over, unless it is a photograph, which never `turns`."""
        from PIL import Image

        values = colors.detach().cpu().numpy() if isinstance(colors, torch.Tensor) else np.asarray(colors)
        values = 1 - values if values.ndim == 2 else values
        file = io.BytesIO()
        Image.fromarray((np.clip(np.nan_to_num(values), 0, 1) * 255).astype(np.uint8)).save(file, "png")
        data = base64.b64encode(file.getvalue()).decode("ascii")
        left, top, width, height = self.box
        kind = "turns" if turns else "photograph"
        self.picture.body.append(
            f'<image class="{kind}" x="{_at(left)}" y="{_at(top)}" width="{_at(width)}" height="{_at(height)}" '
            f'preserveAspectRatio="none" style="image-rendering:{"auto" if smooth else "pixelated"}" '
            f'href="data:image/png;base64,{data}"/>'
        )
