"""Pictures of attention weights: of a mask, of a window on a line, of a translation, of every head."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from quoin.inspect import AttentionMaps
from quoin.lab.parts.picture import Picture
from quoin.lab.parts.text_models import Alignment
from quoin.lab.parts.ticks import digits

__all__ = ["draw_alignment", "draw_heads", "draw_masked", "draw_window", "head_names"]


def draw_alignment(picture: Picture, said: Alignment, row: int) -> None:
    """Threads from the token `row` of the target to the source, as thick as the weights, and below all weights."""
    n, m = len(said.source), len(said.target)
    across, down = 600 / max(n, 12), 600 / max(m, 12)
    axes = picture.axes((0, 600), (0, 150), box=(20, 14, 600, 150), bare=True)
    for place, (name, weight) in enumerate(zip(said.source, said.weights[row].tolist())):
        ends = [(row + 0.5) * down, (place + 0.5) * across]
        axes.line(ends, [20, 124], "model", width=0.3 + 9 * weight, label=f"{name}: {weight:.2f}")
        axes.text(ends[1], 136, name, "ink", anchor="middle", size=12 if len(name) > 1 else 18)
    for place, name in enumerate(said.target):
        role, size = "hand" if place == row else "model", 12 if len(name) > 1 else 18
        axes.text((place + 0.5) * down, 0, name, role, anchor="middle", size=size)
    table = picture.axes((0, n), (0, m), box=(60, 186, 560, 210), bare=True)
    table.cells(said.weights, most=1.0, rows=said.target, columns=said.source)
    table.line([0, n, n, 0, 0], [m - row, m - row, m - row - 1, m - row - 1, m - row], "hand", width=2)


def head_names(maps: Sequence[AttentionMaps]) -> list[str]:
    """Layer and head, counted from 1, in the order of the maps."""
    return [f"layer {i + 1}, head {j + 1}" for i, each in enumerate(maps) for j in range(len(each.weights))]


def draw_heads(
    picture: Picture, heads: Float[Tensor, "heads seq seq"], names: Sequence[str], tokens: Sequence[str], row: int
) -> None:
    """What every head reads at the token `row`, and below the whole map of each; the sheet grows as it needs."""
    n, shown = len(tokens), ["␣" if token == " " else token for token in tokens]
    table = picture.axes((0, n), (0, 1), box=(108, 10, 524, 22 * len(heads)), bare=True)
    table.cells(heads[:, row], most=1.0, rows=names, columns=shown)
    table.line([row + 0.5, row + 0.5], [-0.2, 1], "hand", width=1)
    top, size = 22 * len(heads) + 66, 138
    for number, weights in enumerate(heads):
        box = (20 + (number % 4) * (size + 16), top + (number // 4) * (size + 34), size, size)
        one = picture.axes((0, n), (0, n), box=box, bare=True, title=names[number])
        one.image(weights)
        one.line([0, n, n, 0, 0], [0, 0, n, n, 0], "faint", width=0.8)
        one.line([0, n], [n - row - 0.5, n - row - 0.5], "hand", width=1)
    picture.height = top + math.ceil(len(heads) / 4) * (size + 34)


def draw_masked(
    picture: Picture,
    words: Sequence[str],
    weights: Float[Tensor, "word word"],
    answers: Float[Tensor, " word"],
    wall_at: float,
    role: str,
) -> None:
    """Weights of the words over one another, the sums of their rows and their answers; the handle `wall` stands behind
    the words that may be seen."""
    n, length = len(words), round(wall_at)
    axes = picture.axes((0, n), (0, 1), box=(86, 60, 360, 310), bare=True)
    written = [["−10⁶" if weight < -1e5 else f"{weight:.2f}" for weight in row] for row in weights.tolist()]
    axes.cells(weights, role=role, most=1.0, words=written, rows=words)
    for column, word in enumerate(words):
        hidden = column >= length
        axes.text(column + 0.5, 0, word[:9], "faint" if hidden else "ink", anchor="middle", size=12, dy=16)
    picture.text(524, 50, "row sum", role="faint", size=13, anchor="end")
    picture.text(634, 50, "its answer", role="faint", size=13, anchor="end")
    for row in range(n):
        y, total = 60 + 310 * (row + 0.5) / n + 4, float(weights[row].sum())
        ink = "printed" if abs(total - 1) > 1e-3 else "ink"
        picture.text(524, y, digits(total), role=ink, anchor="end")
        picture.text(632, y, digits(float(answers[row])), role=ink, anchor="end")
    wall = picture.axes((0, n), (0, 1), box=(86, 18, 360, 24), bare=True)
    wall.line([0, length], [0.5, 0.5], "hand", width=3, label="may be seen")
    wall.text(length / 2, 0.5, "may be seen", "hand", anchor="middle", dy=-8)
    axes.line([length, length], [0, 1], "hand", width=3)
    wall.handle("wall", wall_at, 0.5, label="wall: the words before it may be seen", along="x")


def draw_window(
    picture: Picture,
    grid: Float[Tensor, " grid"],
    lines: tuple[Float[Tensor, " grid"], Float[Tensor, " grid"] | None],
    points: Sequence[Sequence[float]],
    weights: Float[Tensor, " point"],
    query: float,
    answer: float,
) -> None:
    """Points to drag, the regression through them (and as printed, if it is given), and below the weights that the
    handle `query` gives to each point. What is seen is joined to the answer."""
    right, printed = lines
    fit = picture.axes((0, 8), (-2, 3), box=(46, 14, 582, 270))
    window = picture.axes((0, 8), (0, 1), box=(46, 314, 582, 80), y_label="weight", x_ticks=False)
    fit.line(grid, right, "model", label="kernel regression")
    if printed is not None:
        fit.line(grid, printed, "printed", width=3, label="as printed")
    for point, weight in zip(points, weights.tolist()):
        if weight > 0 and math.isfinite(answer):
            fit.line([query, point[0]], [answer, point[1]], "model 55%", width=0.4 + 6 * weight)
    fit.line([query, query], [-2, 3], "hand", width=1)
    fit.points_to_drag("points", points)
    if math.isfinite(answer):
        fit.points([query], [answer], "model" if printed is None else "printed", size=7, shape="diamond")
    else:
        fit.text(query, -1.7, "0/0", "printed", anchor="middle", size=16)
    window.bars(weights, "model", positions=[point[0] for point in points], width=0.09)
    window.line([query, query], [0, 1], "hand", width=1)
    window.handle("query", query, 0.0, label="query", along="x")
