"""A recorded graph as a picture: a box for each node with its numbers in it, both ways."""

from torch import Tensor

from quoin.autodiff.graph import Graph, Node, summary
from quoin.plot import Box, GraphDrawing, graph

__all__ = ["draw_graph"]

_COLOURS = {"input": "#d6e9f5", "parameter": "#fbe3d3", "buffer": "#eeeeee", "variable": "#fbe3d3", "constant": "#eeeeee"}
_OUTPUT, _OPERATION = "#d5efe3", "#ffffff"
_MOST_NUMBERS = 64


def draw_graph(traced: Graph, *, title: str = "") -> GraphDrawing:
    """The graph from its inputs (blue) and parameters (orange) down to its output (green), with v = value and dv = adjoint.

    Save it as .svg, .png or .html; the page tells the numbers of each node in full, up to 64 of them.

    Notes: Z5.16.
    """
    boxes = [_box(node, node.index in traced.outputs) for node in traced.nodes]
    return graph(boxes, traced.edges, title=title)


def _box(node: Node, is_output: bool) -> Box:
    size = "×".join(map(str, node.shape)) or "number"
    lines = [size, f"v {summary(node.value, 2)}"]
    if node.adjoint is not None:
        lines.append(f"dv {summary(node.adjoint, 2)}")
    facts = [("name", node.name)] if node.name else []
    facts += [("op", node.op), ("shape", str(node.shape)), ("type", str(node.value.dtype).removeprefix("torch."))]
    if node.module:
        facts.append(("module", node.place))
    if node.inputs:
        facts.append(("from", " ".join(map(str, node.inputs))))
    facts += [("value", _full(node.value)), ("adjoint", "-" if node.adjoint is None else _full(node.adjoint))]
    colour = _OUTPUT if is_output else _COLOURS.get(node.op, _OPERATION)
    short = ".".join(node.name.split(".")[-2:])  # the whole path would make the picture as wide as it is long
    return Box(short or node.op, tuple(lines), colour, tuple(facts))


def _full(tensor: Tensor) -> str:
    """All the numbers, row by row, or the first of them."""
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    if tensor.numel() > _MOST_NUMBERS:
        first = " ".join(f"{value:.6g}" for value in tensor.reshape(-1)[:8].tolist())
        return f"{summary(tensor)}; {first} ..."
    if tensor.ndim < 2:
        return " ".join(f"{value:.6g}" for value in tensor.reshape(-1).tolist())
    return "\n".join(" ".join(f"{value:.6g}" for value in row) for row in tensor.reshape(-1, tensor.shape[-1]).tolist())
