"""A recorded graph as a plot: a box for each node with its numbers in it, both ways."""

from torch import Tensor

from quoin.autodiff.graph import Graph, Node, summarize
from quoin.autodiff.tape import Var, past
from quoin.plot import Box, GraphPlot, graph
from quoin.plot.palette import LIGHT

__all__ = ["MOST_PICTURED", "plot_graph", "plot_tape"]

_COLORS = {
    "input": LIGHT.tints[0],
    "parameter": LIGHT.tints[1],
    "buffer": LIGHT.raised,
    "variable": LIGHT.tints[1],
    "constant": LIGHT.raised,
}
_OUTPUT, _OPERATION = LIGHT.tints[2], LIGHT.paper
_MOST_NUMBERS = 64
MOST_PICTURED = 150  # nodes of a graph that a notebook shows as a picture


def plot_graph(traced: Graph, *, title: str = "") -> GraphPlot:
    """The graph from its inputs (blue) and parameters (orange) down to its output (green), with v = value and dv =
    adjoint.

    Save it as .svg, .png or .html; the page has the numbers of each node in full, up to 64 of them.

    Notes: Z5.16.
    """
    boxes = [_box(node, node.index in traced.outputs) for node in traced.nodes]
    return graph(boxes, traced.edges, title=title)


def plot_tape(output: Var) -> GraphPlot:
    """The variables that `output` was made from, as boxes with their operations and values.

    Notes: Z2.6.
    """
    made = past(output)[::-1]
    number = {variable: index for index, variable in enumerate(made)}
    boxes = [
        Box(
            variable.op or "leaf",
            ("×".join(map(str, variable.shape)) or "number", f"v {summarize(variable.value, 2)}"),
            _OUTPUT if variable is output else _OPERATION if variable.op else _COLORS["variable"],
            (("value", _full(variable.value)),),
        )
        for variable in made
    ]
    return graph(boxes, [(number[source], number[each]) for each in made for source in each.inputs])


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
