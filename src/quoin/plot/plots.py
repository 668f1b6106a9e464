"""A finished plot and the ways out of it: SVG, PNG, a page of its own. What is plotted is the other files' matter.

matplotlib is imported where it is used, so that importing this package costs nothing, and never through pyplot: no
global state, no display.
"""

from __future__ import annotations

import base64
import html
import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.plot.dark_png import turn_over_png
from quoin.plot.palette import LIGHT, amounts, cell_text, css_variables, signed
from quoin.plot.svg_style import PICTURE, adapt

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = ["FORMATS", "Panel", "Plot"]

WIDTH = 6.6  # inches, which a browser shows as 634 pixels
INK, FAINT, COLORS = LIGHT.ink, LIGHT.edge, LIGHT.series
LARGEST = 1e100
FORMATS = ("svg", "png", "html")

_STYLE: Any = {  # its keys are matplotlib's own, and typed as such there
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same glyphs on every machine
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": LIGHT.grid,
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    # small images stay themselves, pixel for pixel, and are not redrawn as one large one
    "image.composite_image": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "quoin",
    "mathtext.fontset": "dejavusans",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Everything here is plotted and written under one style, whatever the user's matplotlibrc."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        # A name in letters that the font lacks is shown as boxes; its words stand in the page's text. That is no news
        # for a terminal.
        warnings.filterwarnings(
            "ignore", r"Glyph \d+ .*missing from (current )?font|Matplotlib currently does not support"
        )
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


class Plot:
    """A finished plot, whose bytes depend on nothing but what is plotted. As SVG and as a page it follows the reader's
    choice of light or dark.

    Args:
        alt: A sentence for those who cannot see the plot: the title of the SVG.
        text: What is written in it, where a text is what it shows.
    """

    def __init__(self, figure: Figure, alt: str = "", text: str = ""):
        self.figure, self.alt, self.text = figure, alt, text
        with house_style():  # settle the layout once: writing must not move anything
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
        for image in self._pictures():
            image.set_url(PICTURE)

    def svg(self) -> str:
        """The plot as one `<svg>` element that refers to nothing outside itself."""
        written = self._written("svg", dpi=200).decode("utf-8")  # dpi matters only to images inside
        element = written[written.index("<svg") :]  # no XML prologue, no DOCTYPE with its address
        element = re.sub(r"\s*<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
        opening, rest = element.split(">", 1)
        return adapt(f'{opening} role="img">\n <title>{html.escape(self.alt)}</title>{rest}')

    def png(self, dpi: int = 150, dark: bool = False) -> bytes:
        """The plot as a PNG of `dpi` dots an inch, about a thousand pixels wide by default, on light or dark paper."""
        written = self._written("png", dpi)
        return turn_over_png(written, [self._extent(each, dpi) for each in self._pictures()]) if dark else written

    def html(self, title: str = "") -> str:
        """The plot as a page of its own."""
        title = html.escape(title or self.alt or "Plot")
        return (
            f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{css_variables()}\n'
            "body{margin:2rem auto;max-width:50rem;padding:0 "
            "1rem;font-family:system-ui,sans-serif;color:var(--ink);background:var(--paper)}"
            f"svg{{max-width:100%;height:auto}}</style></head>\n<body>\n<h1>{title}</h1>\n{self.inline()}\n</body>\n</html>\n"
        )

    def inline(self) -> str:
        """The SVG for the inside of a page, where HTML needs no namespaces."""
        return re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", self.svg())

    def data_uri(self) -> str:
        """The SVG as an address for `<img src=...>`."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg().encode("utf-8")).decode("ascii")

    def save(self, path: str | Path) -> Path:
        """Write the plot in the format that the name ends in: .svg, .png or .html."""
        path = Path(path)
        suffix = path.suffix.lower().removeprefix(".")
        if suffix not in FORMATS:
            raise UserError(
                f"expected a file name ending in .svg, .png or .html, got {format_value(path.name)}; change its ending"
            )
        content = {"svg": lambda: self.svg().encode(), "png": self.png, "html": lambda: self.html().encode()}[suffix]()
        try:
            path.write_bytes(content)
        except OSError as error:
            raise UserError(
                f"expected a path to write {format_value(str(path))}, got {error.strerror}; choose another"
            ) from error
        return path

    def __repr__(self) -> str:
        width, height = self.figure.get_size_inches()
        return f"{type(self).__name__}({width:.3g} × {height:.3g} inches, {format_value(self.alt, 120)})"

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_png_(self) -> bytes:
        return self.png()  # for notebooks on pages that show no SVG

    def figure_html(self, caption: str = "") -> str:
        """The picture in a `<figure>`, as an image of its own: its style touches nothing else on a page."""
        return (
            f'<figure style="margin:0"><img src="{self.data_uri()}" alt="{html.escape(self.alt)}" '
            f'style="max-width:100%"><figcaption>{html.escape(caption)}</figcaption></figure>'
        )

    def _pictures(self) -> list[AxesImage]:
        """Images that are shown as they are on any paper: photographs and digits, not amounts as colours."""
        images = [image for axes in self.figure.axes for image in axes.images]
        return [each for each in images if np.ndim(np.asarray(each.get_array())) == 3 or each.get_cmap().name == "gray"]

    def _extent(self, image: AxesImage, dpi: int) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of an image in a PNG of so many dots an inch."""
        from matplotlib.transforms import Bbox

        box = image.get_window_extent()
        if image.axes is not None:
            box = Bbox.intersection(box, image.axes.bbox) or box
        scale, height = dpi / self.figure.dpi, self.figure.bbox.height
        return box.x0 * scale, (height - box.y1) * scale, box.x1 * scale, (height - box.y0) * scale

    def _written(self, format: str, dpi: int) -> bytes:
        buffer = io.BytesIO()
        with house_style():
            metadata = {"Date": None} if format == "svg" else {"Software": None}
            self.figure.savefig(buffer, format=format, dpi=dpi, metadata=metadata)
        return buffer.getvalue()


@shown
@dataclass(frozen=True)
class Panel:
    """A plot in a report, with its heading and a sentence under it.

    Given as a function, it is plotted when it is first asked for: one that fails then costs its page this plot and no
    other.
    """

    title: str
    content: Plot | Callable[[], Plot]
    caption: str = ""

    @cached_property
    def plot(self) -> Plot:
        return self.content if isinstance(self.content, Plot) else self.content()

    def __repr__(self) -> str:
        return f"Panel({format_value(self.title)}, {format_value(self.caption, 100)})"

    def _repr_html_(self) -> str:
        return f"<div><strong>{html.escape(self.title)}</strong></div>\n{self.plot.figure_html(self.caption)}"


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure of the house's width; call under `house_style`."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08), facecolor="white")


def amount_map() -> Colormap:
    """Amounts as colours: paper for none, deep blue for the largest."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("amounts", amounts())


def signed_map() -> Colormap:
    """Signed numbers as colours: vermilion below zero, which is paper and in the middle, blue above."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("signed", signed())


def text_on(cell: object) -> str:
    """The colour for words on a cell of this colour, as a colour map gives it, on light and on dark paper."""
    from matplotlib.colors import to_hex

    red, green, blue = np.asarray(cell, dtype=float)[:3].tolist()
    return cell_text(to_hex((red, green, blue)))


def plain(text: object) -> str:
    """A text from outside this package, kept from being read as mathematics where it holds dollar signs."""
    return str(text).replace("$", r"\$")


def numbers(values: object, name: str, *ndim: int) -> np.ndarray:
    """`values` (a tensor on any device, an array or a list) as a float64 array with one of these counts of axes, not
    empty.

    What is larger than LARGEST counts as infinite: no axis could be as long.
    """
    array = values.detach().cpu().double().numpy() if isinstance(values, torch.Tensor) else values
    try:
        array = np.asarray(array, dtype=float)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"expected numbers for {name}, got {format_value(values)}; give a tensor, an array or a list"
        ) from error
    if array.ndim not in ndim or not array.size:
        axes = " or ".join(map(str, ndim))
        raise UserError(f"expected {name} with {axes} axes, not empty, got shape {array.shape}; reshape it")
    return np.where(np.abs(array) > LARGEST, np.copysign(np.inf, array), array)
