"""Small pieces of SVG: the shapes of points, titles that a hover shows, colours by their roles."""

import html

__all__ = ["SHAPES", "color_of", "escape", "mark", "number", "title"]

SHAPES = ("circle", "square", "triangle", "diamond", "cross", "ring")


def escape(text: object) -> str:
    """A text from anywhere, for the inside of a page."""
    return html.escape(str(text), quote=True)


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
