"""Pictures of texts: characters as dark as their bits, bars of the next character, beams as a tree,
curves by order and by lag."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxtyping import Float
from torch import Tensor

from quoin.generate import Beams
from quoin.lab.parts.picture import Picture

__all__ = [
    "draw_beams",
    "draw_characters",
    "draw_gradients",
    "draw_next",
    "draw_orders",
    "draw_trimmed",
    "shown",
]

PER_LINE = 40
MOST_BITS = 10.0  # the full colour
Prefix = tuple[int, ...]


def shown(character: str) -> str:
    """A character as one can see it."""
    return {" ": "␣", "\n": "⏎"}.get(character, character)


def draw_characters(picture: Picture, text: str, bits: Sequence[float], top: float = 34) -> float:
    """The text in lines, each character on a ground as dark as its bits; gives back where the last line ends."""
    width, height = 15.4, 26
    for start in range(0, len(text), PER_LINE):
        line, costs = text[start : start + PER_LINE], bits[start : start + PER_LINE]
        axes = picture.axes(box=(12, top, width * len(line), height), bare=True)
        axes.cells([costs], most=MOST_BITS, words=[[shown(character) for character in line]])
        top += height + 4
    return top


def draw_next(
    picture: Picture,
    box: tuple[float, float, float, float],
    title: str,
    probs: Float[Tensor, " vocab"],
    names: Sequence[str],
) -> None:
    """Bars of the eight most probable next characters."""
    best = probs.topk(min(8, len(probs)))
    axes = picture.axes((-0.6, 7.6), (0, 1), box=box, title=title, x_ticks=False)
    axes.bars(best.values, "model", names=[shown(names[int(index)]) for index in best.indices])


def _prefixes(level: Beams) -> list[Prefix]:
    """The beams that there are, the best first, each up to its end."""
    found = zip(level.tokens[0].tolist(), level.lengths[0].tolist(), level.log_probs[0].tolist())
    return [tuple(tokens[:length]) for tokens, length, log_prob in found if log_prob > -float("inf")]


def draw_beams(picture: Picture, levels: Sequence[Beams], name: Callable[[int], str]) -> None:
    """Every beam that was kept at some length, as a tree: what a later length dropped is pale, the best one is dark."""
    final = _prefixes(levels[-1])
    nodes = {prefix[:end] for level in levels for prefix in _prefixes(level) for end in range(len(prefix) + 1)}
    kept = {prefix[:end] for prefix in final for end in range(len(prefix) + 1)}
    best = {final[0][:end] for end in range(len(final[0]) + 1)}
    children: dict[Prefix, list[Prefix]] = {node: [] for node in nodes}
    for node in sorted(nodes - {()}):
        children[node[:-1]].append(node)
    heights: dict[Prefix, float] = {}

    def place(node: Prefix) -> float:
        below = [place(child) for child in children[node]]
        heights[node] = sum(below) / len(below) if below else sum(not children[each] for each in heights)
        return heights[node]

    place(())
    leaves = sum(not below for below in children.values())
    axes = picture.axes((-0.4, len(levels) + 0.6), (leaves - 0.3, -0.7), box=(8, 16, 624, 396), bare=True)
    for node in sorted(nodes - {()}, key=lambda each: (each in best, each in kept)):
        role = "model" if node in best else "model 55%" if node in kept else "faint 45%"
        ends = [len(node) - 1, len(node)]
        axes.line(ends, [heights[node[:-1]], heights[node]], role, width=3.5 if node in best else 1.6)
    size = 14 if leaves < 24 else 11
    for node in nodes - {()}:
        role = "ink" if node in kept else "faint"
        axes.text(len(node), heights[node], shown(name(node[-1])), role, anchor="middle", size=size, dy=4)


def draw_trimmed(
    picture: Picture, given: Float[Tensor, " vocab"], trimmed: Float[Tensor, " vocab"], names: Sequence[str], cut: float
) -> None:
    """The sixteen most probable next characters, before and after the cut of the handle `top_k`."""
    order = given.argsort(descending=True)[:16]
    places, letters = range(1, len(order) + 1), [shown(names[int(index)]) for index in order]
    axes = picture.axes((0.4, 16.6), (0, 1), box=(46, 16, 582, 220), y_label="probability", x_ticks=False)
    axes.bars(given[order], "faint 40%", positions=places, width=0.8)
    axes.bars(trimmed[order], "model", positions=places, width=0.5, names=letters)
    axes.line([round(cut) + 0.5, round(cut) + 0.5], [0, 1], "hand", width=2)
    axes.handle("top_k", cut, 0.9, label="top-k: so many may be sampled", along="x")
    picture.text(46, 282, "grey: as the model bets; blue: trimmed, and refilled to 1", role="faint", size=13)


def draw_gradients(
    picture: Picture,
    norms: Float[Tensor, " lag"],
    bound: Float[Tensor, " lag"],
    opened: Float[Tensor, " lag"] | None,
) -> None:
    """The gradient by lag under its bound, and that of an LSTM, if it is given."""
    lags = range(1, len(norms) + 1)
    axes = picture.axes(
        (1, len(norms)),
        (1e-19, 1e12),
        box=(78, 12, 548, 356),
        y_log=True,
        x_label="steps back",
        y_label="norm of the gradient",
    )
    axes.line([1, len(norms)], [1, 1], "faint", width=1, label="1")
    axes.line(lags, bound, "ink", dashed=True, width=1.5, label="bound")
    axes.line(lags, norms, "change", label="plain recurrent network")
    axes.text(len(norms), float(norms[-1]), "plain RNN", "change", anchor="end", dy=22 if norms[-1] > 1e-12 else -8)
    axes.text(40, float(bound[39]), "its bound", "ink", anchor="middle", dy=-10)
    if opened is not None:
        axes.line(lags, opened, "hidden", width=3, label="LSTM, forget gate open")
        axes.text(20, float(opened[19]), "LSTM", "hidden", anchor="middle", dy=-14)


def draw_orders(picture: Picture, bits: Sequence[tuple[float, float]], order: int, written: str) -> None:
    """Bits by order on the text counted and on the text held out, with the handle `order`, and what is written."""
    most = len(bits)
    axes = picture.axes((1, most), (0, 8), box=(46, 16, 582, 190), x_label="order n", y_label="bits a character")
    for number, (role, name) in enumerate((("faint", "counted"), ("model", "held out"))):
        axes.line(range(1, most + 1), [each[number] for each in bits], role, label=name)
        axes.points(range(1, most + 1), [each[number] for each in bits], role, size=3.5)
        axes.text(most, bits[-1][number], name, role, anchor="end", dy=-8)
    axes.handle("order", order, bits[order - 1][1], along="x", label="order n")
    picture.text(46, 270, "it writes:", role="faint", size=13)
    for line in range(0, len(written), PER_LINE):
        text = "".join("·" if each == " " else shown(each) for each in written[line : line + PER_LINE])
        picture.text(46, 294 + 24 * (line // PER_LINE), text, size=16)
