"""A graph in a picture: boxes in layers from left to right, joined by arrows with a number on each.

The places are those of `quoin.plot.layered`; a large graph is drawn smaller. `traced_formula` is a formula's graph with
the derivative of each step by each of its inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from quoin.autodiff import Graph, trace, vjp
from quoin.autodiff.graph import Call, Ref
from quoin.lab.parts.formula import Formula
from quoin.lab.parts.marks import color_of, escape
from quoin.lab.parts.marks import number as _at
from quoin.lab.parts.marks import title as _title
from quoin.lab.parts.picture import Picture
from quoin.lab.parts.ticks import digits
from quoin.plot.layered import layered

__all__ = [
    "DrawnEdge",
    "DrawnNode",
    "Edge",
    "adjoint_of",
    "draw_graph",
    "draw_trace",
    "local_derivatives",
    "trace_formula",
]

_WIDTH, _HEIGHT, _GAP, _BETWEEN = 92.0, 58.0, 16.0, 66.0
SIGNS = {"add": "+", "sub": "−", "mul": "×", "div": "÷", "neg": "−", "pow": "^", "maximum": "max", "minimum": "min"}


@dataclass(frozen=True)
class Edge:
    """The use of a node as input number `slot` of another, and the derivative of the one by the other there."""

    source: int
    target: int
    slot: int
    derivative: float


def trace_formula(formula: Formula, values: Sequence[float]) -> Graph:
    """The graph of a formula at these values of its names, in float64; its first nodes are the names, in order."""
    given = [torch.tensor(value, dtype=torch.float64) for value in values]
    return trace(lambda *inputs: formula.of(dict(zip(formula.names, inputs))), *given)


def adjoint_of(graph: Graph, node: int) -> float:
    """The derivative of the output in a node of single numbers; 0 where the output does not depend on it."""
    adjoint = graph.nodes[node].adjoint
    return 0.0 if adjoint is None else float(adjoint)


def local_derivatives(graph: Graph) -> list[Edge]:
    """Of a graph of single numbers, each use of a value that the output depends on, by one `vjp` a step."""
    edges = []
    for step in graph.steps:
        sources = [each.node for each in step.args if isinstance(each, Ref)] if isinstance(step, Call) else []
        if not sources or not isinstance(step, Call):
            continue
        inputs = torch.stack([graph.nodes[source].value for source in sources])
        found = vjp(lambda rows, step=step: step.function(*rows.unbind()), inputs).product.tolist()
        edges += [Edge(source, step.outputs[0], slot, found[slot]) for slot, source in enumerate(sources)]
    return edges


def draw_trace(
    picture: Picture,
    graph: Graph,
    names: Sequence[str],
    shown: int,
    apart: int | None = None,
    *,
    box: tuple[float, float, float, float],
) -> None:
    """A formula's graph with its values, the adjoints of the last nodes, and the local derivatives on the edges.

    Args:
        shown: How many nodes before the output have their adjoint already.
        apart: An input named as another and `_hidden`, which is drawn as that one, its paths dashed.
    """
    edges = local_derivatives(graph)
    kept = sorted(({end for edge in edges for end in (edge.source, edge.target)} | set(graph.outputs)) - {apart})
    numbers = {node: number for number, node in enumerate(kept)}
    lit = set([node for node in reversed(kept) if graph.nodes[node].adjoint is not None][: shown + 1])
    if apart is not None:
        numbers[apart] = numbers[names.index(names[apart].removesuffix("_hidden"))]
    boxes = [_box(graph, index, names, index in lit) for index in kept]
    draw_graph(picture, boxes, [_arrow(graph, edge, numbers, lit, apart) for edge in edges], box=box)


def _box(graph: Graph, index: int, names: Sequence[str], is_lit: bool) -> DrawnNode:
    node, value = graph.nodes[index], digits(float(graph.nodes[index].value))
    if node.op == "full":
        return DrawnNode(value, label=f"the constant {value}")
    title, role, edge = (names[index], "hand", "hand") if node.op == "input" else (node.op, "model", "edge")
    lines, label = [(value, role)], f"{title}: value {value}"
    if is_lit and node.adjoint is not None:
        adjoint = digits(float(node.adjoint))
        lines, label = [*lines, (f"∂ {adjoint}", "change")], f"{label}, adjoint {adjoint}"
        edge = edge if node.op == "input" else "change"
    return DrawnNode(SIGNS.get(title, title), lines, edge, label=label)


def _arrow(graph: Graph, edge: Edge, numbers: dict[int, int], lit: set[int], apart: int | None) -> DrawnEdge:
    source, target = numbers[edge.source], numbers[edge.target]
    if graph.nodes[edge.source].op == "full":
        return DrawnEdge(source, target)
    if edge.source == apart:
        return DrawnEdge(source, target, "hidden", dashed=True)
    local = digits(edge.derivative)
    role = "change" if edge.target in lit else "faint"
    return DrawnEdge(source, target, f"×{local}", role, label=f"local derivative {local}")


@dataclass(frozen=True)
class DrawnNode:
    """A box: its title, then lines with their roles; `label` is what a hover shows."""

    title: str
    lines: Sequence[tuple[str, str]] = ()
    edge: str = "edge"
    fill: str = "raised"
    label: str = ""


@dataclass(frozen=True)
class DrawnEdge:
    """An arrow between two boxes, by their numbers, with a text on it."""

    source: int
    target: int
    text: str = ""
    role: str = "faint"
    width: float = 1.6
    dashed: bool = False
    label: str = ""


def draw_graph(
    picture: Picture,
    nodes: Sequence[DrawnNode],
    edges: Sequence[DrawnEdge],
    *,
    box: tuple[float, float, float, float],
) -> None:
    """The graph inside of `box` (left, top, width, height of the sheet), as large as it fits, at most at full size."""
    pairs = list(dict.fromkeys((each.source, each.target) for each in edges))
    layout = layered([_HEIGHT] * len(nodes), pairs, _GAP)
    across = [at for at, _ in layout.positions] + [at for route in layout.routes.values() for at, _ in route]
    layers = max(layer for _, layer in layout.positions)
    height = max(across) - min(across) + _HEIGHT
    width = layers * (_WIDTH + _BETWEEN) + _WIDTH
    left, top, wide, tall = box
    scale = min(1.0, wide / width, tall / height)
    stretch = 1.0 if layers == 0 else min((wide - _WIDTH * scale) / (layers * scale), 1.6 * (_WIDTH + _BETWEEN))
    apart = min(1.7, tall / (scale * height))
    middle = (max(across) + min(across)) / 2

    def place(at: float, layer: float) -> tuple[float, float]:
        spare = (wide - scale * (layers * stretch + _WIDTH)) / 2
        return left + spare + scale * (_WIDTH / 2 + layer * stretch), top + tall / 2 + scale * apart * (at - middle)

    used: Counter[tuple[int, int]] = Counter()
    twice = Counter((each.source, each.target) for each in edges)
    for edge in edges:
        pair = edge.source, edge.target
        bend = scale * 34 * (used[pair] - (twice[pair] - 1) / 2)
        used[pair] += 1
        _draw_edge(picture, edge, [place(*point) for point in layout.routes[pair]], scale, bend)
    for node, position in zip(nodes, layout.positions):
        _draw_node(picture, node, place(*position), scale)


def _draw_edge(picture: Picture, edge: DrawnEdge, points: list[tuple[float, float]], scale: float, bend: float) -> None:
    """Through its points, level at each; `bend` holds two arrows between the same boxes apart."""
    half = _WIDTH * scale / 2
    (x, y), (u, v) = (points[0][0] + half, points[0][1]), (points[-1][0] - half - 7 * scale, points[-1][1])
    stops = [(x, y), *((a, b + bend) for a, b in points[1:-1]), (u, v)]
    path = f"M{_at(x)} {_at(y)}"
    for (a, b), (c, d) in pairwise(stops):
        mid = (a + c) / 2
        path += f"C{_at(mid)} {_at(b + bend)} {_at(mid)} {_at(d + bend)} {_at(c)} {_at(d)}"
    color, tip = color_of(edge.role), 7 * scale
    dash = ' stroke-dasharray="5 5"' if edge.dashed else ""
    picture.body.append(
        f'<g><path d="{path}" fill="none" stroke-width="{edge.width:g}"{dash} style="stroke:{color}">'
        f'{_title(edge.label)}</path><polygon points="{_at(u + tip)},{_at(v)} {_at(u)},{_at(v - tip / 1.6)} '
        f'{_at(u)},{_at(v + tip / 1.6)}" style="fill:{color}"/></g>'
    )
    if edge.text and scale > 0.45:
        (a, b), (c, d) = stops[len(stops) // 2 - 1], stops[len(stops) // 2]
        ink = color_of("ink" if edge.role == "faint" else edge.role)
        picture.body.append(
            f'<text class="over" x="{_at((a + c) / 2)}" y="{_at((b + d) / 2 + 0.75 * bend + 4)}" text-anchor="middle" '
            f'font-size="{max(9.0, 13 * scale):.0f}" style="fill:{ink}">{escape(edge.text)}</text>'
        )


def _draw_node(picture: Picture, node: DrawnNode, at: tuple[float, float], scale: float) -> None:
    width, height = _WIDTH * scale, _HEIGHT * scale
    left, top = at[0] - width / 2, at[1] - height / 2
    rows = [(node.title, "ink", 650), *((text, role, 400) for text, role in node.lines)]
    gap = height / (len(rows) + 0.6)
    texts = "".join(
        f'<text x="{_at(at[0])}" y="{_at(top + gap * (index + 1.1))}" text-anchor="middle" font-weight="{weight}" '
        f'font-size="{max(5.0, 14 * scale):.1f}" style="fill:{color_of(role)}">{escape(text)}</text>'
        for index, (text, role, weight) in enumerate(rows)
    )
    picture.body.append(
        f'<g><rect x="{_at(left)}" y="{_at(top)}" width="{_at(width)}" height="{_at(height)}" rx="{_at(7 * scale)}" '
        f'stroke-width="1.6" style="fill:{color_of(node.fill)};stroke:{color_of(node.edge)}"/>{texts}'
        f"{_title(node.label)}</g>"
    )
