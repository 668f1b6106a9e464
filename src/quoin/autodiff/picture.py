"""A recorded graph as a plot: a box for each node with its numbers in it, both ways."""

from torch import Tensor

from quoin.autodiff.graph import Graph, Node, summarize
from quoin.plot import Box, GraphPlot, graph

__all__ = ["plot_graph"]

_COLORS = {
    "input": "#d6e9f5",
    "parameter": "#fbe3d3",
    "buffer": "#eeeeee",
    "variable": "#fbe3d3",
    "constant": "#eeeeee",
}
_OUTPUT, _OPERATION = "#d5efe3", "#ffffff"
_MOST_NUMBERS = 64


def plot_graph(traced: Graph, *, title: str = "") -> GraphPlot:
    """The graph from its inputs (blue) and parameters (orange) down to its output (green), with v = value and dv =
    adjoint.

    Save it as .svg, .png or .html; the page has the numbers of each node in full, up to 64 of them.

    Notes: Z5.16.
    """
    boxes = [_box(node, node.index in traced.outputs) for node in traced.nodes]
    return graph(boxes, traced.edges, title=title)


def _box(node: Node, is_output: bool) -> Box:
    size = "×".join(map(str, node.shape)) or "number"
    lines = [size, f"v {summarize(node.value, 2)}"]
    if node.adjoint is not None:
        lines.append(f"dv {summarize(node.adjoint, 2)}")
    details = [("name", node.name)] if node.name else []
    details += [("op", node.op), ("shape", str(node.shape)), ("type", str(node.value.dtype).removeprefix("torch."))]
    if node.module:
        details.append(("module", node.location))
    if node.inputs:
        details.append(("from", " ".join(map(str, node.inputs))))
    details += [("value", _full(node.value)), ("adjoint", "-" if node.adjoint is None else _full(node.adjoint))]
    color = _OUTPUT if is_output else _COLORS.get(node.op, _OPERATION)
    short = ".".join(node.name.split(".")[-2:])  # the whole path would make the plot as wide as it is long
    return Box(short or node.op, tuple(lines), color, tuple(details))


def _full(tensor: Tensor) -> str:
    """All the numbers, row by row, or the first of them."""
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    if tensor.numel() > _MOST_NUMBERS:
        first = " ".join(f"{value:.6g}" for value in tensor.reshape(-1)[:8].tolist())
        return f"{summarize(tensor)}; {first} ..."
    if tensor.ndim < 2:
        return " ".join(f"{value:.6g}" for value in tensor.reshape(-1).tolist())
    return "\n".join(" ".join(f"{value:.6g}" for value in row) for row in tensor.reshape(-1, tensor.shape[-1]).tolist())
