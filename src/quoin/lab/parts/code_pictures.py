"""Pictures of codes and information: the tree of a prefix code, characters as wide as their bits, intervals inside of
intervals, a joint table and its overlapping entropies, two
distributions and what each bar adds to their KL."""

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.info import PrefixCode
from quoin.lab.parts.bumps import GRID
from quoin.lab.parts.picture import Axes, Picture
from quoin.lab.parts.ticks import digits

__all__ = [
    "draw_bumps",
    "draw_density_entropies",
    "draw_intervals",
    "draw_joint",
    "draw_overlap",
    "draw_strips",
    "draw_tree",
    "draw_weights",
]


def draw_tree(
    picture: Picture,
    code: PrefixCode,
    names: Sequence[str],
    notes: Sequence[tuple[str, str]],
    box: tuple[float, float, float, float],
) -> None:
    """The tree of a code, 0 to the left and 1 to the right, and under each leaf its name, its word, and a note with
    its role."""
    words = {word: index for index, word in enumerate(code.codewords) if word is not None}
    places = {word: float(at) for at, word in enumerate(sorted(words))}
    longest = max(map(len, words))
    for length in range(longest, 0, -1):  # a node stands over the middle of its children
        for word in {word[:length] for word in words if len(word) >= length} - set(words):
            below = [places[word + bit] for bit in "01" if word + bit in places]
            places[word] = sum(below) / len(below)
    top = [places[bit] for bit in "01" if bit in places]
    if "" not in places:
        places[""] = sum(top) / len(top)
    axes = picture.axes((-0.5, len(words) - 0.5), (-longest, 0), box=box, bare=True)
    for word, at in places.items():
        if word:
            axes.line([places[word[:-1]], at], [1 - len(word), -len(word)], "faint", width=1.6)
            middle = (places[word[:-1]] + at) / 2
            axes.text(middle, 0.5 - len(word), word[-1], "faint", anchor="middle", size=11, dy=3)
    for word, index in words.items():
        note, role = notes[index]
        axes.points([places[word]], [-len(word)], role, size=5)
        for line, (text, color) in enumerate(((names[index], "ink"), (word, "ink"), (note, role))):
            axes.text(places[word], -longest, text, color, anchor="middle", size=12, dy=20 + 15 * line)
        axes.line([places[word], places[word]], [-len(word), -longest - 0.2], "grid", width=1, dashed=True)


def draw_strips(
    picture: Picture, text: str, rows: Mapping[str, Sequence[float]], totals: Mapping[str, str], roles: Sequence[str]
) -> None:
    """Under each other the rows: the characters of `text`, each as wide as its bits."""
    most = max(max(sum(row) for row in rows.values()), 1.0)
    height = (picture.height - 40) / len(rows)
    for number, ((name, row), role) in enumerate(zip(rows.items(), roles)):
        box = (14.0, 34 + number * height, 612.0, height - 44)
        axes = picture.axes((0, most), (0, 1), box=box, bare=True, title=f"{name}: {totals[name]}")
        left = 0.0
        areas, fills, labels = [], [], []
        for index, (letter, bits) in enumerate(zip(text, row)):
            areas.append([(left, 0), (left + bits, 0), (left + bits, 1), (left, 1)])
            fills.append(f"{role} {45 if index % 2 else 25}%")
            labels.append(f"{letter}: {bits:.3g} bits")
            left += bits
        axes.polygons(areas, fills, labels=labels)
        left = 0.0
        for letter, bits in zip(text, row):
            if bits / most * 612 > 8:
                axes.text(left + bits / 2, 0.5, letter if letter.strip() else "␣", anchor="middle", size=13, dy=4)
            left += bits


def draw_intervals(
    picture: Picture, levels: Sequence[Sequence[float]], chosen: Sequence[int], letters: Sequence[str], first: int
) -> None:
    """Intervals under each other, each the chosen part of the one above, drawn to full width.

    Args:
        levels: For each interval the probabilities of its parts.
        chosen: Which part is taken; none for the last one.
        first: The number of the first interval, from 1.
    """
    height = (picture.height - 20) / max(len(levels), 3)
    for number, parts in enumerate(levels):
        box = (70.0, 14 + number * height, 550.0, min(height - 26, 46))
        axes = picture.axes((0, 1), (0, 1), box=box, bare=True)
        picture.text(8, box[1] + box[3] / 2 + 4, f"letter {first + number}", role="faint", size=12)
        left = 0.0
        for index, part in enumerate(parts):
            taken = number < len(chosen) and chosen[number] == index
            fill = "hand 55%" if taken else f"faint {22 if index % 2 else 12}%"
            corners = [(left, 0), (left + part, 0), (left + part, 1), (left, 1)]
            axes.polygon(corners, fill, label=f"{letters[index]}: {part:.3g} of this interval")
            if part > 0.02:
                letter = letters[index] if letters[index].strip() else "␣"
                axes.text(left + part / 2, 0.5, letter, anchor="middle", size=14, dy=5)
            if taken and number + 1 < len(levels):
                below = picture.axes((0, 1), (0, 1), box=(70, box[1] + box[3], 550, height - box[3]), bare=True)
                below.line([left, 0], [1, 0], "hand", width=1.2)
                below.line([left + part, 1], [1, 0], "hand", width=1.2)
            left += part


def draw_weights(picture: Picture, weights: Sequence[Sequence[float]], symbols: str) -> None:
    """Bars of weights to drag (control "weights"), each with its share of all."""
    heights = [height for _, height in weights]
    bars = picture.axes((-0.6, 7.6), (0, 33), box=(46, 14, 584, 120), x_ticks=False, y_label="weight")
    bars.bars(heights, "hand 35%", names=list(symbols), labels=[digits(each / sum(heights)) for each in heights])
    for place, height in enumerate(heights):
        bars.text(place, height, digits(height, 2), "hand", anchor="middle", size=12, dy=-12)
    bars.points_to_drag("weights", weights, label="weight", along="y")


def draw_joint(picture: Picture, levels: Sequence[int], joint: Float[Tensor, "3 3"]) -> None:
    """A joint table of three times three to paint (control "table"), with its probabilities."""
    cells = picture.axes((0, 3), (0, 3), box=(40, 52, 230, 230), bare=True)
    cells.paint("table", levels, 3, 3, roles=("paper", "hand 15%", "hand 30%", "hand 45%", "hand 60%"))
    for row in range(3):
        for column in range(3):
            cells.text(column + 0.5, 2.5 - row, digits(float(joint[row, column])), anchor="middle", size=15, dy=5)
    picture.text(155, 22, "p(x, y)", anchor="middle")
    for place in range(3):
        picture.text(78 + 77 * place, 44, f"y{place + 1}", anchor="middle", role="faint")
        picture.text(32, 95 + 77 * place, f"x{place + 1}", anchor="end", role="faint")


def draw_overlap(picture: Picture, h_x: float, h_y: float, shared: float, printed: float | None) -> None:
    """H(X) and H(Y) as bars that overlap by what X and Y share, and that as a bar of its own."""
    left = h_x - shared
    rows = [("H(X)", 0.0, h_x, "model 45%"), ("H(Y)", left, left + h_y, "hidden 55%"), ("I(X; Y)", left, h_x, "model")]
    rows += [] if printed is None else [("I, as printed", left, left + printed, "printed 40%")]
    bars = picture.axes((0, 3.4), (0, 4), box=(310, 40, 316, 250), x_label="bits", y_ticks=False)
    for place, (name, low, high, fill) in enumerate(rows):
        y = 3.05 - place
        bars.polygon([(low, y), (high, y), (high, y + 0.5), (low, y + 0.5)], fill, edge=fill.split()[0])
        bars.text(0.04, y + 0.64, f"{name} = {digits(high - low)}", size=12)
    for x in (left, h_x):
        bars.line([x, x], [0, 4], "faint", width=1, dashed=True)


def draw_density_entropies(picture: Picture, h_x: float, h_y: float, h_xy: float) -> None:
    """Differential entropies in bits of a pair on the unit square: none is above 0, and the pair's is the least."""
    bars = picture.axes((-3.4, 0.2), (0, 4), box=(310, 40, 316, 250), x_label="bits, as densities", y_ticks=False)
    rows = [("h(X)", h_x, "model 45%"), ("h(Y)", h_y, "hidden 55%"), ("h(X, Y)", h_xy, "model")]
    for place, (name, value, fill) in enumerate(rows):
        y = 2.8 - 1.2 * place
        bars.polygon([(value, y), (0, y), (0, y + 0.5), (value, y + 0.5)], fill, edge=fill.split()[0])
        bars.text(-3.36, y + 0.64, f"{name} = {digits(value)}", size=12)
    least = max(h_x, h_y)
    bars.line([least, least], [0, 4], "printed", dashed=True, label="the printed lower bound of h(X, Y)")


def draw_bumps(picture: Picture, p: Float[Tensor, "n"], q: Float[Tensor, "n"]) -> Axes:
    """P in grey and Q in blue over the grid, below what each bar adds to the two divergences; given back are axes over
    the upper picture whose height is a deviation."""
    top = picture.axes((-6.8, 6.8), (0, 0.45), box=(50, 30, 580, 190), y_ticks=False, title="P in grey, Q in blue")
    top.bars(p, "faint 45%", positions=GRID, width=0.46)
    top.bars(q, "model", positions=GRID, width=0.22)
    ratio = (q / p).log2()
    below = picture.axes((-6.8, 6.8), (-0.6, 1.4), box=(50, 268, 580, 120), title="what each bar adds, in bits")
    below.line(GRID, torch.where(q > 0, -p * ratio, math.inf), "faint", width=3)
    below.line(GRID, torch.where(q > 0, q * ratio, 0.0), "model")
    below.text(6.8, 1.1, "p log p/q", "faint", anchor="end")
    below.text(6.8, 0.75, "q log q/p", "model", anchor="end")
    return picture.axes((-6.8, 6.8), (0, 4.4), box=top.box, bare=True)
