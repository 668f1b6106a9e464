"""Small pieces of SVG and HTML: the shapes of points, titles that a hover shows, colours by their roles, and words: how
wide they are, what colour stands out, indices and powers set low and high."""

import functools
import html
import re

from quoin.plot.palette import DARK, LIGHT, Palette, contrast

__all__ = [
    "SHAPES",
    "color_of",
    "escape",
    "kept_inside",
    "mark",
    "number",
    "scripts",
    "text_width",
    "title",
    "words_on",
]

SHAPES = ("circle", "square", "triangle", "diamond", "cross", "ring")
_NARROW = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹·.,"
# An index or a power: in braces or parentheses (which may hold one more pair), between angles, a word of one case or a
# number (of which a power may have a sign), or one sign; and before them what is code, in which _ is part of a name.
_SCRIPT = re.compile(
    r"`([^`]*)`|([A-Za-z]\w*(?:\.[A-Za-z]\w*)+)"
    r"|([_^])(?:\{((?:[^{}]|\{[^{}]*\})*)\}|\(((?:[^()]|\([^()]*\))*)\)"
    r"|(⟨[^⟩]*⟩|(?:(?<=\^)-)?(?:[a-zî]+|[A-Z]+|[0-9]+)|[^\s\w(){}]|[^\W_]))"
)


def escape(text: object) -> str:
    """A text from anywhere, for the inside of a page."""
    return html.escape(str(text), quote=True)


def scripts(text: str) -> str:
    """A line of the notes as HTML: what follows _ is set low, what follows ^ high, what is in backquotes is code.

    >>> scripts("e^{x_i} < X_iX_j")
    'e<sup>x<sub>i</sub></sup> &lt; X<sub>i</sub>X<sub>j</sub>'
    """
    parts, end = [], 0
    for found in _SCRIPT.finditer(text):
        quoted, dotted, sign, *inside = found.groups()
        tag = "code" if sign is None else "sub" if sign == "_" else "sup"
        shown = escape(quoted or dotted or "") if sign is None else scripts(next(filter(None, inside), ""))
        parts += [escape(text[end : found.start()]), f"<{tag}>", shown, f"</{tag}>"]
        end = found.end()
    return "".join([*parts, escape(text[end:])])


def number(value: float) -> str:
    """A place on the sheet, to a tenth of a unit."""
    return f"{value:.1f}".removesuffix(".0")


def color_of(role: str) -> str:
    """The CSS colour of a role, or of a mixture such as "model 40%" (the rest is paper)."""
    name, _, part = role.partition(" ")
    if name == "none":
        return "none"
    return f"color-mix(in srgb,var(--{name}) {part},var(--paper))" if part else f"var(--{name})"


def title(label: str) -> str:
    """What a hover shows."""
    return f"<title>{escape(label)}</title>" if label else ""


def mark(shape: str, x: float, y: float, size: float, inside: str = "") -> str:
    """A point of this shape at a place on the sheet."""
    if shape in ("circle", "ring"):
        return f'<circle cx="{number(x)}" cy="{number(y)}" r="{size:g}">{inside}</circle>'
    s = size * 1.1
    corners = {
        "square": [(-s, -s), (s, -s), (s, s), (-s, s)],
        "triangle": [(0, -1.25 * s), (1.15 * s, 0.85 * s), (-1.15 * s, 0.85 * s)],
        "diamond": [(0, -1.35 * s), (1.35 * s, 0), (0, 1.35 * s), (-1.35 * s, 0)],
        "cross": [
            *((-s, -0.4 * s), (-0.4 * s, -s), (0, -0.45 * s), (0.4 * s, -s), (s, -0.4 * s), (0.45 * s, 0)),
            *((s, 0.4 * s), (0.4 * s, s), (0, 0.45 * s), (-0.4 * s, s), (-s, 0.4 * s), (-0.45 * s, 0)),
        ],
    }[shape]
    return f'<polygon points="{" ".join(f"{number(x + a)},{number(y + b)}" for a, b in corners)}">{inside}</polygon>'


def text_width(text: str, size: float) -> float:
    """About how wide a text is, on the wide side: a digit is 0.64 of the size, a raised one 0.42."""
    return size * sum(0.42 if each in _NARROW else 0.64 for each in text)


def kept_inside(x: float, text: str, anchor: str, size: float, width: float) -> float:
    """Where to put a text so that it stays on a sheet of this width, as near to `x` as can be."""
    before = {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * text_width(text, size)
    after = text_width(text, size) - before
    return max(min(x, width - 2 - after), 2 + before)


@functools.cache
def words_on(role: str, part: float) -> str:
    """The class of words on a cell that is `part` of the role's colour and the rest paper: black or white, whichever
    stands out more (4.5:1 at least), on light paper and by a choice of its own on dark; the style sheet knows them."""
    return f"words-{_black_or_white(LIGHT, role, part)}-{_black_or_white(DARK, role, part)}"


def _black_or_white(palette: Palette, role: str, part: float) -> str:
    pairs = zip(_channels(palette, role), _channels(palette, "paper"))
    cell = "#" + "".join(f"{round(part * full + (1 - part) * paper):02x}" for full, paper in pairs)
    return "black" if contrast(cell, "#000000") > contrast(cell, "#ffffff") else "white"


def _channels(palette: Palette, role: str) -> list[int]:
    name, _, number = role.partition("-")
    color = palette.series[int(number) - 1] if name == "series" else getattr(palette, role)
    return [int(color[start : start + 2], 16) for start in (1, 3, 5)]
