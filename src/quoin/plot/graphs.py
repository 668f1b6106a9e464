"""Graphs: boxes in layers joined by arrows, what each box holds at a touch of the pointer, and a page with all of
it."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from quoin.display import shown
from quoin.errors import UserError
from quoin.plot.layered import layered
from quoin.plot.palette import LIGHT, css_variables
from quoin.plot.plots import INK, Plot, house_style, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Box", "GraphPlot", "graph"]

_MOST_BOXES = 500
_LINE, _PAD = 0.155, 0.09  # inches
_TITLE, _SMALL = 8.0, 7.0  # points
_GAP, _BETWEEN, _MARGIN = 0.22, 0.4, 0.12  # inches: between boxes of a layer, between layers, about it all
_ARROW = LIGHT.edge


@shown
@dataclass(frozen=True)
class Box:
    """A node as it is plotted: its title, a few lines under it, its colour, and details that the page and the pointer
    show.
    """

    title: str
    lines: tuple[str, ...] = ()
    color: str = LIGHT.paper
    details: tuple[tuple[str, str], ...] = ()


class GraphPlot(Plot):
    """A plot whose boxes show more when pointed at; as a page, with all the details of every box beside it."""

    def __init__(self, figure: "Figure", alt: str, boxes: Sequence[Box]):
        super().__init__(figure, alt)
        self._boxes = tuple(boxes)

    def svg(self) -> str:
        element = super().svg()
        # The words of a box must not stand between the pointer and the box.
        element = re.sub(r'<g (id="[^"]*words-\d+)', r'<g pointer-events="none" \1', element)

        def with_title(match: re.Match[str]) -> str:
            box = self._boxes[int(match[1])]
            text = "\n".join([box.title, *(f"{name}: {detail}" for name, detail in box.details)])
            return f"{match[0]}\n<title>{html.escape(text)}</title>"

        return re.sub(r'<g id="[^"]*box-(\d+)">', with_title, element)

    def html(self, title: str = "") -> str:
        """A page of its own: the plot, and beside it the details of each box, to which a click on it leads."""
        title = html.escape(title or self.alt or "Graph")
        svg = re.sub(
            r'(<g id="[^"]*box-(\d+)">)(.*?</g>)', r'<a href="#about-\2">\1\3</a>', self.inline(), flags=re.DOTALL
        )
        about = "\n".join(
            f'<section id="about-{number}"><h2>{number} {html.escape(box.title)}</h2><dl>'
            + "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in box.details)
            + "</dl></section>"
            for number, box in enumerate(self._boxes)
        )
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head><meta '
            'charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{title}</title>\n"
            f"<style>{css_variables()}\n{_CSS}</style></head>\n"
            f"<body>\n<main><h1>{title}</h1>\n{svg}</main>\n<aside>{about}</aside>\n</body>\n</html>\n"
        )


_CSS = (
    "body{margin:0;display:flex;height:100vh;font-family:sans-serif;color:var(--ink);background:var(--paper)}"
    "main{flex:1;overflow:auto;padding:0 1rem}h1{font-size:1.2rem}"
    "aside{width:26rem;max-width:45%;overflow:auto;padding:0 1rem;border-left:1px solid var(--grid)}"
    "h2{font-size:.95rem;margin:.8rem 0 .2rem}dl{margin:0;display:grid;grid-template-columns:5rem 1fr;font-size:.8rem}"
    "dt{color:var(--faint)}dd{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;font-family:monospace}"
    "section{padding:.1rem .5rem .5rem}section:target{background:var(--tint-4);border-radius:.3rem}"
    "svg a:hover path{stroke-width:2}svg a{cursor:pointer}"
)


def graph(boxes: Sequence[Box], edges: Sequence[tuple[int, int]], *, title: str = "") -> GraphPlot:
    """A directed acyclic graph from top to bottom: `edges` are (from, to) numbers of boxes."""
    if not boxes:
        raise UserError("expected at least one box, got none; a graph of nothing has no plot")
    if len(boxes) > _MOST_BOXES:
        raise UserError(f"expected at most {_MOST_BOXES} boxes to plot, got {len(boxes)}; plot a part of the graph")
    edges = list(dict.fromkeys(edges))
    widths = [_width(box) for box in boxes]
    layout = layered(widths, edges, _GAP)
    heights = [2 * _PAD + _LINE * (1 + len(box.lines)) for box in boxes]
    layers = 1 + max(layer for _, layer in layout.positions)
    tallest = [
        max((heights[i] for i, (_, layer) in enumerate(layout.positions) if layer == k), default=0.0)
        for k in range(layers)
    ]
    middle, y = [], 0.0
    for height in tallest:
        middle.append(y - height / 2)
        y -= height + _BETWEEN
    left = min(x - width / 2 for (x, _), width in zip(layout.positions, widths)) - _MARGIN
    right = max(x + width / 2 for (x, _), width in zip(layout.positions, widths)) + _MARGIN
    for route in layout.routes.values():  # an edge may pass outside all boxes
        left, right = min(left, *(x - _MARGIN for x, _ in route)), max(right, *(x + _MARGIN for x, _ in route))
    spare = max(0.0, 0.11 * len(title) - (right - left)) / 2
    left, right, bottom, top = left - spare, right + spare, y + _BETWEEN - _MARGIN, _MARGIN + (0.35 if title else 0.0)
    with house_style():
        from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
        from matplotlib.path import Path

        # Patches come by add_artist, as add_patch would measure each to choose limits, which stand.
        # One unit is one inch: boxes are as large as their words in a graph of any size.
        figure = new_figure(height=top - bottom, width=right - left)
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1), xlim=(left, right), ylim=(bottom, top))
        axes.set_axis_off()
        axes.text((left + right) / 2, top - 0.2, title, ha="center", va="center", fontsize=11, fontweight="bold")
        for (source, target), route in layout.routes.items():
            points = [(route[0][0], middle[route[0][1]] - heights[source] / 2)]
            for x, layer in route[1:-1]:  # straight down past the boxes of a layer, and aside only between layers
                points += [(x, middle[layer] + tallest[layer] / 2), (x, middle[layer] - tallest[layer] / 2)]
            points.append((route[-1][0], middle[route[-1][1]] + heights[target] / 2))
            style = {"arrowstyle": "-|>", "mutation_scale": 7, "shrinkA": 0, "shrinkB": 0}
            axes.add_artist(
                FancyArrowPatch(path=Path(*_curve(points, Path)), color=_ARROW, linewidth=0.9, zorder=1, **style)
            )
        for number, (box, (x, layer), width, height) in enumerate(zip(boxes, layout.positions, widths, heights)):
            corner = (x - width / 2, middle[layer] - height / 2)
            frame = FancyBboxPatch(
                corner, width, height, boxstyle="round,pad=0,rounding_size=0.06", linewidth=0.8, zorder=2
            )
            frame.set(facecolor=box.color, edgecolor=INK, gid=f"box-{number}")
            axes.add_artist(frame)
            for row, text in enumerate((box.title, *box.lines)):
                size, weight = (_TITLE, "bold") if row == 0 else (_SMALL, "normal")
                height_of_row = corner[1] + height - _PAD - _LINE * (row + 0.5)
                words = axes.text(
                    x, height_of_row, plain(text), ha="center", va="center", fontsize=size, fontweight=weight, zorder=3
                )
                words.set_gid(f"words-{number}-{row}")
        return GraphPlot(figure, title or f"graph of {len(boxes)} nodes", boxes)


def _width(box: Box) -> float:
    """Inches for the longest line, a character being about two thirds of its size wide."""
    title = len(box.title) * 0.72 * _TITLE
    small = max((len(line) for line in box.lines), default=0) * 0.64 * _SMALL
    return max(0.6, max(title, small) / 72 + 2 * _PAD)


def _curve(points: list[tuple[float, float]], path: type) -> tuple[list[tuple[float, float]], list[int]]:
    """A smooth way through the points that leaves and enters each straight downwards."""
    vertices, instructions = [points[0]], [path.MOVETO]
    for (x, y), (u, v) in pairwise(points):
        half = (y + v) / 2
        vertices += [(x, half), (u, half), (u, v)]
        instructions += [path.CURVE4] * 3
    return vertices, instructions
