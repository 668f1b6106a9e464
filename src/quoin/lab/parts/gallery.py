"""The figures of the notes as a page shows them: drawn when they come into sight, changed by their own arguments."""

from __future__ import annotations

import base64
import functools
import inspect
from collections.abc import Mapping
from typing import Any

import traitlets

from quoin import notes
from quoin.errors import UserError, format_value
from quoin.lab.catalog import PAGES
from quoin.lab.parts.marks import escape
from quoin.lab.parts.widget import Asking
from quoin.notes.figures import Figure
from quoin.notes.figures import collect as collect_figures
from quoin.plot import Plot

__all__ = ["GalleryWidget", "parameters_of", "plot_with"]


def parameters_of(figure: Figure) -> dict[str, int | float]:
    """The numbers that a figure can be drawn with, and their defaults."""
    found = inspect.signature(figure.function).parameters.values()
    return {each.name: each.default for each in found if type(each.default) in (int, float)}


def plot_with(figure: Figure, given: Mapping[str, object]) -> Plot:
    """The figure drawn with other numbers; a name or number that it does not take is an error of one line."""
    known = parameters_of(figure)
    chosen: dict[str, int | float] = {}
    for name, value in given.items():
        if name not in known or isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UserError(f"expected numbers for {', '.join(known) or 'nothing'}, got {format_value(name)}")
        chosen[name] = round(value) if isinstance(known[name], int) else float(value)
    plot = figure.function(**chosen)
    plot.alt = figure.caption
    return plot


@functools.lru_cache(maxsize=128)
def _inline(figure: Figure) -> str:
    return figure.plot().inline()


class GalleryWidget(Asking):
    """Every figure, small; each opens large, with its arguments, its files and the line that draws it."""

    figures = traitlets.List().tag(sync=True)

    def __init__(self) -> None:
        super().__init__()
        self._figures = {figure.ids[0]: figure for figure in collect_figures()}
        areas = {entry.id: entry.area for entry in notes.entries()}
        pages = {area: page.name for page in PAGES.values() for area in page.areas}
        self.figures = [
            {
                "id": id,
                "caption": figure.caption,
                "page": f"../{pages[areas[id]]}/?item={id}" if areas[id] in pages else "../",
                "parameters": [
                    {"name": name, "value": value, "whole": isinstance(value, int)}
                    for name, value in parameters_of(figure).items()
                ],
                "code": _code(figure, {}),
            }
            for id, figure in self._figures.items()
        ]

    def _tell(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        figure = self._figures.get(str(asked.get("id")))
        given = asked.get("given")
        if figure is None or not isinstance(given, dict):
            return {"kind": "unknown"}
        try:
            match asked.get("kind"):
                case "figure":
                    html = plot_with(figure, given).inline() if given else _inline(figure)
                    return {"kind": "figure", "html": html, "code": _code(figure, given)}
                case "svg":
                    return {"kind": "svg", "data": plot_with(figure, given).data_uri()}
                case "png":
                    data = base64.b64encode(plot_with(figure, given).png()).decode("ascii")
                    return {"kind": "png", "data": f"data:image/png;base64,{data}"}
        except UserError as error:
            return {"kind": "figure", "error": str(error)}
        except (ValueError, RuntimeError, ArithmeticError, IndexError) as error:  # numbers that it was not written for
            return {"kind": "figure", "error": f"these numbers cannot be drawn ({escape(error)}); choose others"}
        return {"kind": "unknown"}


def _code(figure: Figure, given: Mapping[str, object]) -> str:
    name = figure.function.__name__
    arguments = ", ".join(f"{key}={value!r}" for key, value in given.items())
    return f"from quoin.notes import figures\n\nfigures.{name}({arguments})"
