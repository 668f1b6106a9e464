"""Small pictures as SVG inside HTML: bars, a curve, a Markov chain, a code's tree. They are drawn in the colour of the
text around them and so are seen on light and on dark pages; real plots are quoin.plot's."""

import html
import math
from collections.abc import Sequence
from typing import Any

from quoin.display.short import short
from quoin.display.tables import Markup, format_number

__all__ = ["bar_chart", "chain_graph", "code_tree", "line_chart"]

MOST_BARS = 24
MOST_STATES = 12
MOST_LEAVES = 32
_FILL = "color-mix(in srgb, currentColor 25%, transparent)"


def bar_chart(labels: Sequence[Any], values: Sequence[float], *, title: str = "") -> Markup:
    """A bar beside each label, as long as its value is of the largest; the first `MOST_BARS` of them."""
    shown = [
        (short(label) if not isinstance(label, str) else label, float(value)) for label, value in zip(labels, values)
    ]
    hidden = len(shown) - MOST_BARS
    shown = shown[:MOST_BARS]
    most = max((abs(value) for _, value in shown if math.isfinite(value)), default=0.0) or 1.0
    left = 10 + 7 * min(24, max((len(label) for label, _ in shown), default=0))
    parts = []
    for row, (label, value) in enumerate(shown):
        y = 20 * row
        length = 200 * min(1.0, abs(value) / most) if math.isfinite(value) else 0.0
        parts.append(_text(left - 6, y + 14, label[:24], "end"))
        parts.append(f'<rect x="{left}" y="{y + 3}" width="{length:.1f}" height="14" style="fill:{_FILL}"/>')
        parts.append(_text(left + length + 6, y + 14, format_number(value), "start"))
    if hidden > 0:
        parts.append(_text(left, 20 * len(shown) + 14, f"and {hidden} more", "start"))
    return _svg(left + 280, 20 * (len(shown) + (hidden > 0)) + 4, parts, title or "bars")


def line_chart(xs: Sequence[float], ys: Sequence[float], *, title: str = "") -> Markup:
    """One curve over its axis, from the least to the largest x; points that are not finite are left out."""
    points = [(float(x), float(y)) for x, y in zip(xs, ys) if math.isfinite(x) and math.isfinite(y)]
    if not points:
        return _svg(300, 30, [_text(10, 18, "no finite values", "start")], title or "curve")
    (left, right), (low, high) = ((min(each), max(each)) for each in zip(*points))
    low = min(low, 0.0) if high >= 0 else low
    across, up = (right - left) or 1.0, (high - low) or 1.0
    where = [(10 + 280 * (x - left) / across, 110 - 100 * (y - low) / up) for x, y in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in where)
    parts = [
        f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="1.5"/>',
        '<line x1="10" y1="110" x2="290" y2="110" stroke="currentColor" stroke-opacity="0.4"/>',
        _text(10, 126, format_number(0.0 if abs(left) < 1e-6 * across else left), "start"),
        _text(290, 126, format_number(right), "end"),
        _text(10, 14, format_number(high), "start"),
    ]
    return _svg(300, 132, parts, title or "curve")


def chain_graph(transition: Sequence[Sequence[float]], *, title: str = "") -> Markup:
    """The states of a Markov chain on a circle and an arrow for each step that can happen, the darker the more probable
    it is; up to `MOST_STATES` states."""
    count = len(transition)
    if count > MOST_STATES:
        return _svg(300, 30, [_text(10, 18, f"{count} states, too many to draw", "start")], title or "chain")
    radius, center = 50.0 + 6 * count, 110.0 + 6 * count
    angles = [2 * math.pi * index / count - math.pi / 2 for index in range(count)]
    spots = [(center + radius * math.cos(angle), center + radius * math.sin(angle)) for angle in angles]
    parts = [
        '<defs><marker id="quoin-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0,0 L8,4 L0,8 z" fill="currentColor"/></marker></defs>'
    ]
    for row, chances in enumerate(transition):
        for column, chance in enumerate(chances):
            if chance > 0:
                route = _loop(spots[row], angles[row]) if row == column else _arrow(spots[row], spots[column])
                ink = 0.25 + 0.75 * min(1.0, float(chance))
                note = html.escape(f"{row} to {column}: {format_number(float(chance))}")
                parts.append(
                    f'<g opacity="{ink:.2f}"><title>{note}</title><path d="{route.path}" fill="none" '
                    'stroke="currentColor" stroke-width="1.3" marker-end="url(#quoin-arrow)"/>'
                    f"{_text(*route.label, format_number(float(chance)), 'middle', 10) if count <= 6 else ''}</g>"
                )
    for index, (x, y) in enumerate(spots):
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="14" style="fill:{_FILL}" stroke="currentColor"/>'
            + _text(x, y + 4, str(index), "middle")
        )
    return _svg(2 * center, 2 * center, parts, title or f"a chain of {count} states")


def code_tree(codewords: Sequence[str | None], *, title: str = "") -> Markup:
    """The tree of a prefix code: left for 0, right for 1, a symbol's number at its leaf."""
    symbols = {word: symbol for symbol, word in enumerate(codewords) if word is not None}
    if len(symbols) > MOST_LEAVES:
        return _svg(300, 30, [_text(10, 18, f"{len(symbols)} symbols, too many to draw", "start")], title or "code")
    inner = {word[:end] for word in symbols for end in range(len(word))}
    leaves = sorted(symbols.keys() | ({node + bit for node in inner for bit in "01"} - inner))
    across = {word: 24.0 + 34 * index for index, word in enumerate(leaves)}
    parts = []
    for node in sorted(inner, key=lambda word: (-len(word), word)):
        across[node] = (across[node + "0"] + across[node + "1"]) / 2
        for bit in "01":
            child = node + bit
            dash = "" if child in inner or child in symbols else ' stroke-dasharray="2 3"'
            ends = across[node], 16 + 42 * len(node), across[child], 16 + 42 * len(child)
            parts.append(
                '<line x1="{:.1f}" y1="{}" x2="{:.1f}" y2="{}" stroke="currentColor" stroke-opacity="0.6"'.format(*ends)
                + f"{dash}/>"
                + _text((ends[0] + ends[2]) / 2 + (-7 if bit == "0" else 7), (ends[1] + ends[3]) / 2, bit, "middle", 10)
            )
    for word, symbol in symbols.items():
        x, y = across[word], 16 + 42 * len(word)
        parts.append(
            f'<g><title>{html.escape(word)}</title><circle cx="{x:.1f}" cy="{y}" r="13" style="fill:Canvas"/>'
            f'<circle cx="{x:.1f}" cy="{y}" r="13" style="fill:{_FILL}" stroke="currentColor"/>'
            + _text(x, y + 4, str(symbol), "middle")
            + "</g>"
        )
    deepest = max(map(len, symbols), default=0)
    return _svg(14 + 34 * len(leaves) + 10, 42 * deepest + 34, parts, title or f"a code of {len(symbols)} words")


class _Route:
    def __init__(self, path: str, label: tuple[float, float]) -> None:
        self.path, self.label = path, label


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> _Route:
    """A bow from one circle to the other, so that the way back is another line."""
    (x, y), (u, v) = start, end
    length = math.hypot(u - x, v - y)
    dx, dy = (u - x) / length, (v - y) / length
    middle = (x + u) / 2 - 18 * dy, (y + v) / 2 + 18 * dx
    into = math.atan2(v - middle[1], u - middle[0])
    out = math.atan2(middle[1] - y, middle[0] - x)
    path = (
        f"M{x + 15 * math.cos(out):.1f},{y + 15 * math.sin(out):.1f} Q{middle[0]:.1f},{middle[1]:.1f} "
        f"{u - 16 * math.cos(into):.1f},{v - 16 * math.sin(into):.1f}"
    )
    return _Route(path, ((x + u) / 2 - 17 * dy, (y + v) / 2 + 17 * dx + 3))


def _loop(at: tuple[float, float], angle: float) -> _Route:
    """From a state to itself, on the outer side."""
    x, y = at
    first, last = angle - 0.5, angle + 0.5
    path = (
        f"M{x + 15 * math.cos(first):.1f},{y + 15 * math.sin(first):.1f} "
        f"C{x + 44 * math.cos(angle - 0.6):.1f},{y + 44 * math.sin(angle - 0.6):.1f} "
        f"{x + 44 * math.cos(angle + 0.6):.1f},{y + 44 * math.sin(angle + 0.6):.1f} "
        f"{x + 16 * math.cos(last):.1f},{y + 16 * math.sin(last):.1f}"
    )
    return _Route(path, (x + 46 * math.cos(angle), y + 46 * math.sin(angle) + 3))


def _text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-family="sans-serif" '
        f'fill="currentColor">{html.escape(text)}</text>'
    )


def _svg(width: float, height: float, parts: Sequence[str], title: str) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'style="max-width:100%;height:auto"><title>{html.escape(title)}</title>{"".join(parts)}</svg>'
    )
